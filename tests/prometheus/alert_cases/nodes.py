# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on nodes, their network and Slurm."""
from case import JOB, ON_NODE, OWNER, Case


def kernel(kind, node="n1"):
    return f'rankscope_kernel_events_total{{kind="{kind}"}} @{node}'


def nodes(state):
    return f'rankscope_slurm_nodes{{state="{state}"}} @ctl'


def node_state(state, node="n1"):
    return f'rankscope_slurm_node_state{{node="{node}",state="{state}"}} @ctl'


PORTS = 'rankscope_infiniband_ports_down{job_id="42"} @n1'
SXID = 'rankscope_nvswitch_sxid_errors_total{sxid="20034",fatal="true"} @n1'
REASON = 'rankscope_slurm_node_reason_info{node="n1",reason_class="gpu",reason="[HC] GPU 3 lost"} @ctl'
ANSWER = "rankscope_slurm_last_answer_timestamp_seconds @ctl"
SECOND_JOB = {'rankscope_job_running{job_id="43"} @n1': "1x300"}
CASES = [
    Case("RankscopeInfinibandPortDown", "one more than before", {**JOB, PORTS: "1x29 2x60"}, {29: [], 35: [ON_NODE]}),
    Case("RankscopeInfinibandPortDown", "a port that never had a cable; the next job counts it too",
         {**JOB, PORTS: "1x29 stale", 'rankscope_infiniband_ports_down{job_id="43"} @n1': "_x30 1x60"}, {35: [], 80: []}),
    Case("RankscopeInfinibandErrors", "a link that went down",
         {**JOB, 'rankscope_infiniband_errors_total{job_id="42",kind="link_downs"} @n1': "0x9 1x60"}, {9: [], 12: [{**ON_NODE, "kind": "link_downs"}], 60: []}),
    Case("RankscopeInfinibandErrors", "congestion is daily life",
         {**JOB, 'rankscope_infiniband_errors_total{job_id="42",kind="congestion_notifications"} @n1': "0+1000x60",
          'rankscope_infiniband_errors_total{job_id="42",kind="link_downs"} @n1': "4x60"}, {12: [], 50: []}),
    Case("RankscopeHostHardware", "a machine check", {**JOB, kernel("machine_check"): "0x9 2x60"},
         {9: [], 12: [{**ON_NODE, "kind": "machine_check"}]}),
    Case("RankscopeHostHardware", "two jobs on the node: it is named, and no job is", {**JOB, **SECOND_JOB, kernel("memory"): "0x9 2x60"},
         {12: [{"node": "n1", "kind": "memory"}]}),
    Case("RankscopeHostHardware", "lines of before, and of GPUs", {kernel("machine_check"): "7x60", kernel("xid"): "0+1x60"}, {12: [], 50: []}),
    Case("RankscopeTasksHung", "hung tasks", {**JOB, kernel("hung_task"): "0x9 1x60"}, {9: [], 12: [ON_NODE]}),
    Case("RankscopeTasksHung", "none", {**JOB, kernel("hung_task"): "3x60"}, {12: []}),
    Case("RankscopeNvswitchFatal", "the first error, whose series begins with it", {**JOB, SXID: "_x10 1x120"},
         {9: [], 10: [{**ON_NODE, "sxid": "20034", "severity": "critical"}], 75: []}),
    Case("RankscopeNvswitchFatal", "another one", {**JOB, SXID: "1x89 2x60"}, {80: [], 92: [{**ON_NODE, "sxid": "20034"}]}),
    Case("RankscopeNvswitchFatal", "one that the switch survives",
         {**JOB, 'rankscope_nvswitch_sxid_errors_total{sxid="12028",fatal="false"} @n1': "_x10 1x60"}, {15: []}),
    Case("RankscopeFileServerSilent", "three nodes: one page",
         {kernel("network_file", node): "0x9 1x60" for node in ("n1", "n2", "n3")},
         {9: [], 12: [{"severity": "critical", "domain": "infrastructure"}], 40: []}),
    Case("RankscopeFileServerSilent", "a disk", {kernel("disk"): "0x9 1x60", kernel("network_file"): "2x60"}, {12: []}),
    Case("RankscopeNodeDown", "a node with a job", {**JOB, node_state("down"): "0x9 1x60"}, {9: [], 12: [{**ON_NODE, "state": "down"}]}),
    Case("RankscopeNodeDown", "a node without an exporter", {node_state("failed", "x9"): "1x60"}, {12: [{"node": "x9", "state": "failed"}]}),
    Case("RankscopeNodeDown", "an exporter and the controller's on one node: still one alert",
         {**JOB, node_state("down"): "1x60", 'up{instance="n1:10178",job="rankscope"}': "1x60"}, {12: [{**ON_NODE, "state": "down"}]}),
    Case("RankscopeNodeDown", "a node that is drained", {node_state("drained"): "1x60", node_state("down"): "0x60"}, {12: []}),
    Case("RankscopeNodeDrained", "by a health check", {REASON: "1x60", node_state("drained"): "1x60"},
         {5: [], 15: [{"node": "n1", "reason_class": "gpu", "reason": "[HC] GPU 3 lost"}]}),
    Case("RankscopeNodeDrained", "by an operator, and a node that is down",
         {'rankscope_slurm_node_reason_info{node="n1",reason_class="operator",reason="memory swap, ticket 7"} @ctl': "1x60",
          node_state("drained"): "1x60", 'rankscope_slurm_node_reason_info{node="n2",reason_class="gpu",reason="x"} @ctl': "1x60",
          node_state("down", "n2"): "1x60", node_state("drained", "n2"): "0x60"}, {15: [], 50: []}),
    Case("RankscopeManyNodesOut", "two of ten", {nodes("idle"): "8x60", nodes("down"): "1x60", nodes("drained"): "1x60"},
         {5: [], 15: [{"severity": "critical"}]}),
    Case("RankscopeManyNodesOut", "one of twenty", {nodes("allocated"): "19x60", nodes("down"): "1x60", nodes("maintenance"): "9x60"}, {15: []}),
    Case("RankscopeRequeueStorm", "three a minute", {'rankscope_slurm_events_total{kind="requeued"} @ctl': "0+3x60"},
         {5: [], 40: [{"domain": "scheduler", "severity": "warning"}]}),
    Case("RankscopeRequeueStorm", "one a minute, and many that completed",
         {'rankscope_slurm_events_total{kind="requeued"} @ctl': "0+1x60", 'rankscope_slurm_events_total{kind="completed"} @ctl': "0+90x60"}, {40: []}),
    Case("RankscopeSlurmSilent", "no answer for minutes", {ANSWER: "0+60x9 540x60"}, {9: [], 22: [{"severity": "critical", "domain": "scheduler"}]}),
    Case("RankscopeSlurmSilent", "an answer each minute; a second controller that is asked by nobody",
         {ANSWER: "0+60x60", "rankscope_slurm_last_answer_timestamp_seconds @ctl2": "0x60"}, {22: [], 50: []}),
    Case("RankscopeSlurmBusy", "all threads are at work", {"rankscope_slurm_server_threads @ctl": "250x60"}, {5: [], 15: [{"domain": "scheduler"}]}),
    Case("RankscopeSlurmBusy", "accounting lags", {"rankscope_slurm_dbd_agent_queue_size @ctl": "20000x60"}, {15: [{"domain": "scheduler"}]}),
    Case("RankscopeSlurmBusy", "a busy minute",
         {"rankscope_slurm_server_threads @ctl": "10x9 250x1 10x60", "rankscope_slurm_dbd_agent_queue_size @ctl": "30x60"}, {11: [], 30: []}),
]
assert OWNER.items() <= ON_NODE.items()
