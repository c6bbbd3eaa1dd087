# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real Alertmanager with the example's routes and inhibitions, before a webhook.

A job of 512 nodes and 4,096 ranks loses one GPU: a real Prometheus evaluates all rules over what 512 exporters say then, and one
notification is sent. Then alerts that are posted by hand: where each goes, and that an exporter's alert mutes nothing.

Usage: alertmanager_test.py FLIP_SERVER SOURCE_DIR
"""
import contextlib
import http.server
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from support import SKIPPED, Prometheus, fetch, free_port, mixin_of, need, wait_for

SOURCE = pathlib.Path(sys.argv[2])
NODES, GPUS = 512, 8
SICK = 137  # the node whose GPU 3 is lost
RANK = SICK * GPUS + 3
WAITED = 6  # times that Alertmanager looked at each group again before the notifications are counted
HEALTHY, BROKEN = "1", "2"
# The cause, its symptoms on all nodes, and an exporter.
WANTED = {"RankscopeJobInfrastructureFault", "RankscopeGpuXid", "RankscopeGpuLost", "RankscopeJobHangs", "RankscopeRanksUninterruptible",
          "RankscopeIdleAllocation", "RankscopeCheckpointOverdue", "RankscopeGpuNeedsAction", "RankscopeInfinibandPortDown",
          "RankscopeHostHardware", "RankscopeNodeDown", "RankscopeExporterDown"}


class Sink:
    """Serves a page of metrics and takes notifications."""

    def __init__(self):
        self.page, self.posts = b"", []  # (path, body)
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.answer(sink.page)

            def do_POST(self):
                sink.posts.append((self.path, json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
                self.answer(b"")

            def answer(self, body):
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Alertmanager:
    """The example, with its webhooks at `sink`, and shorter waits: what comes within 90 s there comes within 20 s here."""

    def __init__(self, folder, sink):
        program = shutil.which("prometheus-alertmanager")
        if program is None:
            print("SKIPPED: prometheus-alertmanager is not installed")
            sys.exit(SKIPPED)
        text = (SOURCE / "alerts/alertmanager.yml").read_text(encoding="utf-8").replace("127.0.0.1:9095", sink.address)
        text = re.sub(r"group_wait: \w+", "group_wait: 20s", re.sub(r"group_interval: \w+", "group_interval: 1s", text))
        config = pathlib.Path(folder) / "alertmanager.yml"
        config.write_text(text, encoding="utf-8")
        self.address = f"127.0.0.1:{free_port()}"
        self.url = f"http://{self.address}"
        self._process = subprocess.Popen(
            [program, f"--config.file={config}", f"--storage.path={folder}/alertmanager", "--cluster.listen-address=",
             f"--web.listen-address={self.address}", "--log.level=warn"])
        wait_for("Alertmanager", lambda: self.alerts() is not None)

    def alerts(self):
        """[alert] of all that it knows; None while it does not answer."""
        with contextlib.suppress(OSError):
            return json.loads(fetch(self.url + "/api/v2/alerts"))
        return None

    def post(self, *alerts):
        body = json.dumps([{"labels": labels, "annotations": {}} for labels in alerts]).encode()
        request = urllib.request.Request(self.url + "/api/v2/alerts", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(request, timeout=10).close()

    def looked(self):
        """How often it has decided, for any group, what to send."""
        found = re.search(r"^alertmanager_nflog_queries_total (\S+)$", fetch(self.url + "/metrics"), re.M)
        return float(found[1]) if found else 0

    def close(self):
        self._process.terminate()
        self._process.wait(20)


def exporter_lines(node, broken, now):
    """What matters of the page of one node, with the exporter's labels."""
    at = f'instance="n{node:03d}:10177",job="rankscope"'
    sick = broken and node == SICK
    family = 'family="healthy",code="G1",sub="",domain="workload",severity="ok"'
    if broken:
        family = 'family="collective_hang",code="C2",sub="",domain="unknown",severity="critical"'
    if sick:
        family = 'family="gpu_lost",code="X16",sub="",domain="infrastructure",severity="critical"'
    yield f'up{{{at}}} {0 if broken and node == 7 else 1}'  # and one exporter is down by chance
    yield f'rankscope_verdict_info{{job_id="42",{family},scope="node",phase="train",state="live",disposition="",{at}}} 1'
    yield f'rankscope_job_info{{job_id="42",user="ada",account="science",partition="gpu",attempt="1",{at}}} 1'
    yield f'rankscope_job_running{{job_id="42",{at}}} 1'
    yield f'rankscope_infiniband_ports_down{{job_id="42",{at}}} {int(sick)}'
    yield f'rankscope_checkpoint_last_timestamp_seconds{{job_id="42",{at}}} {now - (9000 if broken else 60)}'
    yield f'rankscope_checkpoint_interval_seconds{{job_id="42",{at}}} 1200'
    yield f'rankscope_kernel_events_total{{kind="pcie",{at}}} {4 if sick else 0}'
    for gpu in range(GPUS):
        rank = node * GPUS + gpu
        lost = sick and gpu == 3
        card = f'gpu="{gpu}",gpu_uuid="GPU-{rank}",{at}'
        yield f'rankscope_gpu_up{{{card}}} {int(not lost)}'
        yield f'rankscope_gpu_health{{state="lost",{card}}} {int(lost)}'
        yield f'rankscope_job_gpu{{job_id="42",source="slurm",{card}}} 1'
        yield f'rankscope_rank_gpu_info{{job_id="42",rank="{rank}",{card}}} 1'
        yield f'rankscope_rank_uninterruptible_threads{{job_id="42",rank="{rank}",{at}}} {int(broken)}'
        yield f'rankscope_gpu_engine_active_ratio{{{card}}} {0 if broken else 0.9}'
        if lost:
            yield f'rankscope_gpu_last_xid_timestamp_seconds{{xid="79",{card}}} {now}'
            yield f'rankscope_gpu_xid_pending_action{{action="reboot",{card}}} 1'
    if sick:
        yield f'rankscope_slurm_node_state{{node="n{node:03d}",state="down",instance="ctl:10178",job="rankscope"}} 1'


