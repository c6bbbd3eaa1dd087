# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""What boards are made of: panels as one call each, and a board that lays them out.

In a query, `{@job}` stands for the choice of training job, scrape job and node at the top of a board, and `{@node}` for the last
two; `{@job,state="a"}` adds a matcher. Every panel has a title, a description, a unit, and a text that says why it may be empty.
"""
NODES = 'job=~"$job",instance=~"$instance"'
JOBS = 'job_id=~"$job_id",' + NODES

# Legends. `instance` is the node's name and port, as in links; a rank is never without its node.
HOST = "{{instance}}"
JOB = "{{job_id}}"
RANK = "{{instance}} rank {{rank}} of {{job_id}}"
RANK_GPU = "{{instance}} rank {{rank}} GPU {{gpu}} of {{job_id}}"
GPU = "{{instance}} GPU {{gpu}}"

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
SEVERITIES = (("ok", "green"), ("info", "blue"), ("warning", "yellow"), ("critical", "red"))
# What a node's daemon has of one job, before the job's number.
JOB_PAGE = "/job/"
# What a verdict table shows, in this order.
VERDICT_COLUMNS = ("job_id", "severity", "code", "family", "sub", "domain", "phase", "state", "instance")
WIDTHS = {"severity": 90, "code": 60, "phase": 90, "state": 80, "gpu": 60, "rank": 60, "domain": 120}
GREEN_OR_RED = ((None, "green"), (1, "red"))
RED_OR_GREEN = ((None, "red"), (1, "green"))


def expand(query):
    return query.replace("@job", JOBS).replace("@node", NODES)


def verdict_rank(scope="@job"):
    """The number of the verdict's severity: 0 ok, 1 info, 2 warning, 3 critical."""
    return " or ".join(f'{number} * rankscope_verdict_info{{{scope},severity="{word}"}}' for number, (word, _) in enumerate(SEVERITIES))


def on_gpus_of_ranks(metric):
    """A metric of GPUs, for the GPUs of the chosen jobs' ranks."""
    return ("max by (instance, job_id, rank, gpu, gpu_uuid) (rankscope_rank_gpu_info{@job}) * on (instance, gpu_uuid) "
            f"group_left () max by (instance, gpu_uuid) ({metric})")


def extremes(query, by="job_id"):
    """Of many ranks those with the largest and the smallest values: a curve for each of 4,096 is none that a browser draws or a person reads."""
    return f"topk by ({by}) (8, {query}) or bottomk by ({by}) (8, {query})"


def severity_mapping(as_number):
    return {"type": "value", "options": {str(number) if as_number else word: {"text": word, "color": color, "index": number}
                                         for number, (word, color) in enumerate(SEVERITIES)}}


def switch_mapping(zero, one):
    """0 and 1 as (word, color)."""
    return {"type": "value", "options": {str(value): {"text": text, "color": color, "index": value}
                                         for value, (text, color) in enumerate((zero, one))}}


def steps(pairs):
    return {"mode": "absolute", "steps": [{"color": color, "value": value} for value, color in pairs]}


def _panel(kind, title, says, unit, empty, queries, size, options, **defaults):
    """`queries`: [(legend, PromQL)]."""
    instant = kind in ("table", "stat", "bargauge")
    targets = [{"datasource": SOURCE, "refId": chr(ord("A") + number), "expr": expand(query), "legendFormat": legend,
                **({"instant": True, "range": False} if instant else {}), **({"format": "table"} if kind == "table" else {})}
               for number, (legend, query) in enumerate(queries)]
    return {"type": kind, "title": title, "description": says, "datasource": SOURCE, "gridPos": dict(zip("wh", size)),
            "fieldConfig": {"defaults": {"unit": unit, "noValue": empty, **defaults}, "overrides": []},
            "options": options, "targets": targets}


