# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""On a node with many ranks each alert fires and keeps firing: real pages of an hour and more, a minute apart, are what
promtool evaluates the rules over; then a real Prometheus scrapes one.

The node is one of tests/unit/metrics/node_loads.h: beside its live jobs, the last of which has a straggler, a job fails in each
minute from the second on; in minute 3 a source goes down. Usage: budget_test.py FLIP_SERVER SOURCE_DIR
"""
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from support import GROUPS, FlipServer, fetch, mixin_of, need, rules_of, scraped, wait_for

SOURCE = pathlib.Path(sys.argv[2])
MIXIN = mixin_of(SOURCE)
ALERTS = ["RankscopeJobFailed", "RankscopeJobDegraded", "RankscopeSourceDown", "RankscopeExporterStalled", "RankscopeExporterDown",
          "RankscopeSeriesDropped"]
RULES = rules_of(MIXIN, ALERTS)
# As node_loads.h has them.
LOADS = {"one": (1, 8), "eight": (8, 1), "sixteen": (16, 8), "wide": (1, 144)}
GPUS, FAILURES, FIRST_FAILURE, SOURCE_DOWN, WALL_SECONDS = 8, 16, 2, 3, 1780000000
OVER = {"sixteen", "wide"}  # that have more series than fit
MINUTES = 85
SAMPLE = re.compile(r"^(\w+)((?:\{.*\})?) (\S+)$", re.M)
TARGET = 'instance="n1:10177",job="rankscope"'


def metrics_of_rules():
    texts = [alert.expr for alert in MIXIN.all_alerts() if alert.name in ALERTS] + list(MIXIN.recorded.OWNERS.values())
    return set(re.findall(r"\brankscope_\w+", " ".join(texts)))


def page(server, load, minute):
    """{(name, labels): value} as text."""
    server.publish(f"{load}:{minute}")
    return {(name, labels): value for name, labels, value in SAMPLE.findall(fetch(server.url + "/metrics"))}


def check_rows(samples, load, minute):
    """What alerts and dashboards of people are made of is there at every minute."""
    jobs, ranks = LOADS[load]
    names = [name for name, _ in samples]
    for name in ("rankscope_gpu_up", "rankscope_gpu_power_watts", "rankscope_gpu_temperature_celsius", "DCGM_FI_DEV_GPU_UTIL",
                 "DCGM_FI_DEV_XID_ERRORS"):
        assert names.count(name) >= GPUS, (load, minute, name, names.count(name))
    assert names.count("rankscope_rank_alive") >= jobs * ranks, (load, minute)
    failed = sum(1 for number in range(FAILURES) if FIRST_FAILURE + number <= minute <= FIRST_FAILURE + number + 60)
    told = [labels for name, labels in samples if name == "rankscope_verdict_info"]
    assert len(told) == jobs + failed, (load, minute, told)
    assert len(names) == int(samples["rankscope_series", ""]) <= 5000, (load, minute)
    dropped = sum(int(value) for (name, _), value in samples.items() if name == "rankscope_series_dropped_total")
    assert (dropped > 0) == (load in OVER), (load, minute, dropped)
    assert ("rankscope_series_missing" in names) == (load in OVER), (load, minute)


def input_series(pages):
    wanted = metrics_of_rules()
    keys = sorted({key for samples in pages for key in samples if key[0] in wanted})

    def values(key):
        before = False
        for samples in pages:
            found = samples.get(key)
            if found is None:
                yield "stale" if before else "_"  # as a scrape marks a series that it lacks
            else:
                # promtool's clock begins at 0.
                yield str(float(found) - WALL_SECONDS) if key[0].endswith("_timestamp_seconds") else found
            before = found is not None

    return [{"series": f"{name}{{{','.join(filter(None, [labels[1:-1], TARGET]))}}}", "values": " ".join(values((name, labels)))}
            for name, labels in keys]


def firing(alert, minute, number):
    expression = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}}) or vector(0)'
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": [{"labels": "{}", "value": number}]}


def expectations(load, stalls):
    """promql_expr_test rows: how many of each alert fire at each minute."""
    for minute in range(0, MINUTES):
        shown = min(minute, stalls)  # the page that is scraped
        # Its series stays from the minute of the failure to the hour after it; `for` takes one minute.
        critical = 0
        for failed in range(FIRST_FAILURE, FIRST_FAILURE + FAILURES):
            critical += failed <= shown <= failed + 60 and minute >= failed + 1
        yield firing("RankscopeJobFailed", minute, critical)
        yield firing("RankscopeJobDegraded", minute, int(minute >= 5))
        yield firing("RankscopeSourceDown", minute, int(minute >= SOURCE_DOWN + 5))
        yield firing("RankscopeExporterStalled", minute, int(minute >= stalls + 4))
        yield firing("RankscopeExporterDown", minute, int(minute >= MINUTES - 10 + 5))
        if minute >= 13 and load not in OVER:
            yield firing("RankscopeSeriesDropped", minute, 0)
    if load in OVER:
        cut = 'count(ALERTS{alertname="RankscopeSeriesDropped",alertstate="firing",reason="cap_rank_detail"}) or vector(0)'
        yield {"expr": f"min_over_time(({cut})[50m:1m])", "eval_time": "70m", "exp_samples": [{"labels": "{}", "value": 1}]}


def check_hour(server, load):
    """The daemon stops ticking ten minutes before the end; its address refuses scrapes then, as far as `up` is concerned."""
    stalls = MINUTES - 10
    pages = []
    for minute in range(MINUTES):
        if minute <= stalls:
            pages.append(page(server, load, minute))
            check_rows(pages[-1], load, minute)
        else:
            pages.append(pages[-1])
    series = input_series(pages)
    series.append({"series": f"up{{{TARGET}}}", "values": f"1x{MINUTES - 11} 0x10"})
    test = {"interval": "1m", "input_series": series, "promql_expr_test": list(expectations(load, stalls))}
    with tempfile.TemporaryDirectory() as folder:
        rules, path = pathlib.Path(folder) / "rules.yaml", pathlib.Path(folder) / f"{load}.yaml"
        rules.write_text(RULES, encoding="utf-8")
        path.write_text(json.dumps({"rule_files": [str(rules)], "group_eval_order": GROUPS, "evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
        done = subprocess.run([need("promtool"), "test", "rules", str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{load}: {done.stdout}{done.stderr}"


def check_live():
    """The rules with their waiting times taken out, over scrapes of the node with the most ranks."""
    with tempfile.TemporaryDirectory() as folder:
        impatient = pathlib.Path(folder) / "rules.yaml"
        impatient.write_text(re.sub(r"\n +for: \w+", "", RULES), encoding="utf-8")
        with scraped(sys.argv[1], [str(impatient)]) as (server, prometheus):
            wanted = {"RankscopeJobFailed": FAILURES, "RankscopeJobDegraded": 1, "RankscopeSourceDown": 1,
                      "RankscopeSeriesDropped": 1, "RankscopeExporterStalled": 1}
            server.publish("sixteen:0")
            wait_for("the source that works", lambda: prometheus.value('rankscope_source_up{source="io"}') == "1")

            def all_fire():
                server.publish("sixteen:30")  # a tick, at which something is left out again
                found = {labels["alertname"]: int(value) for labels, value in
                         prometheus.query('count by (alertname) (ALERTS{alertstate="firing"})')}
                return all(found.get(name, 0) >= number for name, number in wanted.items())

            wait_for("all alerts", all_fire)
            assert len(prometheus.query("rankscope_gpu_up == 1")) == GPUS
            sent = fetch(server.url + "/metrics")
            count = sum(1 for line in sent.splitlines() if not line.startswith("#"))
            wait_for("all samples", lambda: prometheus.value("scrape_samples_scraped") == str(count))


def main():
    need("promtool")
    assert {"rankscope_verdict_info", "rankscope_source_up", "rankscope_series_dropped_total", "rankscope_job_info",
            "rankscope_last_tick_timestamp_seconds"} <= metrics_of_rules(), metrics_of_rules()
    with contextlib.closing(FlipServer(sys.argv[1])) as server:
        for load in LOADS:
            check_hour(server, load)
    check_live()
    print("ok")


if __name__ == "__main__":
    main()
