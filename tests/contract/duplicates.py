# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A helper that two rooms need stands once, in a room that both may include."""
import collections
import re

from contract import main, read, sources

# Helpers that stand in more than one room for now. The list only shrinks.
TWICE = {"Among", "Field", "Has", "TakeUntil", "Text"}

UNNAMED = re.compile(r"^namespace \{\n(.*?)^\}  // namespace$", re.M | re.S)
# In formatted code a function of a namespace begins and ends in the first column.
FUNCTION = re.compile(r"^(?!namespace|struct|class|enum|template|using|//|#|\})\S[^\n;={]*(?:\n    [^\n;={]*)*?\b(\w+)\([^;{}]*?\)"
                      r"(?: -> [^{]*)? \{\n(.*?)^\}", re.M | re.S)


def helpers(text):
    """Name and body, without comments and line breaks, of each function of unnamed namespaces."""
    for block in UNNAMED.findall(text):
        for name, body in FUNCTION.findall(block):
            yield name, " ".join(re.sub(r"//[^\n]*", "", body).split())


def test_no_helper_stands_in_two_rooms():
    places = collections.defaultdict(list)
    for path in sources("detectors", "exporter", suffixes=(".h", ".cc")):
        for helper in helpers(read(path)):
            places[helper].append(path)
    if len(places) < 1000:
        return [f"only {len(places)} helpers found: has the form of the code changed?"]
    twice = {helper: paths for helper, paths in places.items() if len({path.parent for path in paths}) > 1}
    findings = [f"{name} stands in {' and '.join(map(str, paths))}: write it once, in a room that both may include"
                for (name, _), paths in sorted(twice.items()) if name not in TWICE]
    return findings + [f"{name} stands in one room now: take it from TWICE" for name in sorted(TWICE - {name for name, _ in twice})]


if __name__ == "__main__":
    main(globals())
