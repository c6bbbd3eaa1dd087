# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Every query of every board returns data of a healthy run and of a broken one, from a real Prometheus and a real VictoriaMetrics
that scrape a real daemon; and what should show that the run is broken shows it.

One daemon is scraped as two nodes: a query that joins two series of one job must not stumble over a job on several nodes.

Usage: dashboards_test.py RANKSCOPE STUB_TRAINER STUB_LIBRARIES FAKE_NVML SOURCE_DIR
"""
import contextlib
import json
import pathlib
import re
import shutil
import sys
import time
import urllib.error

from board_node import BoardNode
from support import Prometheus, VictoriaMetrics, dashboard_queries, fetch, need, wait_for

NODES = 2  # without the controller
# Metrics that a machine, or a run of half a minute, may not have: their source, or why. A panel of theirs may be empty then.
NEEDS = {
    r"nccl_|rank_(oldest_)?collective|job_collective": "nccl", r"cuda_|probe_": "cuda", r"offcpu": "wait", r"tcp_": "network",
    r"file_errors|rank_checkpoint|checkpoint_": "io", r"infiniband_": "infiniband", r"kernel_events": "kmsg",
    r"nccl_ras_": "an answer of NCCL's RAS", r"bus_bandwidth": "a communicator whose making was seen", r"checkpoint_full": "a file system that fills up",
    r"job_pressure": "a cgroup of the job's own", r"nvswitch_": "an error of an NVSwitch", r"series_missing": "more series than the cap",
}
# Panels that are empty while nothing is wrong.
EMPTY_WHILE_HEALTHY = {("gpu", "Xid errors"), ("gpu", "Last Xid errors"), ("slurm", "Out of service"), ("slurm", "Nodes that were out of service"),
                       ("slurm", "Calls that failed")}
# Or may be: a busy machine earns a warning.
EITHER_WHILE_HEALTHY = {("job", "Warnings")}
# And those that the broken run has no data of.
EMPTY_WHILE_BROKEN = {("slurm", "Calls that failed")}


def is_now(milliseconds):
    return all(abs(each / 1000 - time.time()) < 600 for each in milliseconds)


# (board, panel) -> what its values are while all is well, and what they are in the broken run.
DIFFERENT = {
    # Milliseconds of wall time, which Grafana takes for the mark's place.
    ("job", "Verdict changes"): (lambda v: is_now(v), lambda v: is_now(v) and len(v) >= 3),
    ("home", "Critical jobs"): (lambda v: max(v) == 0, lambda v: max(v) >= 2),
    ("home", "GPUs not healthy"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("home", "Nodes out of service"): (lambda v: max(v) == 0, lambda v: max(v) == 2),
    ("fleet", "Critical"): (lambda v: max(v) == 0, lambda v: max(v) >= 2),
    ("fleet", "GPUs not healthy"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("fleet", "Severity of each job"): (lambda v: max(v) == 0, lambda v: max(v) == 3),
    ("fleet", "Jobs by verdict"): (lambda v: len(v) == 1, lambda v: len(v) >= 3),
    ("fleet", "Least active GPUs"): (lambda v: min(v) > 0.5, lambda v: min(v) < 0.5),
    ("job", "Severity over time"): (lambda v: max(v) == 0, lambda v: max(v) == 3),
    ("job", "Oldest collective"): (lambda v: max(v) < 3, lambda v: max(v) > 3),
    ("job", "Collectives entered"): (lambda v: min(v) > 0, lambda v: max(v) == 0),
    ("job", "Since the last step"): (lambda v: max(v) < 3, lambda v: max(v) > 3),
    ("job", "Time per step"): (lambda v: max(v) < 0.18, lambda v: max(v) > 0.18),
    ("job", "Records that are not finite"): (lambda v: max(v) == 0, lambda v: max(v) > 0),
    ("job", "Throttled"): (lambda v: max(v) == 0, lambda v: max(v) == 1),
    ("gpu", "Not healthy"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("gpu", "Need a reset"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("gpu", "Need replacement"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("gpu", "Throttled by hardware"): (lambda v: max(v) == 0, lambda v: max(v) == NODES),
    ("gpu", "Health"): (lambda v: max(v) == 0, lambda v: max(v) == 1),
    ("gpu", "Memory errors that were not corrected"): (lambda v: max(v) == 0, lambda v: max(v) == 3),
    ("gpu", "PCIe link against its maximum"): (lambda v: min(v) == 1, lambda v: min(v) == 0.5),
    ("gpu", "NVLink links up"): (lambda v: min(v) == max(v), lambda v: min(v) < max(v)),
    ("gpu", "Share of the maximum clock"): (lambda v: min(v) == 1, lambda v: min(v) < 0.5),
    ("gpu", "On the NVLink fabric"): (lambda v: min(v) == 1, lambda v: min(v) == 0),
    ("slurm", "Nodes out of service"): (lambda v: max(v) == 0, lambda v: max(v) == 2),
    ("node", "Multiprocessors active"): (lambda v: min(v) > 0.5, lambda v: min(v) < 0.5),
}


def queries(source, jobs, instance):
    """[(board, panel, query)] with a user's choice of everything filled in. Series of other jobs, which tests beside this one run, are not
    asked for; the last alternative is for series that are of no job."""
    chosen = "|".join(jobs)
    for path in sorted((source / "dashboards").glob("*.json")):
        for title, query in dashboard_queries(json.loads(path.read_text(encoding="utf-8"))):
            query = query.replace("$__rate_interval", "4s").replace("$job_id", chosen)
            query = query.replace('instance=~"$instance"', f'instance=~"{instance}",job_id=~"{chosen}|"')
            yield path.stem.removeprefix("rankscope_"), title, re.sub(r"\$\{?\w+\}?", ".+", query)


class Check:
    """The queries of all boards, asked of one server again and again until each has what it should have, or the time is over."""

    def __init__(self, server, source):
        self._server, self._source = server, source
        up = {labels["source"] for labels, value in server.query("rankscope_source_up") if value == "1"}
        self._missing = {pattern: what for pattern, what in NEEDS.items() if what not in up}

    def _lacks(self, query):
        return next((what for pattern, what in self._missing.items() if re.search(rf"rankscope_\w*?({pattern})", query)), None)

    def run(self, jobs, broken, seconds=60):
        name, left = type(self._server).__name__, {}
        # The controller's Slurm is ill from the first.
        filled = list(queries(self._source, jobs, "[nc].+" if broken else "n.+"))
        empty = EMPTY_WHILE_BROKEN if broken else EMPTY_WHILE_HEALTHY
        for board, panel, query in filled:
            lacks = self._lacks(query)
            if lacks:
                self._server.query(query)  # answered all the same
            if lacks and not broken:
                print(f"{board}: '{panel}' may be empty, of {name}: this needs {lacks}")
            if not lacks and (board, panel) not in (empty if broken else empty | EITHER_WHILE_HEALTHY):
                left[board, panel, query] = "never asked"
        asked, end = len(left), time.monotonic() + seconds
        while left and time.monotonic() < end:
            left = {key: why for key in left if (why := self._wrong(*key, broken))}
            time.sleep(0.2 if left else 0)
        assert not left, f"{name}, {'broken' if broken else 'healthy'} run:\n" + "\n".join(f"{board}: '{panel}' {why}: {query}"
                                                                                          for (board, panel, query), why in left.items())
        for board, panel, query in filled:
            if (board, panel) in empty and not self._lacks(query):
                found = self._server.query(query)
                assert not found, f"{name}: {board}: '{panel}' should be empty while nothing is wrong: {found[:3]}"
        print(f"{name}: {asked} queries have data of the {'broken' if broken else 'healthy'} run")

    def _wrong(self, board, panel, query, broken):
        """What is wrong with the answer; None when it is right."""
        try:
            values = [float(value) for _, value in self._server.query(query)]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{board}: '{panel}' {error.read().decode()}: {query}") from error
        if not values:
            return "shows nothing"
        judge = DIFFERENT.get((board, panel))
        return None if not judge or judge[broken](values) else f"shows {sorted(values)[:8]}"


def check_links(node, source):
    """What the tables link to on a node is there."""
    links = {link["url"] for path in (source / "dashboards").glob("*.json") for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
             for each in panel.get("fieldConfig", {}).get("overrides", []) for prop in each["properties"] if prop["id"] == "links"
             for link in prop["value"] if link["url"].startswith("http://")}
    assert links
    for link in links:
        link = link.replace("${__data.fields.instance}", node.daemon.address)
        fetch(link.replace("${__value.raw}", "hangs-1" if node.daemon.address in link else node.daemon.address))


def main():
    binary, source = sys.argv[1], pathlib.Path(sys.argv[5])
    need("prometheus")
    servers = [Prometheus]
    if shutil.which("victoria-metrics"):
        servers.append(VictoriaMetrics)
    else:
        print("VictoriaMetrics is not asked: victoria-metrics is not installed (Debian package victoria-metrics)")
    with BoardNode(*sys.argv[1:6]) as node, contextlib.ExitStack() as stack:
        running = [stack.enter_context(contextlib.closing(server(node.folder, None, interval="500ms", jobs=node.scrape_configs())))
                   for server in servers]
        for server in running:
            wait_for("a scrape", lambda server=server: len(server.query("up == 1")) == NODES + 1)
            wait_for("the GPUs", lambda server=server: server.query('rankscope_source_up{source="nvml"} == 1'))
        checks = [Check(server, source) for server in running]
        for check in checks:
            check.run(node.HEALTHY, broken=False)
        node.fall_ill()
        for check in checks:
            check.run(node.BROKEN, broken=True)
        check_links(node, source)
    print("ok")


if __name__ == "__main__":
    main()
