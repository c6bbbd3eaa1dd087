# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Alerts on the exporters themselves."""
from case import JOB, ON_NODE, Case

N1 = {"node": "n1", "domain": "exporter"}
UP = 'up{instance="n1:10177",job="rankscope"}'
TICK = "rankscope_last_tick_timestamp_seconds @n1"


def source(metric, name="procfs"):
    return f'rankscope_source_{metric}{{source="{name}"}} @n1'


CASES = [
    Case("RankscopeExporterDown", "its job is known still", {**{key: "1x3 stale" for key in JOB}, UP: "1x3 0x60"},
         {8: [], 12: [{**ON_NODE, "domain": "exporter", "severity": "warning"}]}),
    Case("RankscopeExporterDown", "a restart, and somebody else's exporter", {UP: "1x3 0x3 1x60", 'up{instance="n1:9100",job="node"}': "0x60"}, {8: [], 30: []}),
    Case("RankscopeExporterAbsent", "no target", {'up{instance="n1:9100",job="node"}': "1x60"}, {5: [], 12: [{"domain": "exporter", "severity": "warning"}]}),
    Case("RankscopeExporterAbsent", "one that is down is no lack of targets", {UP: "0x60"}, {12: []}),
    Case("RankscopeExporterStalled", "no tick for minutes", {TICK: "0+60x8 480x30"}, {9: [], 12: [N1]}),
    Case("RankscopeExporterStalled", "a tick each minute", {TICK: "0+60x40"}, {12: [], 39: []}),
    Case("RankscopeSourceDown", "one that has worked", {source("up"): "1 1 1 0x20"}, {6: [], 9: [{**N1, "source": "procfs"}]}),
    Case("RankscopeSourceDown", "one that never worked here", {source("up", "proc_connector"): "0x20"}, {9: [], 20: []}),
    Case("RankscopeEvidenceLost", "events, all the time", {source("lost_total", "stdio"): "0+5x40"}, {5: [], 15: [{**N1, "source": "stdio"}]}),
    Case("RankscopeEvidenceLost", "a few at the start", {source("lost_total", "stdio"): "3x40", "rankscope_recorder_lost_total @n1": "0x40"}, {15: [], 39: []}),
    Case("RankscopeSeriesDropped", "at each tick", {'rankscope_series_dropped_total{reason="cap_rank"} @n1': "0+5x30"},
         {5: [], 20: [{**N1, "reason": "cap_rank", "severity": "info"}]}),
    Case("RankscopeSeriesDropped", "once", {'rankscope_series_dropped_total{reason="cap_log"} @n1': "7x30"}, {20: []}),
    Case("RankscopeConfigRejected", "a mistake in the file", {"rankscope_config_last_reload_successful @n1": "1x5 0x30"}, {5: [], 15: [N1]}),
    Case("RankscopeConfigRejected", "a mistake in the certificates", {"rankscope_web_config_last_reload_successful @n1": "0x30"}, {15: [N1]}),
    Case("RankscopeConfigRejected", "a good one", {"rankscope_config_last_reload_successful @n1": "1x30"}, {15: []}),
    Case("RankscopeNotificationsFail", "one was given up", {'rankscope_notifications_dropped_total{reason="refused"} @n1': "0x5 1x30"}, {5: [], 15: [N1]}),
    Case("RankscopeNotificationsFail", "they wait for half an hour", {'rankscope_notifications_pending{channel_kind="email"} @n1': "0x5 3x60"}, {30: [], 45: [N1]}),
    Case("RankscopeNotificationsFail", "one that waits for minutes",
         {'rankscope_notifications_pending{channel_kind="email"} @n1': "0 1 1 0 1 2 0x60", 'rankscope_notifications_dropped_total{reason="refused"} @n1': "2x60"},
         {10: [], 50: []}),
    Case("RankscopeStateDiskFails", "a disk that does not answer", {"rankscope_disk_behind_seconds @n1": "0x5 0+60x30"}, {6: [], 20: [N1]}),
    Case("RankscopeStateDiskFails", "writes that fail", {"rankscope_recorder_write_errors_total @n1": "0x5 0+1x30"}, {20: [N1]}),
    Case("RankscopeStateDiskFails", "a busy disk, and an error of before",
         {"rankscope_disk_behind_seconds @n1": "0 5 30 0 12 0x30", "rankscope_recorder_write_errors_total @n1": "4x30"}, {6: [], 20: []}),
    Case("RankscopeMemoryHigh", "nearly all of it", {"rankscope_memory_used_bytes @n1": "95x30", "rankscope_memory_limit_bytes @n1": "100x30"}, {5: [], 15: [N1]}),
    Case("RankscopeMemoryHigh", "most of it", {"rankscope_memory_used_bytes @n1": "85x30", "rankscope_memory_limit_bytes @n1": "100x30"}, {15: []}),
    Case("RankscopeJobsUnwatched", "a job too many", {"rankscope_jobs_dropped_total @n1": "0x5 1x60"}, {5: [], 8: [N1], 60: []}),
    Case("RankscopeJobsUnwatched", "none", {"rankscope_jobs_dropped_total @n1": "0x60"}, {8: []}),
]
