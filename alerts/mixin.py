# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the rule files of Prometheus with your own addresses and thresholds.

    mixin.py --list                                     print every setting, its default and what it is for
    mixin.py --table                                    print the alerts as Markdown
    mixin.py --set runbook_url='https://wiki.example.org/rankscope/{alert}' \\
             --set job_url='https://jobs.example.org/job/{job_id}' FOLDER

FOLDER gets rankscope_alerts.yaml, which needs no other file, and rankscope_rules.yaml, a few recorded series for each job. The files
beside this program are what it writes with the defaults. It needs Python 3.9 and nothing else.
"""
import argparse
import dataclasses
import json
import re
import sys
import textwrap
from pathlib import Path

sys.dont_write_bytecode = True  # where it is installed, nothing but its package writes

import alerts_of_exporters  # noqa: E402
import alerts_of_gpus  # noqa: E402
import alerts_of_jobs  # noqa: E402
import alerts_of_nodes  # noqa: E402
import recorded  # noqa: E402
from rule import Settings, render  # noqa: E402

HEAD = """\
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
# Written by mixin.py: change its tables, or its settings with --set, and not this file.
"""
ALERT_GROUPS = {
    "rankscope.jobs": alerts_of_jobs.LIVE, "rankscope.checkpoints": alerts_of_jobs.CHECKPOINTS,
    "rankscope.gpus": alerts_of_gpus.ALERTS, "rankscope.nodes": alerts_of_nodes.ALERTS,
    "rankscope.exporters": alerts_of_exporters.ALERTS,
}


def all_alerts():
    return [alert for group in ALERT_GROUPS.values() for alert in group]


def quoted(text):
    return json.dumps(text, ensure_ascii=False)  # a string of JSON is one of YAML


def expression_lines(text):
    lines = text.splitlines()
    if len(lines) == 1:
        return [f"        expr: {quoted(text) if re.search(r': |#', text) else text}"]
    return ["        expr: |-", *(f"          {line}" for line in lines)]


def alert_lines(alert, settings):
    yield f"      - alert: {alert.name}"
    yield from expression_lines(render(alert.expression(), settings))
    if alert.wait:
        yield f"        for: {render(alert.wait, settings)}"
    yield f"        labels: {{{', '.join(f'{key}: {value}' for key, value in alert.own_labels().items())}}}"
    yield "        annotations:"
    for key, value in alert.annotations(settings).items():
        yield f"          {key}: {quoted(value)}"


def recorded_lines(name, rules, settings):
    yield from (f"  - name: {name}", "    rules:")
    for series, expression in rules.items():
        yield f"      - record: {series}"
        yield from expression_lines(render(textwrap.dedent(expression).strip(), settings))


def alerts_file(settings):
    lines = list(recorded_lines("rankscope.owners", recorded.OWNERS, settings))
    for name, alerts in ALERT_GROUPS.items():
        lines += [f"  - name: {name}", "    rules:"]
        for alert in alerts:
            lines += alert_lines(alert, settings)
    return HEAD + "groups:\n" + "\n".join(lines) + "\n"


def rules_file(settings):
    return HEAD + "groups:\n" + "\n".join(recorded_lines("rankscope.training_jobs", recorded.JOBS, settings)) + "\n"


def files(settings):
    return {"rankscope_rules.yaml": rules_file(settings), "rankscope_alerts.yaml": alerts_file(settings)}


def settings_from(words):
    fields = {field.name for field in dataclasses.fields(Settings)}
    values = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in fields or not equals:
            sys.exit(f"mixin.py: '{word}' sets nothing; --list prints the names of the settings")
        values[key] = value
    return Settings(**values)


def table():
    yield from ("| alert | severity | domain | after | when |", "| --- | --- | --- | --- | --- |")
    for alert in all_alerts():
        wait = render(alert.wait, Settings())
        yield (f"| [{alert.name}](runbooks/{alert.name}.md) | {alert.severity} | {alert.domain or 'of the verdict'} | "
               f"{'at once' if wait == '0m' else wait} | {alert.summary} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", dest="words", help="may be repeated")
    parser.add_argument("--list", action="store_true", help="print the settings and write nothing")
    parser.add_argument("--table", action="store_true", help="print the alerts as Markdown and write nothing")
    parser.add_argument("folder", type=Path, nargs="?", help="where to write; must exist")
    arguments = parser.parse_args()
    settings = settings_from(arguments.words)
    if arguments.list:
        for field in dataclasses.fields(Settings):
            print(f"{field.name}={getattr(settings, field.name)}\n    {field.metadata['what']}")
        return
    if arguments.table:
        print("\n".join(table()))
        return
    if arguments.folder is None or not arguments.folder.is_dir():
        parser.error("name a folder that exists")
    for name, text in files(settings).items():
        (arguments.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
