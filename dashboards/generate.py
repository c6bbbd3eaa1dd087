# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Writes rankscope_*.json beside this file from boards/. `--check` writes nothing and fails when a file is not what it would write.

    python3 dashboards/generate.py
"""
import json
import sys
from pathlib import Path

from boards import home

HERE = Path(__file__).resolve().parent


def documents():
    """{file name: text}."""
    boards = [home.BOARD, *(module.BOARD for module in home.BOARDS)]
    return {f"rankscope_{board.name}.json": json.dumps(board.document(), indent=1, ensure_ascii=False) + "\n" for board in boards}


def main():
    wanted = documents()
    found = {path.name: path.read_text(encoding="utf-8") for path in HERE.glob("*.json")}
    if sys.argv[1:] == ["--check"]:
        different = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
        print("".join(f"dashboards/{name} is not what dashboards/generate.py writes\n" for name in different), end="")
        sys.exit(1 if different else 0)
    for name in found.keys() - wanted.keys():
        (HERE / name).unlink()
    for name, text in wanted.items():
        (HERE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
