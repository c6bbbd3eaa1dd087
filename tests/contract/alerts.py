# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The alerts, their files and their pages agree. `alerts.py --write` writes the table of alerts/README.md, and the files."""
import re
import subprocess
import sys

from contract import ROOT, main, read

sys.path.insert(0, str(ROOT / "alerts"))

import mixin  # noqa: E402
import recorded  # noqa: E402

TABLE = re.compile(r"(<!-- begin: alerts -->\n).*?(<!-- end: alerts -->)", re.S)
SECTIONS = ["Meaning", "Impact", "Diagnosis", "Mitigation"]
MAX_RULES, MAX_GROUPS = 20, 70  # Mimir's ruler_max_rules_per_rule_group and ruler_max_rule_groups_per_tenant
SENT_BY_EXPORTERS = "RankscopeJobVerdict"  # exporter/notify/json.cc
PAGES_NOBODY = {"workload", "exporter"}


def with_table(text):
    return TABLE.sub(lambda found: found[1] + "\n".join(mixin.table()) + "\n" + found[2], text)


def pages():
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "alerts/runbooks").glob("*.md"))}


def test_files_are_what_is_written():
    findings = [f"alerts/{name} is not what alerts/mixin.py writes: python3 alerts/mixin.py alerts"
                for name, text in mixin.files(mixin.Settings()).items() if read(f"alerts/{name}") != text]
    if with_table(read("alerts/README.md")) != read("alerts/README.md"):
        findings.append("the table of alerts/README.md is not what alerts/mixin.py --table prints: python3 tests/contract/alerts.py --write")
    return findings


def test_each_alert_has_its_page_and_each_page_its_alert():
    names = [alert.name for alert in mixin.all_alerts()]
    findings = [f"two alerts are called {name}" for name in sorted(set(names)) if names.count(name) > 1]
    findings += [f"{name} has no page in alerts/runbooks/" for name in names if name not in pages()]
    findings += [f"alerts/runbooks/{name}.md is of no alert" for name in pages() if name not in names]
    if len(names) < 25:
        findings.append(f"there are {len(names)} alerts only")
    return findings


def test_each_page_says_what_one_needs_at_night():
    findings = []
    for name, text in pages().items():
        heads = re.findall(r"^## (.+)$", text, re.M)
        if heads != SECTIONS or f"\n# {name}\n" not in text:
            findings.append(f"alerts/runbooks/{name}.md has the headings {heads}, not {SECTIONS} below '# {name}'")
            continue
        parts = dict(zip(heads, re.split(r"^## .+$", text, flags=re.M)[1:]))
        findings += [f"{name}: {head} is empty" for head, part in parts.items() if len(part.split()) < 6]
        if "`" not in parts["Diagnosis"]:
            findings.append(f"{name}: Diagnosis has no command")
        known = {alert.name for alert in mixin.all_alerts()}
        findings += [f"{name} names {other}, which is no alert" for other in set(re.findall(r"\bRankscope[A-Z]\w+", text)) - known]
    return findings


def test_commands_of_pages_are_shell():
    findings = []
    for name, text in pages().items():
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S):
            done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            findings += [f"alerts/runbooks/{name}.md: {done.stderr.strip()}"] if done.returncode else []
    return findings


def test_who_is_paged():
    findings = []
    for alert in mixin.all_alerts():
        if alert.severity not in {"critical", "warning", "info"}:
            findings.append(f"{alert.name} has the severity {alert.severity}")
        if alert.severity == "critical" and alert.domain in PAGES_NOBODY:
            findings.append(f"{alert.name} pages for the domain {alert.domain}")
        if not alert.summary.endswith(".") or "{{" in alert.summary:
            findings.append(f"{alert.name}: the summary is one sentence without templates")
    source_lines = "\n".join(re.findall(r"source_matchers:(?:.*\n(?: {6}- .*\n)*)", read("alerts/alertmanager.yml")))
    exporters = {alert.name for alert in mixin.all_alerts() if alert.domain == "exporter"}
    muting = set(re.findall(r"Rankscope\w+", source_lines))
    if len(muting) < 5 or "severity" in source_lines or "domain" in source_lines:
        findings.append("alerts/alertmanager.yml: sources of inhibitions are named one by one, so that no exporter's alert is one")
    findings += [f"alerts/alertmanager.yml: {name} is an exporter's and mutes others" for name in sorted(muting & exporters)]
    named = set(re.findall(r"\bRankscope\w+", read("alerts/alertmanager.yml")))
    findings += [f"alerts/alertmanager.yml names {name}, which is no alert" for name in sorted(named - {one.name for one in mixin.all_alerts()} - {SENT_BY_EXPORTERS})]
    return findings


def test_groups_fit_into_mimir():
    groups = {**mixin.ALERT_GROUPS, "rankscope.owners": recorded.OWNERS, "rankscope.training_jobs": recorded.JOBS}
    findings = [f"group {name} has {len(rules)} rules" for name, rules in groups.items() if len(rules) > MAX_RULES]
    findings += [f"the recording rule {name} does not begin with training_job:" for rules in (recorded.OWNERS, recorded.JOBS) for name in rules
                 if not re.fullmatch(r"training_job:\w+:\w+", name)]
    return findings + (["too many groups"] if len(groups) > MAX_GROUPS else [])


def test_xids_are_those_of_the_catalogue():
    hardware, program = [], []
    for code, kind, action in re.findall(r"^XID\((\d+), (\w+), (\w+),", read("detectors/model/xids.inc"), re.M):
        if kind == "kHardware" or kind == "kDriver" and action in {"kResetGpu", "kInspect", "kRestartNode"}:
            hardware.append(code)
        elif kind == "kProgram":
            program.append(code)
    settings = mixin.Settings()
    return [f"the setting {name} is not {'|'.join(wanted)}, as detectors/model/xids.inc has it"
            for name, wanted in (("hardware_xids", hardware), ("program_xids", program)) if getattr(settings, name) != "|".join(wanted)]


def test_settings_reach_the_files():
    """Each setting changes something, and a selector stands in every metric of every expression."""
    findings, default = [], mixin.files(mixin.Settings())
    for name in mixin.Settings.__dataclass_fields__:
        if mixin.files(mixin.settings_from([f"{name}=7"])) == default:
            findings.append(f"the setting {name} changes nothing")
    text = "\n".join(mixin.files(mixin.settings_from(['selector=dc="x"'])).values())
    lines = "\n".join(line for line in text.splitlines() if not re.match(r" +(?:summary|description|nodes|gpus|runbook_url|job_url):", line))
    findings += [f"without the selector: {name}" for name in sorted(set(re.findall(r'\brankscope_\w+(?!\{dc="x")\b', lines)))
                 if re.search(rf'\b{name}\b(?!\{{dc="x")(?!\.yaml)', lines)]
    if "https://" not in mixin.Settings().runbook_url:
        findings.append("runbook_url is not absolute")
    return findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        for file, content in {**{f"alerts/{name}": text for name, text in mixin.files(mixin.Settings()).items()},
                              "alerts/README.md": with_table(read("alerts/README.md"))}.items():
            (ROOT / file).write_text(content, encoding="utf-8")
    else:
        main(globals())
