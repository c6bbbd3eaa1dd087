# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on nodes, their network and Slurm, whether a job runs or not."""
from rule import Alert

HOST = "<cluster>, instance"
WHOSE = "{{ if $labels.job_id }} Its job is {{ $labels.job_id }} of {{ $labels.user }}.{{ end }}"
LISTED = '{{ range query `topk(8, %s)` }} {{ . | label "instance" }}{{ end }}'


def kernel(kinds, window="15m"):
    return f'sum by ({HOST}, kind) (increase(rankscope_kernel_events_total{{kind=~"{kinds}"}}[{window}])) > 0'


def silent_server():
    return 'sum by (<cluster>, instance) (increase(rankscope_kernel_events_total{kind="network_file"}[15m])) > 0'


ALERTS = [
    Alert("RankscopeInfinibandPortDown", "node", "warning", "infrastructure", "2m", f"""
          max by ({HOST}) (rankscope_infiniband_ports_down)
            > min by ({HOST}) (min_over_time(rankscope_infiniband_ports_down[1d]))""",
          "More RDMA ports of a node are down than were.",
          f"{{{{ $labels.node }}}} has {{{{ $value }}}} ports down, more than within the last day.{WHOSE}"),
    Alert("RankscopeInfinibandErrors", "node", "warning", "infrastructure", "0m", f"""
          max by ({HOST}, kind) (increase(rankscope_infiniband_errors_total{{
            kind=~"link_downs|link_error_recoveries|integrity_errors|receive_errors|rdma_request_errors"}}[15m])) > 0""",
          "RDMA ports of a node count errors that a healthy link has none of.",
          f"Ports of {{{{ $labels.node }}}} counted {{{{ $labels.kind }}}} {{{{ $value | humanize }}}} times within a quarter of an hour.{WHOSE}"),
    Alert("RankscopeHostHardware", "node", "warning", "infrastructure", "0m", kernel("machine_check|memory|pcie|disk|efa"),
          "The kernel of a node reports hardware errors.",
          f"The kernel of {{{{ $labels.node }}}} wrote lines of kind {{{{ $labels.kind }}}} within a quarter of an hour.{WHOSE}"),
    Alert("RankscopeTasksHung", "node", "warning", "infrastructure", "0m", kernel("hung_task"),
          "The kernel of a node reports tasks that do not run for minutes.",
          f"The kernel of {{{{ $labels.node }}}} wrote of hung tasks within a quarter of an hour.{WHOSE}"),
    Alert("RankscopeNvswitchFatal", "node", "critical", "infrastructure", "0m", f"""
          max by ({HOST}, sxid) (rankscope_nvswitch_sxid_errors_total{{fatal="true"}})
            unless max by ({HOST}, sxid) (rankscope_nvswitch_sxid_errors_total{{fatal="true"}} offset 1h)
          or
          max by ({HOST}, sxid) (increase(rankscope_nvswitch_sxid_errors_total{{fatal="true"}}[1h])) > 0""",
          "An NVSwitch has reported a fatal error.",
          f"An NVSwitch of {{{{ $labels.node }}}} reported SXid {{{{ $labels.sxid }}}} as fatal within the last hour.{WHOSE}"),
    Alert("RankscopeFileServerSilent", "cluster", "critical", "infrastructure", "1m", f"count by (<cluster>) ({silent_server()})",
          "A file server does not answer nodes.",
          "The kernels of {{ $value }} nodes wrote within a quarter of an hour that a file server does not answer, among them:"
          + LISTED % silent_server()),
    Alert("RankscopeNodeDown", "slurm", "warning", "infrastructure", "2m", """
          max by (<cluster>, node, state) (rankscope_slurm_node_state{state=~"down|failed"} == 1)""",
          "Slurm says that a node is down.",
          f"{{{{ $labels.node }}}} is {{{{ $labels.state }}}}.{WHOSE}"),
    Alert("RankscopeNodeDrained", "slurm", "warning", "infrastructure", "10m", """
          max by (<cluster>, node, reason_class, reason) (rankscope_slurm_node_reason_info{reason_class!="operator"})
            and on (<cluster>, node) max by (<cluster>, node) (rankscope_slurm_node_state{state=~"drained|draining"} == 1)""",
          "A node is drained or draining, and not because an operator wants it.",
          "{{ $labels.node }} takes no jobs: {{ $labels.reason }} (class {{ $labels.reason_class }})."),
    Alert("RankscopeManyNodesOut", "cluster", "critical", "infrastructure", "10m", """
          sum by (<cluster>) (max by (<cluster>, state) (rankscope_slurm_nodes{state=~"down|failed|draining|drained"}))
            / sum by (<cluster>) (max by (<cluster>, state) (rankscope_slurm_nodes)) > <nodes_out>""",
          "A large part of the cluster is out of service.",
          "{{ $value | humanizePercentage }} of the nodes are down, failed or drained."),
    Alert("RankscopeRequeueStorm", "cluster", "warning", "scheduler", "0m", """
          sum by (<cluster>) (max by (<cluster>, kind) (increase(rankscope_slurm_events_total{kind="requeued"}[30m]))) > <requeues>""",
          "Many jobs are requeued.",
          "{{ $value | humanize }} jobs were requeued within half an hour."),
    Alert("RankscopeSlurmSilent", "cluster", "critical", "scheduler", "5m",
          "time() - max by (<cluster>) (rankscope_slurm_last_answer_timestamp_seconds) > 300",
          "Slurm's controller does not answer.",
          "slurmctld last answered {{ $value | humanizeDuration }} ago. Jobs that run go on, and none begins."),
    Alert("RankscopeSlurmBusy", "cluster", "warning", "scheduler", "10m", """
          max by (<cluster>) (rankscope_slurm_server_threads) > 200
          or
          max by (<cluster>) (rankscope_slurm_dbd_agent_queue_size) > 10000""",
          "Slurm's controller is overloaded, or its accounting lags.",
          "slurmctld has {{ $value }} threads at work of at most 256, or so many records that slurmdbd has not taken."),
]
