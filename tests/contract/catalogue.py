# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Names that several places must agree on: metrics, families, configuration."""
import re

from contract import ROOT, main, output_of, read, tracked_files

METRIC = re.compile(r"\brankscope_[a-z0-9_]+\b(?!\.(?:ya?ml|json))")
RECORDED = re.compile(r"^\s*- record:\s*(\S+)", re.M)
SUFFIXES = ("_bucket", "_sum", "_count", "_created")


def catalogue():
    return set(METRIC.findall(output_of("list", "metrics")))


def test_alerts_and_dashboards_name_existing_metrics():
    known = catalogue()
    findings = []
    for path in tracked_files():
        if path.parts[0] not in {"alerts", "dashboards"}:
            continue
        for name in sorted(set(METRIC.findall(read(path)))):
            base = next((name[:-len(suffix)] for suffix in SUFFIXES if name.endswith(suffix)), name)
            if name not in known and base not in known:
                findings.append(f"{path} names {name}, which is not in `rankscope list metrics`")
    return findings


def test_metric_names_follow_the_rules():
    findings = []
    for name in sorted(catalogue()):
        if re.search(r"_(ms|us|millis|minutes|hours|kb|mb|gb|kib|mib|gib|percent)(_|$)", name):
            findings.append(f"{name}: base units only")
    return findings


def test_forbidden_labels():
    forbidden = {"job", "instance", "pod", "namespace", "container", "cluster", "pid"}
    findings = []
    for line in output_of("list", "metrics").splitlines():
        cells = [cell.strip(" `") for cell in line.strip("|").split("|")]
        if len(cells) < 4 or not cells[0].startswith("rankscope_"):
            continue
        labels = {label.strip(" `") for label in cells[2].split(",")}
        findings += [f"{cells[0]} has the label '{label}', which belongs to the scraper or is unbounded"
                     for label in sorted(labels & forbidden)]
    return findings


def families():
    return re.findall(r"^FAMILY\((\w+), (\w+),", read("detectors/families/families.inc"), re.M)


def test_every_family_is_listed_once_and_has_its_file():
    names = families()
    findings = [] if len(names) > 30 else ["families.inc has few rows: has their form changed?"]
    if len(set(names)) != len(names):
        findings.append("a family is named twice in families.inc")
    findings += [f"{code} has no file detectors/families/{name}.cc" for code, name in names
                 if not (ROOT / f"detectors/families/{name}.cc").is_file()]
    listing = output_of("list", "families")
    for code, family in names:
        if not re.search(rf"\b{code}\b.*\b{family}\b", listing):
            findings.append(f"`rankscope list families` does not name {code} {family}")
    return findings


def test_every_family_that_can_be_raised_has_scenarios():
    """One scenario that fires and two near misses, for each family that a store can show."""
    findings = []
    for code, name in families():
        folder = ROOT / "tests/scenarios" / name
        kinds = [kind for path in folder.glob("*.yaml")
                 for kind in re.findall(r"^kind: (\w+)$", path.read_text(encoding="utf-8"), re.M)]
        for kind, wanted in (("fires", 1), ("near_miss", 2)):
            if kinds.count(kind) < wanted:
                findings.append(f"{code} has {kinds.count(kind)} of {wanted} scenarios with "
                                f"`kind: {kind}` in tests/scenarios/{folder.name}/")
    return findings


def test_reference_configuration_is_the_default():
    return [] if read("deploy/config.yaml") == output_of("serve", "--print-config") else [
        "deploy/config.yaml is not what `rankscope serve --print-config` prints"]


if __name__ == "__main__":
    main(globals())
