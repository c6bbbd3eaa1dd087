# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""promtool test rules: each alert of the mixin fires when it should, with the labels that it should have, and is quiet when it nearly
should. The cases stand in alert_cases/. Usage: alerts_test.py FLIP_SERVER SOURCE_DIR [ALERT...]"""
import concurrent.futures
import importlib
import json
import pathlib
import subprocess
import sys
import tempfile

from support import GROUPS, mixin_of, need, rules_of

SOURCE = pathlib.Path(sys.argv[2])
MIXIN = mixin_of(SOURCE)
MINUTES = 200


def all_cases():
    sys.path.insert(0, str(SOURCE / "tests/prometheus/alert_cases"))
    return [case for name in ("jobs", "gpus", "nodes", "exporters") for case in importlib.import_module(name).CASES]


def input_series(case):
    series, seen = {}, set()
    for name, values in case.series.items():
        name, _, node = name.partition(" @")
        if node:
            seen.add(node)
            braces = "{" if name.endswith("}") else name + "{"
            name = (name[:-1] + "," if braces == "{" else braces) + f'instance="{node}:10177",job="rankscope"}}'
        series[name] = values
    for node in seen:
        series.setdefault(f'up{{instance="{node}:10177",job="rankscope"}}', f"1x{MINUTES}")
    return [{"series": name, "values": values} for name, values in series.items()]


def check(alert, minute, wanted):
    keys = sorted({key for labels in wanted for key in labels})
    firing = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    samples = [{"labels": "{" + ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items()) + "}", "value": 1} for labels in wanted]
    return {"expr": f"count by ({', '.join(keys)}) ({firing})" if wanted else firing, "eval_time": f"{minute}m", "exp_samples": samples}


def promtool_test(case):
    return {"interval": "1m", "input_series": input_series(case),
            "promql_expr_test": [check(case.alert, minute, wanted) for minute, wanted in case.at.items()]}


def run(case):
    with tempfile.TemporaryDirectory() as folder:
        rules, path = pathlib.Path(folder) / "rules.yaml", pathlib.Path(folder) / "case.yaml"
        rules.write_text(rules_of(MIXIN, [case.alert]), encoding="utf-8")
        path.write_text(json.dumps({"rule_files": [str(rules)], "group_eval_order": GROUPS, "evaluation_interval": "1m", "tests": [promtool_test(case)]}), encoding="utf-8")
        done = subprocess.run([need("promtool"), "test", "rules", str(path)], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"{case.alert}, {case.what}:\n{done.stdout}{done.stderr}"


def complete(cases):
    """Each alert has a case in which it fires, one in which it never does, and, where it may belong to a job, one with its owner."""
    for alert in MIXIN.all_alerts():
        own = [case for case in cases if case.alert == alert.name]
        fires = [labels for case in own for wanted in case.at.values() for labels in wanted]
        if not fires:
            yield f"{alert.name} has no case in which it fires"
        if not any(case.at and not any(case.at.values()) for case in own):
            yield f"{alert.name} has no case in which it is quiet"
        if alert.of in {"job", "gpu"} and not any({"user", "account", "partition", "job_id"} <= labels.keys() for labels in fires):
            yield f"{alert.name} has no case with the job's owner"
        if alert.of == "gpu" and not any({"node", "gpu", "rank"} <= labels.keys() for labels in fires):
            yield f"{alert.name} has no case with node, GPU and rank"
        if alert.of in {"node", "slurm"} and not any("node" in labels for labels in fires):
            yield f"{alert.name} has no case with its node"


def main():
    cases = all_cases()
    alerts = {alert.name: alert for alert in MIXIN.all_alerts()}
    failures = [f"no alert has the name {case.alert}" for case in cases if case.alert not in alerts]
    for name, text in MIXIN.files(MIXIN.Settings()).items():
        if (SOURCE / "alerts" / name).read_text(encoding="utf-8") != text:
            failures.append(f"alerts/{name} is not what alerts/mixin.py writes: python3 alerts/mixin.py alerts")
    assert not failures, "\n".join(failures)
    chosen = [case for case in cases if case.alert in sys.argv[3:]] or cases
    failures = [] if sys.argv[3:] else list(complete(cases))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        failures += filter(None, pool.map(run, chosen))
    assert not failures, "\n".join(failures)
    print(f"ok: {len(chosen)} cases of {len(alerts)} alerts")


if __name__ == "__main__":
    main()
