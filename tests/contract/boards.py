# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The dashboards as they are committed: what the generator writes, of metrics that exist, with everything that a reader needs."""
import json
import re
import subprocess
import sys

from contract import ROOT, main, output_of, read

FOLDER = "dashboards"
OTHERS = {"up"}  # that Prometheus itself makes
METRIC = re.compile(r"\b((?:rankscope|process)_\w+|up)(?=[\[{])")
SUFFIXES = ("_bucket", "_sum", "_count")
UNITS = {"none", "s", "bytes", "Bps", "cps", "percentunit", "watt", "celsius", "hertz", "dateTimeAsIso"}
WITHOUT_DATA = {"row", "text"}
# A range is Grafana's, or one of these, which do not depend on the scrape interval.
RANGES = {"$__rate_interval", "6h", "1h"}


def boards():
    return {path.name: json.loads(read(path)) for path in sorted((ROOT / FOLDER).glob("*.json"))}


def panels():
    return [(f"{name}: '{panel['title']}'", panel) for name, board in boards().items() for panel in board["panels"]]


def queries():
    """[(where, PromQL, legend or None)]."""
    found = [(where, target["expr"], target["legendFormat"] if panel["type"] != "table" else None)
             for where, panel in panels() for target in panel.get("targets", ())]
    return found + [(f"{name}: '{each['name']}'", each["expr"], None) for name, board in boards().items() for each in board["annotations"]["list"]]


def metrics_by_default():
    """Names in the catalogue that are on a page of the default profile."""
    rows = re.findall(r"^\| `(\w+)` \|(.*)$", output_of("list", "metrics"), re.M)
    return {name for name, rest in rows if "Profile `full` only" not in rest and "metrics.dcgm_names" not in rest}


def test_files_are_what_the_generator_writes():
    done = subprocess.run([sys.executable, ROOT / FOLDER / "generate.py", "--check"], capture_output=True, text=True, check=False)
    return (done.stdout + done.stderr).splitlines()


def test_metrics_are_on_the_page_by_default():
    known = metrics_by_default() | OTHERS
    findings = [] if len(known) > 100 else ["`rankscope list metrics` has few rows: has its form changed?"]
    for where, query, _ in queries():
        names = METRIC.findall(query)
        findings += [] if names else [f"{where} asks for no metric: {query}"]
        findings += [f"{where} asks for {name}, which is not in `rankscope list metrics` or only in profile full"
                     for name in names if not {name, *(name.removesuffix(suffix) for suffix in SUFFIXES)} & known]
    return findings


def test_panels_explain_themselves():
    findings = []
    for where, panel in panels():
        if panel["type"] == "row":
            continue
        if not panel["description"].endswith("."):
            findings.append(f"{where} has no description that is a sentence")
        if panel["type"] in WITHOUT_DATA:
            continue
        defaults = panel["fieldConfig"]["defaults"]
        if defaults.get("unit") not in UNITS:
            findings.append(f"{where} has the unit {defaults.get('unit')}, which is none of Grafana's that are used here")
        if len(defaults.get("noValue", "")) < 10 or defaults["noValue"].startswith("No data"):
            findings.append(f"{where} does not say why it may be empty")
        if "per second" in panel["description"] and defaults["unit"] == "none":
            findings.append(f"{where} shows a rate and needs the unit cps")
    return findings


def test_titles_are_unique():
    """Tests call a panel by its board and title."""
    findings = []
    for name, board in boards().items():
        titles = [panel["title"] for panel in board["panels"] if panel["type"] != "row"]
        findings += [f"{name} has two panels '{title}'" for title in sorted({title for title in titles if titles.count(title) > 1})]
        ids = [panel["id"] for panel in board["panels"]]
        if len(set(ids)) != len(ids):
            findings.append(f"{name} has two panels with one id")
    return findings


def kept_labels(query):
    """Labels that a query keeps: those of the one aggregation around it all, else of any."""
    around = re.match(r"(?:sum|count|avg|min|max) by \(([^)]*)\) \(", query)
    depth, end = 1, around.end() if around else 0
    while around and depth and end < len(query):
        depth += {"(": 1, ")": -1}.get(query[end], 0)
        end += 1
    groups = [around[1]] if around and end == len(query) else re.findall(r"\bby \(([^)]*)\)", query)
    return {label for group in groups for label in re.split(r",\s*", group)}


def test_legends_name_node_and_rank():
    findings = [] if kept_labels("sum by (a) (max by (a, b) (c))") == {"a"} and kept_labels("max by (a) (c) - max by (b) (d)") == {"a", "b"} else [
        "kept_labels is wrong"]
    for where, query, legend in queries():
        kept = kept_labels(query)
        if legend is None:
            continue
        for label in kept & {"rank", "gpu"}:
            missing = [wanted for wanted in ("instance", label) if f"{{{{{wanted}}}}}" not in legend]
            findings += [f"{where} is by {label}, and its legend '{legend}' has no {each}" for each in missing]
        findings += [f"{where} shows {label}: nobody knows a GPU by that" for label in ("gpu_uuid",) if f"{{{{{label}}}}}" in legend]
    return findings


def test_queries_respect_the_choice_at_the_top():
    findings = []
    for where, query, _ in queries():
        for name, matchers in re.findall(r"\b((?:rankscope|process)_\w+|up)(?:\{([^}]*)\})?", query):
            if 'instance=~"$instance"' not in matchers or 'job=~"$job"' not in matchers:
                findings.append(f"{where} asks for {name} of every node, whichever is chosen")
        findings += [f"{where} has the range [{each}]" for each in re.findall(r"\[([^\]]+)\]", query) if each not in RANGES]
        if "vector(" in query:
            findings.append(f"{where} invents data: {query}")
    return findings


def test_links_lead_to_boards():
    known, findings = {board["uid"] for board in boards().values()}, []
    for name in boards():
        text = read(f"{FOLDER}/{name}")
        findings += [f"{name} links to {uid}, which is no board" for uid in sorted(set(re.findall(r"/d/([\w-]+)", text)) - known)]
    home = read(f"{FOLDER}/rankscope_home.json")
    findings += [f"the board Home does not name {uid}" for uid in sorted(known - {"rankscope-home"}) if f"/d/{uid}?" not in home]
    return findings


def test_readme_names_every_board():
    text = read(f"{FOLDER}/README.md")
    return [f"dashboards/README.md does not name {name}" for name in boards() if f"`{name}`" not in text]


if __name__ == "__main__":
    main(globals())
