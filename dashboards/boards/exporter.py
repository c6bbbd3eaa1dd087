# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
from .panels import GREEN_OR_RED, HOST, RED_OR_GREEN, Board, heat, lines, row, stat, strip, switch_mapping, table

NO_NODE = "No exporter has been scraped: see the targets of Prometheus"
NO_CHANNEL = "No channel is configured: see `notify.file`"


def rate(metric, labels="instance"):
    return f"sum by ({labels}) (rate({metric}{{@node}}[$__rate_interval]))"


BOARD = Board(
    "exporter", "Exporter", "Does rankscope itself work, and what does it cost?",
    row("Now",
        stat("Exporters", "Exporters that answered their last scrape.", "none", NO_NODE, "sum(up{@node})"),
        stat("Not scraped", "Exporters whose last scrape failed.", "none", NO_NODE, "sum(up{@node} == bool 0)", colors=GREEN_OR_RED),
        stat("Oldest tick", "Time since the slowest exporter last computed its page; above a minute it stands still.", "s", NO_NODE,
             "max(time() - rankscope_last_tick_timestamp_seconds{@node})", colors=((None, "green"), (10, "yellow"), (60, "red"))),
        stat("Configurations refused", "Exporters whose last reading of the configuration failed; the previous one is in effect.", "none", NO_NODE,
             "sum(rankscope_config_last_reload_successful{@node} == bool 0)", colors=GREEN_OR_RED),
        stat("Series left out in an hour", "Series that exporters left out of their pages in the last hour because of metrics.max_series.", "none", NO_NODE,
             "sum(increase(rankscope_series_dropped_total{@node}[1h]))", colors=GREEN_OR_RED),
        stat("Jobs not watched", "Jobs that were not watched because a node had too many.", "none", NO_NODE, "sum(rankscope_jobs_dropped_total{@node})",
             colors=GREEN_OR_RED),
        strip("Scrapes", "Whether each exporter answers its scrapes.", "none", NO_NODE, HOST, "max by (instance) (up{@node})", size=(12, 8), colors=RED_OR_GREEN,
              mappings=[switch_mapping(("does not answer", "red"), ("answers", "green"))]),
        table("Versions", "Version of each exporter.", "none", NO_NODE, "max by (instance, version, compiler) (rankscope_build_info{@node})",
              ("instance", "version", "compiler"), size=(12, 8), value=None)),
    row("Sources",
        heat("Sources that have stopped", "On how many nodes each source worked in the last 6 hours and does not work. A source that a node has no use for "
             "never worked and is no fault.", "none", NO_NODE, "{{source}}",
             "sum by (source) (max_over_time(rankscope_source_up{@node}[6h]) - rankscope_source_up{@node})", size=(12, 10), colors=GREEN_OR_RED),
        table("Sources", "Whether each source works, by node. 0 may also mean that the node has no use for it; the page /node of the node says which.",
              "none", NO_NODE, "bottomk(200, max by (instance, source) (rankscope_source_up{@node}))", ("instance", "source"), size=(12, 10),
              value="works", sort="works"),
        lines("Observations", "Observations per second that each source sends, all chosen nodes together.", "cps", NO_NODE,
              ("{{source}}", rate("rankscope_source_observations_total", "source"))),
        lines("Lost", "Events or bytes that a source knows it has lost, per second, all chosen nodes together.", "cps", NO_NODE,
              ("{{source}}", rate("rankscope_source_lost_total", "source")))),
    row("Cost",
        lines("CPU", "Share of one core that the exporter uses.", "percentunit", NO_NODE, (HOST, rate("process_cpu_seconds_total"))),
        lines("Memory against the limit", "Memory of the exporter that counts towards its limit, as a share of the limit.", "percentunit", NO_NODE,
              (HOST, "max by (instance) (rankscope_memory_used_bytes{@node}) / on (instance) max by (instance) (rankscope_memory_limit_bytes{@node})"), max=1),
        lines("Time per tick", "Duration of the last tick, of which there is one a second.", "s", NO_NODE,
              (HOST, "max by (instance) (rankscope_tick_seconds{@node})")),
        lines("Cost of probes", "Share of one core that the probes cost all watched processes of the node.", "percentunit",
              "No probe is attached: no process calls CUDA or NCCL, or the kernel runs no BPF programs; see `rankscope check`",
              (HOST, rate("rankscope_probe_seconds_total"))),
        lines("Time that probes are attached", "Share of the time for which the probe of each source that is attached least is attached; below 1 its counts are too low, because of ebpf.budget.",
              "percentunit", "No probe is attached: no process calls CUDA or NCCL, or the kernel runs no BPF programs; see `rankscope check`",
              ("{{instance}} {{source}}", "min by (instance, source) (rankscope_probe_duty_ratio{@node})"), max=1),
        lines("Threads and open files", "Threads and open file descriptors of the exporter.", "none", NO_NODE,
              (HOST + " threads", "max by (instance) (process_threads{@node})"), (HOST + " files", "max by (instance) (process_open_fds{@node})"))),
    row("Pages",
        lines("Series", "Series on the exporter's page; the cap is metrics.max_series.", "none", NO_NODE, (HOST, "max by (instance) (rankscope_series{@node})")),
        lines("Series left out", "Series per second that were left out of the page, counted at each tick, by reason.", "cps", NO_NODE,
              ("{{reason}}", rate("rankscope_series_dropped_total", "reason"))),
        table("Incomplete metrics", "Metrics that metrics.max_series keeps partly off the page, and how many of their series.", "none",
              "Every metric is complete", "max by (instance, metric) (rankscope_series_missing{@node})", ("instance", "metric"), size=(12, 8), value="missing"),
        lines("Responses", "HTTP responses per second, by status class.", "cps", NO_NODE,
              ("{{status}}", rate("rankscope_http_responses_total", "status")))),
    row("Recordings, text and messages",
        lines("Recordings", "Bytes per second written to the recordings of jobs.", "Bps", NO_NODE, (HOST, rate("rankscope_recorder_bytes_total"))),
        lines("Disk of state.dir", "Seconds for which the disk has not responded, and observations missing from recordings.", "none", NO_NODE,
              (HOST + " seconds behind", "max by (instance) (rankscope_disk_behind_seconds{@node})"),
              (HOST + " observations lost", "max by (instance) (rankscope_recorder_lost_total{@node})"),
              (HOST + " failed writes", "max by (instance) (rankscope_recorder_write_errors_total{@node})")),
        lines("Text of nobody", "Lines per second that could not be attributed to a job.", "cps", NO_NODE, (HOST, rate("rankscope_log_unattributed_lines_total"))),
        lines("Text lost", "Bytes of jobs' output per second that were lost before they could be read.", "Bps", "No output of a job is read",
              (HOST, rate("rankscope_log_dropped_bytes_total"))),
        lines("Messages sent", "Notifications that a server has taken, since the exporter started, by kind of channel.", "none", NO_CHANNEL,
              ("{{channel_kind}}", "sum by (channel_kind) (rankscope_notifications_sent_total{@node})")),
        lines("Messages that wait or failed", "Notifications that wait to be sent, and attempts that failed.", "none", NO_CHANNEL,
              ("{{channel_kind}} waiting", "sum by (channel_kind) (rankscope_notifications_pending{@node})"),
              ("{{channel_kind}} failed", "sum by (channel_kind) (rankscope_notifications_failed_total{@node})"))))
