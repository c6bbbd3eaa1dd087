# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Every board is a dashboard by Grafana's own schema, its queries are PromQL by Prometheus's own grammar, and Grafana's components draw
it in a real browser, with the data of a node that is well and then falls ill. The pictures stay, to be looked at.

Usage: rendered_test.py RANKSCOPE STUB_TRAINER STUB_LIBRARIES FAKE_NVML SOURCE_DIR FOLDER
"""
import contextlib
import html
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys
import time

from board_node import BoardNode
from dashboards_test import Check
from support import SKIPPED, Prometheus, need, wait_for

NPM = "https://registry.npmjs.org"
STEP = 1  # seconds from point to point
WELL = 15  # seconds of curves before the node falls ill
PAGE = """<!doctype html><html><head><meta charset="utf-8"><style>body {{ margin: 0; width: 1416px; }} {style}</style></head>
<body><div id="root"></div><script>window.board = {board};</script><script src="page.js"></script></body></html>"""
BUILD = ["--bundle", "--format=iife", "--jsx=automatic", "--outfile=page.js", "--minify", '--define:process.env.NODE_ENV="production"',
         "--loader:.svg=dataurl", "--loader:.woff2=dataurl", "--loader:.ttf=empty", "--log-level=error"]


def run(folder, *command, seconds=300):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=seconds)
    assert done.returncode == 0, f"{' '.join(command)[:200]}: {done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


def install(source, folder):
    """Packages of npm, once."""
    for path in (source / "tests/prometheus/rendered").iterdir():
        shutil.copy(path, folder)
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefer-offline"], cwd=folder, capture_output=True,
                          text=True, check=False, timeout=900)
    if done.returncode != 0:
        print(f"SKIPPED: npm cannot install from {NPM}: {done.stderr[-300:]}")
        sys.exit(SKIPPED)


def check_schema(boards, folder):
    types = next((folder / "node_modules/@grafana/schema/dist/types/raw/dashboard").glob("*/types.gen.d.ts"))
    run(folder, "node_modules/.bin/ts-json-schema-generator", "--path", str(types), "--type", "Dashboard", "--no-type-check", "-o", "schema.json")
    print(run(folder, "node", "check.mjs", "schema.json", *map(str, boards)).strip())


def filled(query, jobs):
    return re.sub(r"\$\{?\w+\}?", ".+", query.replace("$__rate_interval", "4s").replace("$job_id", "|".join(jobs)))


def answers(prometheus, board, jobs, begin, end):
    """{panel id: [[series of each query]]}, as Grafana would have them."""
    found = {}
    for panel in board["panels"]:
        for target in panel.get("targets", ()):
            query = filled(target["expr"], jobs)
            if target.get("instant"):
                series = [(labels, [(end, value)]) for labels, value in prometheus.query(query, at=end)]
            else:
                series = prometheus.query_range(query, begin, end, STEP)
            found.setdefault(panel["id"], []).append(
                [{"labels": labels, "points": [[moment * 1000, None if math.isnan(float(value)) else float(value)] for moment, value in points]}
                 for labels, points in series])
    return found


def record(arguments, boards, folder):
    """Writes a page for each board; returns {board: titles of panels without data}."""
    empty = {}
    with BoardNode(*arguments) as node, contextlib.closing(
            Prometheus(node.folder, None, interval="500ms", jobs=node.scrape_configs())) as prometheus:
        wait_for("a scrape", lambda: len(prometheus.query("up == 1")) == 3)
        wait_for("the GPUs", lambda: prometheus.query('rankscope_source_up{source="nvml"} == 1'))
        begin = time.time()
        Check(prometheus, pathlib.Path(arguments[4])).run(node.HEALTHY, broken=False)
        time.sleep(max(0, begin + WELL - time.time()))  # curves for people, not a wait for anything
        node.fall_ill()
        Check(prometheus, pathlib.Path(arguments[4])).run(node.BROKEN, broken=True)
        wait_for("the hang", lambda: prometheus.query('rankscope_verdict_info{family="collective_hang"}'), seconds=120)
        end = time.time()
        for path in boards:
            board = json.loads(path.read_text(encoding="utf-8"))
            found = answers(prometheus, board, [*node.HEALTHY, *node.BROKEN], begin, end)
            empty[path.stem] = {panel["title"] for panel in board["panels"] if panel["id"] in found and not any(found[panel["id"]])}
            text = json.dumps({"board": board, "frames": found, "from": begin * 1000, "to": end * 1000, "step": STEP * 1000})
            (folder / f"{path.stem}.html").write_text(PAGE.format(board=text.replace("</", "<\\/"), style=(folder / "page.css").read_text(
                encoding="utf-8")), encoding="utf-8")
    return empty


def draw(board, folder):
    """The page as the browser has it in the end, and a picture of it."""
    page = (folder / f"{board.stem}.html").as_uri()
    height = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in json.loads(board.read_text(encoding="utf-8"))["panels"]) * 38 + 60
    browser = ["chromium-headless-shell", "--no-sandbox", "--hide-scrollbars", "--allow-file-access-from-files", f"--window-size=1416,{height}",
               "--virtual-time-budget=8000"]
    run(folder, *browser, f"--screenshot={folder}/{board.stem}.png", page)
    return run(folder, *browser, "--dump-dom", page)


def main():
    source, folder = pathlib.Path(sys.argv[5]), pathlib.Path(sys.argv[6])
    for program in ("prometheus", "npm", "node", "chromium-headless-shell"):
        need(program)
    folder.mkdir(parents=True, exist_ok=True)
    boards = sorted((source / "dashboards").glob("*.json"))
    install(source, folder)
    check_schema(boards, folder)
    run(folder, "node_modules/.bin/esbuild", "page.jsx", *BUILD)
    empty = record(sys.argv[1:6], boards, folder)
    for board in boards:
        page = draw(board, folder)
        failed = re.search(r'<pre id="failed">.{,2000}', page, re.S)
        assert not failed, f"{board.stem}: {failed[0]}"
        titles = {panel["title"] for panel in json.loads(board.read_text(encoding="utf-8"))["panels"] if panel["type"] != "row"}
        drawn = {html.unescape(title) for title in re.findall(r'data-panel="([^"]*)"', page)}
        assert drawn == titles, f"{board.stem}: {drawn ^ titles}"
        assert page.count('class="empty"') == len(empty[board.stem]), f"{board.stem}: not each panel without data says why: {sorted(empty[board.stem])}"
        print(f"{board.stem}: {len(drawn)} panels drawn, without data {sorted(empty[board.stem])}: {folder}/{board.stem}.png")
    print("ok")


if __name__ == "__main__":
    main()
