# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on the exporters themselves. They page nobody and mute nothing: a node whose exporter is silent may well be broken."""
from rule import Alert

PAGE = "Its page at http://{{ $labels.instance }}/ shows why."


def own(name, severity, wait, expr, summary, description):
    return Alert(name, "node", severity, "exporter", wait, expr, summary, description)


ALERTS = [
    own("RankscopeExporterDown", "warning", "5m", "up{<targets>} == 0",
        "An exporter does not answer its scrapes.",
        "{{ $labels.instance }} has not been scraped for 5 minutes; nothing new is known of the jobs there."),
    Alert("RankscopeExporterAbsent", "cluster", "warning", "exporter", "10m", "absent(up{<targets>})",
          "Prometheus has no exporter to scrape.",
          "No series `up` has the labels <targets>: no alert on jobs, GPUs or nodes can fire."),
    own("RankscopeExporterStalled", "warning", "2m", "time() - rankscope_last_tick_timestamp_seconds > 60",
        "An exporter answers scrapes but no longer ticks.",
        "{{ $labels.instance }} last computed its values {{ $value | humanizeDuration }} ago."),
    # A source that never worked on this node (no permission, no such device) is no alert: it must have worked before.
    own("RankscopeSourceDown", "warning", "5m", "rankscope_source_up == 0 and max_over_time(rankscope_source_up[6h]) == 1",
        "A source of evidence has stopped working on a node.",
        f"{{{{ $labels.source }}}} on {{{{ $labels.instance }}}} is down; verdicts there are less sure without it. {PAGE}"),
    own("RankscopeEvidenceLost", "info", "10m", """
        increase(rankscope_source_lost_total[15m]) > 0
        or
        increase(rankscope_recorder_lost_total[15m]) > 0""",
        "An exporter loses events or parts of its recordings.",
        f"{{{{ $labels.instance }}}} lost {{{{ $value | humanize }}}} events or bytes{{{{ if $labels.source }}}} of {{{{ $labels.source }}}}{{{{ end }}}} "
        "within a quarter of an hour; its verdicts say which of them are less sure."),
    own("RankscopeSeriesDropped", "info", "10m", "increase(rankscope_series_dropped_total[10m]) > 0",
        "A node has more series than its cap.",
        "{{ $labels.instance }} leaves series out ({{ $labels.reason }}): rankscope_series_missing names them. Raise metrics.max_series there."),
    own("RankscopeConfigRejected", "warning", "5m", """
        rankscope_config_last_reload_successful == 0
        or
        rankscope_web_config_last_reload_successful == 0""",
        "An exporter has refused its new configuration.",
        "{{ $labels.instance }} runs with the configuration from before: the file has a mistake."),
    own("RankscopeNotificationsFail", "warning", "5m", """
        sum by (<cluster>, instance) (increase(rankscope_notifications_dropped_total[1h])) > 0
        or
        sum by (<cluster>, instance) (min_over_time(rankscope_notifications_pending[30m])) > 0""",
        "An exporter cannot send notifications.",
        "{{ $labels.instance }} gave up {{ $value | humanize }} notifications within an hour, or has had so many waiting for half an hour."),
    own("RankscopeStateDiskFails", "warning", "5m", """
        rankscope_disk_behind_seconds > 60
        or
        increase(rankscope_recorder_write_errors_total[15m]) > 0
        or
        increase(rankscope_documents_damaged_total[1h]) > 0""",
        "The disk of an exporter's state does not take what it writes.",
        "state.dir of {{ $labels.instance }} is slow, full or damaged: verdicts and recordings there may be lost at a restart."),
    own("RankscopeMemoryHigh", "warning", "10m", """
        rankscope_memory_used_bytes / (rankscope_memory_limit_bytes > 0) > 0.9""",
        "An exporter has nearly used up its memory.",
        "{{ $labels.instance }} uses {{ $value | humanizePercentage }} of its limit and will watch fewer jobs."),
    own("RankscopeJobsUnwatched", "warning", "0m", "increase(rankscope_jobs_dropped_total[30m]) > 0",
        "An exporter has more jobs than it can watch.",
        "{{ $labels.instance }} ignored {{ $value | humanize }} jobs within half an hour: the limit of jobs was reached."),
]