def lines(title, says, unit, empty, *queries, size=(12, 8), stacked=False, **defaults):
    """Curves over time; from zero, unless `min` says otherwise."""
    custom = {"lineWidth": 1, "fillOpacity": 30 if stacked else 8, "showPoints": "auto", "spanNulls": False,
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    defaults = {"min": 0, **defaults}
    if defaults["min"] is None:
        del defaults["min"]
    return _panel("timeseries", title, says, unit, empty, queries, size,
                  {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                   "tooltip": {"mode": "multi", "sort": "desc"}}, custom=custom, **defaults)


def stat(title, says, unit, empty, query, size=(4, 4), colors=((None, "text"),), legend="", **defaults):
    """One number, now."""
    return _panel("stat", title, says, unit, empty, [(legend, query)], size,
                  {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "colorMode": "value", "graphMode": "none",
                   "textMode": "auto", "justifyMode": "auto", "orientation": "auto"}, thresholds=steps(colors), **defaults)


def bars(title, says, unit, empty, legend, query, size=(12, 8), colors=((None, "blue"),), **defaults):
    """One bar for each series, now."""
    return _panel("bargauge", title, says, unit, empty, [(legend, query)], size,
                  {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "orientation": "horizontal",
                   "displayMode": "basic", "valueMode": "color", "showUnfilled": True, "minVizHeight": 10, "minVizWidth": 0,
                   "sizing": "auto", "namePlacement": "left"},
                  thresholds=steps(colors), min=0, **defaults)


def strip(title, says, unit, empty, legend, query, size=(24, 8), colors=((None, "blue"),), mappings=(), scheme=None):
    """One row for each series, time to the right, colored by value: a strip for each rank or GPU."""
    color = {"color": {"mode": scheme}} if scheme else {}
    return _panel("state-timeline", title, says, unit, empty, [(legend, query)], size,
                  {"mergeValues": True, "showValue": "never", "rowHeight": 0.8, "alignValue": "center", "perPage": 32,
                   "legend": {"displayMode": "list", "placement": "bottom", "showLegend": bool(mappings)}, "tooltip": {"mode": "single", "sort": "none"}},
                  thresholds=steps(colors), mappings=list(mappings), custom={"fillOpacity": 80, "lineWidth": 0}, **color)


def heat(title, says, unit, empty, legend, query, size=(24, 8), colors=((None, "blue"),), **defaults):
    """The same for numbers: one cell for each series and step of time."""
    return _panel("status-history", title, says, unit, empty, [(legend, query)], size,
                  {"showValue": "never", "rowHeight": 0.9, "colWidth": 0.95, "perPage": 32,
                   "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False}, "tooltip": {"mode": "single", "sort": "none"}},
                  thresholds=steps(colors), custom={"fillOpacity": 90, "lineWidth": 0}, **defaults)


def table(title, says, unit, empty, query, columns, size=(24, 8), value="value", sort=None, largest_first=False):
    """One row for each series: the labels `columns` in this order, then the number, named `value`, or None to hide it. The unit is that of
    the number alone: as one of the panel it would make a date of a GPU's index."""
    panel = _panel("table", title, says, "none", empty, [("", query)], size,
                   {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "countRows": False, "fields": ""},
                    "sortBy": [{"displayName": sort or (value if largest_first else columns[0]), "desc": largest_first}]},
                   custom={"align": "left", "cellOptions": {"type": "auto"}, "inspect": False})
    if unit != "none":
        override(panel, value, unit=unit)
    hidden = ["Time"] if value else ["Time", "Value"]
    order = {name: number for number, name in enumerate([*columns, "Value"])}
    panel["transformations"] = [{"id": "organize", "options": {
        "excludeByName": {name: True for name in hidden}, "indexByName": order, "renameByName": {"Value": value} if value else {}}}]
    for name in [each for each in columns if each in WIDTHS]:
        override(panel, name, **{"custom.width": WIDTHS[name]})
    if "severity" in columns:
        override(panel, "severity", mappings=[severity_mapping(False)], **{"custom.cellOptions": {"type": "color-text"}})
    if "job_id" in columns:
        links = [{"title": "Board of this job", "url": "/d/rankscope-job?var-job_id=${__value.raw}&${datasource:queryparam}&${__url_time_range}"}]
        if "instance" in columns:
            links.append({"title": "Its verdict, from its node", "url": "http://${__data.fields.instance}" + JOB_PAGE + "${__value.raw}", "targetBlank": True})
        override(panel, "job_id", links=links)
    if "instance" in columns:
        override(panel, "instance", links=[
            {"title": "Board of this node", "url": "/d/rankscope-node?var-instance=${__value.raw}&${datasource:queryparam}&${__url_time_range}"},
            {"title": "Status page of this node", "url": "http://${__value.raw}/", "targetBlank": True}])
    return panel


def override(panel, field, **properties):
    panel["fieldConfig"]["overrides"].append({
        "matcher": {"id": "byName", "options": field},
        "properties": [{"id": name, "value": value} for name, value in properties.items()]})


def verdicts(title, says, empty, scope, size=(24, 8)):
    """The verdicts of jobs now, with their confidence. Of the nodes that say the same of a job, one stands for all."""
    labels = ", ".join(VERDICT_COLUMNS)
    return table(
        title, says, "percentunit", empty,
        f"topk by (job_id, family, code) (1, max by ({labels}) (rankscope_verdict_info{{{scope}}}) "
        f"* on (instance, job_id, family) group_left () max by (instance, job_id, family) (rankscope_verdict_confidence_ratio{{{scope}}}))",
        VERDICT_COLUMNS, size=size, value="confidence", sort="severity")


def text(title, says, content, size=(24, 8)):
    return {"type": "text", "title": title, "description": says, "gridPos": dict(zip("wh", size)),
            "options": {"mode": "markdown", "content": content}}


def row(title, *panels):
    """A heading and the panels below it."""
    return [{"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": {"w": 24, "h": 1}}, *panels]


def _variable(name, label, query, **choice):
    return {"name": name, "label": label, "type": "query", "datasource": SOURCE, "query": {"query": query, "refId": name}, "multi": True,
            "refresh": 2, "sort": 1, **choice}


def _variables(choose_job, choose_node):
    every = {"includeAll": True, "current": {"text": "All", "value": "$__all"}}
    found = [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus",
              "current": {"text": "default", "value": "default"}},
             _variable("job", "Scrape job", "label_values(rankscope_build_info, job)", **every),  # by name: others have `up`, too
             _variable("instance", "Node", 'label_values(rankscope_build_info{job=~"$job"}, instance)',
                       **({"includeAll": False} if choose_node else {"allValue": ".+", **every}))]
    if choose_job:
        found.append(_variable("job_id", "Training job", f"label_values(rankscope_verdict_info{{{NODES}}}, job_id)", includeAll=False))
    return found