def cluster_page(broken):
    lines = [f"state {BROKEN if broken else HEALTHY}"]
    for node in range(NODES):
        lines += exporter_lines(node, broken, int(time.time()))
    return ("\n".join(lines) + "\n").encode()


def impatient_rules(folder):
    """The rules with waits and windows of the test's length; which alerts wait at all, and what they compare, stays."""
    text = (SOURCE / "alerts/rankscope_alerts.yaml").read_text(encoding="utf-8")
    text = re.sub(r"for: (?!0m)\w+", "for: 1s", text)
    path = pathlib.Path(folder) / "rules.yaml"
    path.write_text(text.replace("[10m]", "[4s]").replace("[30m]", "[4s]").replace("offset 30m", "offset 4s"), encoding="utf-8")
    return str(path)


def settled(alertmanager):
    """Waits until Alertmanager has gone through its groups several times more: what it has not sent by then, it does not send."""
    goal = alertmanager.looked() + WAITED * len(json.loads(fetch(alertmanager.url + "/api/v2/alerts/groups")))
    wait_for("Alertmanager's groups to be looked at again", lambda: alertmanager.looked() >= goal, seconds=60)


def expected(prometheus):
    """The alerts that fire, once all do that must before anything is counted."""
    firing = {labels["alertname"] for labels, _ in prometheus.query('ALERTS{alertstate="firing"}')}
    return WANTED <= firing and firing


def scrape_jobs(sink):
    return [{"job_name": "rankscope", "honor_labels": True, "static_configs": [{"targets": [sink.address]}],
             "metric_relabel_configs": [{"source_labels": ["__name__", "instance"], "regex": f"up;{sink.address}", "action": "drop"}]}]


def check_one_job(folder, sink, alertmanager):
    sink.page = cluster_page(broken=False)
    jobs = scrape_jobs(sink)
    managers = {"alertmanagers": [{"static_configs": [{"targets": [alertmanager.address]}]}]}
    with contextlib.closing(Prometheus(folder, "", [impatient_rules(folder)], interval="2s", jobs=jobs, alerting=managers)) as prometheus:
        # Windows of the rules hold some scrapes of the healthy job.
        wait_for("owners of all GPUs", lambda: prometheus.value("count(training_job:gpu_owner:time)") == str(NODES * GPUS), seconds=60)
        wait_for("six scrapes", lambda: float(prometheus.value("count_over_time(state[1m])") or 0) >= 6, seconds=60)
        calm = prometheus.query('ALERTS{alertname!="RankscopeExporterDown"}')
        assert not calm, calm
        sink.page = cluster_page(broken=True)
        names = wait_for("all alerts", lambda: expected(prometheus), seconds=90)
        known = wait_for("the same alerts at Alertmanager", lambda: (found := alertmanager.alerts()) and names <= {
            alert["labels"]["alertname"] for alert in found} and found)
        settled(alertmanager)
        prometheus.check_rules()
        slow = sum(rule["evaluationTime"] for rule in prometheus.rules())
        print(f"one evaluation of all rules over {NODES * GPUS} GPUs takes {slow:.2f} s in all")
        print(f"{len(known)} alerts of {len(names)} kinds: {', '.join(sorted(names))}")
        told = [(path, body) for path, body in sink.posts if path != "/monitoring"]
        assert len(told) == 1, [(path, [alert["labels"]["alertname"] for alert in body["alerts"]]) for path, body in told]
        [(path, body)] = told
        assert path == "/pager" and body["groupLabels"] == {"job_id": "42"}, body["groupLabels"]
        alerts = {alert["labels"]["alertname"]: alert for alert in body["alerts"]}
        assert alerts.keys() == {"RankscopeJobInfrastructureFault", "RankscopeGpuXid", "RankscopeGpuLost"}, alerts.keys()
        labels = alerts["RankscopeGpuXid"]["labels"]
        wanted = {"node": f"n{SICK:03d}", "gpu": "3", "rank": str(RANK), "user": "ada", "partition": "gpu", "account": "science", "job_id": "42"}
        assert wanted.items() <= labels.items(), labels
        fault = alerts["RankscopeJobInfrastructureFault"]["annotations"]
        assert fault["job_url"].endswith("/job/42") and f"n{SICK:03d}:10177 GPU 3 of rank {RANK}" in fault["gpus"], fault
        assert not [body for path, body in sink.posts if path == "/monitoring"], "the exporter of a node of the job"


