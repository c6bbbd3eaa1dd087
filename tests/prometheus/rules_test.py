# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""promtool accepts every rule, every dashboard query parses, alerts say what they should, and a real Prometheus fires on a
real scrape. Usage: rules_test.py FLIP_SERVER SOURCE_DIR"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from support import dashboard_queries, need, scraped, wait_for

SOURCE = pathlib.Path(sys.argv[2])
RULES = sorted((SOURCE / "alerts").glob("rankscope_*.yaml"))


def promtool(*arguments):
    done = subprocess.run([need("promtool"), *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"promtool {arguments}: {done.stdout}{done.stderr}"


def check_dashboards():
    """The queries as one rule file, with what Grafana fills in filled in."""
    rules = []
    for path in sorted((SOURCE / "dashboards").glob("*.json")):
        dashboard = json.loads(path.read_text(encoding="utf-8"))
        assert dashboard["schemaVersion"] == 40, path
        for title, query in dashboard_queries(dashboard):
            query = query.replace("$__rate_interval", "1m").replace("$__range", "1h")
            query = re.sub(r"\$\{?\w+\}?", ".+", query)
            rules.append({"record": f"dashboard:{len(rules)}", "expr": query, "labels": {"panel": title}})
    assert rules
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "dashboards.yaml"
        path.write_text(json.dumps({"groups": [{"name": "d", "rules": rules}]}), encoding="utf-8")
        promtool("check", "rules", path)


def check_pages():
    """The queries of the alerts' pages as one rule file: each line of a block is one."""
    rules = []
    for path in sorted((SOURCE / "alerts/runbooks").glob("*.md")):
        for block in re.findall(r"^```promql\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S):
            rules += [{"record": f"page:{len(rules) + number}", "expr": query, "labels": {"page": path.stem}}
                      for number, query in enumerate(block.splitlines())]
    assert len(rules) > 20
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "pages.yaml"
        path.write_text(json.dumps({"groups": [{"name": "p", "rules": rules}]}), encoding="utf-8")
        promtool("check", "rules", path)


def check_with_vmalert():
    """VictoriaMetrics' own reader of rules, where it is installed (Debian package victoria-metrics)."""
    if shutil.which("vmalert") is None:
        print("vmalert is not installed: VictoriaMetrics is not asked")
        return
    for path in RULES:
        done = subprocess.run(["vmalert", "-dryRun", f"-rule={path}"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def firing(prometheus):
    return {labels["alertname"]: labels
            for labels, _ in prometheus.query('ALERTS{alertstate="firing"}')}


def check_live():
    """The rules with their waiting times taken out, over a scrape of a job that hangs."""
    with tempfile.TemporaryDirectory() as folder:
        impatient = []
        for path in RULES:
            copy = pathlib.Path(folder) / path.name
            copy.write_text(re.sub(r"\n +for: \w+", "", path.read_text(encoding="utf-8")), encoding="utf-8")
            impatient.append(str(copy))
        with scraped(sys.argv[1], impatient) as (server, prometheus):
            server.publish("healthy")
            wait_for("the first scrape", lambda: prometheus.value('up{job="rankscope"}') == "1")
            assert "RankscopeJobHangs" not in firing(prometheus)
            server.publish("hanging")
            labels = wait_for("the alert", lambda: firing(prometheus).get("RankscopeJobHangs"))
            assert labels["job_id"] == "8841" and labels["family"] == "collective_hang", labels
            assert labels["severity"] == "critical", labels
            assert (labels["user"], labels["account"], labels["partition"]) == ("ada", "science", "gpu"), labels
            prometheus.check_rules()
            server.publish("sixteen:30")  # as many series as fit
            wait_for("ranks of many jobs", lambda: int(prometheus.value("count(training_job:owner:time)") or 0) > 16)
            seen = {rule["lastEvaluation"] for rule in prometheus.rules()}
            wait_for("each rule to be evaluated again", lambda: not seen & {rule["lastEvaluation"] for rule in prometheus.rules()})
            prometheus.check_rules()
            server.publish("healthy")
            wait_for("the alert's end", lambda: "RankscopeJobHangs" not in firing(prometheus))


def main():
    assert RULES
    promtool("check", "rules", *RULES)
    promtool("test", "rules", SOURCE / "tests/prometheus/alerts_test.yaml")
    check_dashboards()
    check_pages()
    check_with_vmalert()
    check_live()
    print("ok")


if __name__ == "__main__":
    main()