def _verdict_changes(scope):
    """A mark at the time of each change: the value is the time, in milliseconds."""
    labels = "job_id, family, code, severity, domain"
    return {"name": "Verdict changes", "enable": True, "hide": False, "iconColor": "orange", "datasource": SOURCE, "useValueForTime": True,
            "expr": expand(f"1000 * max by (job_id) (rankscope_verdict_updated_timestamp_seconds{{{scope}}}) "
                           f"* on (job_id) group_right () max by ({labels}) (rankscope_verdict_info{{{scope}}})"),
            "step": "15s", "titleFormat": "Verdict of {{job_id}}", "textFormat": "{{code}} {{family}} ({{severity}}, {{domain}})",
            "tagKeys": "severity,domain"}


def _lay_out(panels):
    """From left to right, and below when a row of 24 columns is full."""
    left = top = height = 0
    for number, panel in enumerate(panels, 1):
        place = panel["gridPos"]
        if left + place["w"] > 24:
            left, top, height = 0, top + height, 0
        panel["id"] = number
        panel["gridPos"] = {"x": left, "y": top, "w": place["w"], "h": place["h"]}
        left, height = left + place["w"], max(height, place["h"])
        if left == 24:
            left, top, height = 0, top + height, 0
    return panels


class Board:
    """One dashboard, in the file rankscope_NAME.json. `asks` is the question that it answers."""

    def __init__(self, name, title, asks, *rows, choose_job=False, choose_node=False, hours=1):
        self.name, self.title, self.asks = name, title, asks
        self._rows, self._choose_job, self._choose_node, self._hours = rows, choose_job, choose_node, hours

    def document(self):
        return {
            "id": None, "uid": f"rankscope-{self.name}", "title": f"Rankscope / {self.title}", "description": self.asks,
            "tags": ["rankscope-mixin"], "schemaVersion": 40, "version": 1, "editable": False, "graphTooltip": 1, "refresh": "30s",
            "time": {"from": f"now-{self._hours}h", "to": "now"}, "timezone": "utc", "fiscalYearStartMonth": 0, "preload": False, "weekStart": "",
            "annotations": {"list": [_verdict_changes("@job" if self._choose_job else "@node")]},
            "links": [{"title": "Boards", "type": "dashboards", "tags": ["rankscope-mixin"], "asDropdown": True, "icon": "external link",
                       "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}],
            "templating": {"list": _variables(self._choose_job, self._choose_node)},
            "panels": _lay_out([panel for each in self._rows for panel in each]),
        }