def state_of(alertmanager, **labels):
    for alert in alertmanager.alerts():
        if labels.items() <= alert["labels"].items():
            return alert
    return None


def check_by_hand(sink, alertmanager):
    """Where alerts go, and that none about an exporter mutes another."""
    sink.posts.clear()
    down = {"alertname": "RankscopeExporterDown", "domain": "exporter", "severity": "warning", "node": "n9", "job_id": "77"}
    node = {"alertname": "RankscopeNodeDown", "domain": "infrastructure", "severity": "warning", "node": "n9", "job_id": "77"}
    hardware = {"alertname": "RankscopeHostHardware", "domain": "infrastructure", "severity": "warning", "node": "n8"}
    stalled = {"alertname": "RankscopeExporterStalled", "domain": "exporter", "severity": "warning", "node": "n8"}
    crash = {"alertname": "RankscopeJobFailed", "domain": "workload", "severity": "warning", "job_id": "78", "user": "ada"}
    slurm = {"alertname": "RankscopeSlurmBusy", "domain": "scheduler", "severity": "warning"}
    xid = {"alertname": "RankscopeGpuXid", "domain": "infrastructure", "severity": "critical", "node": "n7", "gpu": "1"}
    again = {"alertname": "RankscopeJobVerdict", "domain": "workload", "severity": "warning", "job_id": "78", "user": "ada", "node": "n6"}
    alone = {"alertname": "RankscopeJobVerdict", "domain": "workload", "severity": "warning", "job_id": "79", "user": "ada", "node": "n6"}
    hang = {"alertname": "RankscopeJobHangs", "domain": "unknown", "severity": "critical", "job_id": "80"}
    port = {"alertname": "RankscopeInfinibandPortDown", "domain": "infrastructure", "severity": "warning", "job_id": "80", "node": "n5"}
    idle = {"alertname": "RankscopeIdleAllocation", "domain": "workload", "severity": "warning", "job_id": "80"}
    posted = [down, node, hardware, stalled, crash, slurm, xid, again, alone, hang, port, idle]
    alertmanager.post(*posted)
    wanted = {"RankscopeNodeDown": "/operators", "RankscopeHostHardware": "/operators", "RankscopeExporterStalled": "/monitoring",
              "RankscopeJobFailed": "/owners", "RankscopeSlurmBusy": "/scheduler", "RankscopeGpuXid": "/pager", "RankscopeJobVerdict": "/owners",
              "RankscopeJobHangs": "/pager", "RankscopeInfinibandPortDown": "/operators"}

    def arrived():
        return {alert["labels"]["alertname"]: path for path, body in list(sink.posts) for alert in body["alerts"]
                if alert["labels"].get("job_id") != "42"}

    wait_for("a notification of each", lambda: arrived().keys() >= wanted.keys())
    settled(alertmanager)
    assert arrived() == wanted, arrived()
    for labels in posted:
        muted_by = state_of(alertmanager, **labels)["status"]["inhibitedBy"]
        assert bool(muted_by) == (labels in (down, again, idle)), (labels, muted_by)


def main():
    need("prometheus")
    mixin_of(SOURCE)
    need("amtool")
    done = subprocess.run(["amtool", "check-config", SOURCE / "alerts/alertmanager.yml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Sink()) as sink, \
            contextlib.closing(Alertmanager(folder, sink)) as alertmanager:
        check_one_job(folder, sink, alertmanager)
        check_by_hand(sink, alertmanager)
    print("ok")


if __name__ == "__main__":
    main()
