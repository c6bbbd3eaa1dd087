# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""VictoriaMetrics scrapes what 512 exporters say when a job loses a GPU, and its vmalert evaluates the rules to the alerts that Prometheus
has (alertmanager_test.py), with the same labels and texts. Usage: victoria_test.py FLIP_SERVER SOURCE_DIR"""
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

import alertmanager_test
from alertmanager_test import RANK, SICK, Sink, cluster_page, impatient_rules
from support import SKIPPED, fetch, free_port, wait_for

WANTED = alertmanager_test.WANTED


@contextlib.contextmanager
def program(folder, *command):
    """Its address, while it runs."""
    address = f"127.0.0.1:{free_port()}"
    with open(pathlib.Path(folder) / f"{command[0]}.log", "wb") as log:
        try:
            process = subprocess.Popen([*command, f"-httpListenAddr={address}"], stdout=log, stderr=log)
        except FileNotFoundError:
            print(f"SKIPPED: {command[0]} is not installed (Debian package victoria-metrics)")
            sys.exit(SKIPPED)
    try:
        wait_for(command[0], lambda: answers(f"http://{address}/health"))
        yield address
    finally:
        process.terminate()
        process.wait(30)


def answers(url):
    with contextlib.suppress(OSError):
        return fetch(url) or True
    return False


def count(address, expression):
    answer = json.loads(fetch(f"http://{address}/api/v1/query?query={expression}"))["data"]["result"]
    return float(answer[0]["value"][1]) if answer else 0


def firing(address):
    alerts = json.loads(fetch(f"http://{address}/api/v1/alerts"))["data"]["alerts"] or []
    return {alert["name"]: alert for alert in alerts if alert["state"] == "firing"}


def main():
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Sink()) as sink:
        sink.page = cluster_page(broken=False)
        scrape = pathlib.Path(folder) / "scrape.yml"
        scrape.write_text(json.dumps({"global": {"scrape_interval": "2s"}, "scrape_configs": alertmanager_test.scrape_jobs(sink)}), encoding="utf-8")
        with program(folder, "victoria-metrics", f"-storageDataPath={folder}/data", f"-promscrape.config={scrape}",
                     "-search.latencyOffset=1s") as database:
            url = f"http://{database}"
            with program(folder, "vmalert", f"-rule={impatient_rules(folder)}", f"-datasource.url={url}", f"-remoteWrite.url={url}",
                         f"-notifier.url=http://{sink.address}", "-evaluationInterval=2s") as vmalert:
                wait_for("owners of all GPUs", lambda: count(database, "count(training_job:gpu_owner:time)") == 4096, seconds=90)
                sink.page = cluster_page(broken=True)
                alerts = wait_for("all alerts", lambda: (found := firing(vmalert)) and WANTED <= found.keys() and found, seconds=90)
    xid, fault = alerts["RankscopeGpuXid"], alerts["RankscopeJobInfrastructureFault"]
    wanted = {"node": f"n{SICK:03d}", "gpu": "3", "rank": str(RANK), "user": "ada", "partition": "gpu", "account": "science", "job_id": "42"}
    assert wanted.items() <= xid["labels"].items(), xid
    assert fault["annotations"]["job_url"].endswith("/job/42"), fault
    assert fault["annotations"]["nodes"] == f"1: n{SICK:03d}:10177", fault
    assert f"n{SICK:03d}:10177 GPU 3 of rank {RANK}" in fault["annotations"]["gpus"], fault
    print("ok")


if __name__ == "__main__":
    main()
