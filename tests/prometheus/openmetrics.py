# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A strict reader of OpenMetrics 1.0 text, from the specification's grammar and its MUSTs, for the types served here.

`read(page)` -> {family: Family}; raises Invalid with the line that breaks a rule. Where the specification says SHOULD about
what an exposer writes (order of metadata, '# EOF' with its line end), this reader says must.
"""
import math
import re
from dataclasses import dataclass, field

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[n"\\])*)"')
NUMBER = re.compile(r"[+-]?(?:\d+|\d+\.\d*(?:e[+-]?\d+)?|\d*\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+|inf|infinity|nan)", re.I)
ESCAPED = re.compile(r'(?:[^"\\\n]|\\[n"\\])*')
UNESCAPE = re.compile(r'\\([n"\\])')

# Suffixes of sample names, by type: of those that must be there, and of those that may.
SUFFIXES = {"counter": ({"_total"}, {"_created"}), "gauge": ({""}, set()), "info": ({"_info"}, set()),
            "stateset": ({""}, set()), "unknown": ({""}, set()),
            "histogram": ({"_bucket", "_sum", "_count"}, {"_created"})}
BOUND = re.compile(r"\d+\.\d+|\+Inf")  # a canonical number
METADATA = ["TYPE", "UNIT", "HELP"]


class Invalid(Exception):
    """A line that is not OpenMetrics."""


@dataclass
class Family:
    name: str
    metadata: dict = field(default_factory=dict)
    samples: dict = field(default_factory=dict)  # (sample name, labels) -> value

    @property
    def type(self):
        return self.metadata.get("TYPE", "unknown")


def require(condition, line, why):
    if not condition:
        raise Invalid(f"{why}: {line!r}")


def unescape(text):
    return UNESCAPE.sub(lambda match: {"n": "\n"}.get(match[1], match[1]), text)


def read_metadata(line):
    """(keyword, family, text) of `# KEYWORD family text`."""
    parts = line.split(" ", 3)
    require(len(parts) == 4 and parts[0] == "#" and parts[1] in METADATA, line, "a # line that is neither metadata nor EOF")
    _, keyword, name, text = parts
    require(NAME.fullmatch(name), line, "no name of a family")
    if keyword == "TYPE":
        require(text in SUFFIXES, line, "no type that is served here")
    elif keyword == "UNIT":
        require(text and name.endswith("_" + text), line, "the unit is not the name's suffix")
    else:
        require(ESCAPED.fullmatch(text), line, "HELP is not escaped")
    return keyword, name, text


def read_labels(text, line):
    """({label: value}, what follows '}'), `text` being what follows '{'."""
    labels = {}
    while not text.startswith("}"):
        match = LABEL.match(text)
        require(match, line, "no label")
        require(match[1] not in labels, line, "a label twice")
        labels[match[1]] = unescape(match[2])
        text = text[match.end():]
        require(text.startswith(("}", ",")), line, "labels are not separated by ','")
        if text.startswith(","):
            text = text[1:]
            require(not text.startswith("}"), line, "a ',' behind the last label")
    return labels, text[1:]


def read_sample(line):
    """(name, labels, value). No timestamps or exemplars: this exporter writes none."""
    match = NAME.match(line)
    require(match, line, "no sample name")
    labels, rest = {}, line[match.end():]
    if rest.startswith("{"):
        labels, rest = read_labels(rest[1:], line)
    require(rest.startswith(" ") and NUMBER.fullmatch(rest[1:]), line, "no number behind one blank")
    return match[0], labels, float(rest[1:])


def check_value(family, name, labels, value, line):
    if family.type == "counter":
        require(math.isfinite(value) and value >= 0, line, "a counter is neither negative nor not a number")
    elif family.type == "info":
        require(value == 1, line, "an info is 1")
    elif family.type == "histogram":
        require(math.isfinite(value) and value >= 0, line, "counts, and sums of what is not negative, are no less than 0")
        bucket = name.endswith("_bucket")
        require(("le" in labels) == bucket, line, "buckets have a bound, and nothing else")
        require(not bucket or BOUND.fullmatch(labels["le"]), line, "a bound is a canonical number")
    elif family.type == "stateset":
        require(family.name in labels and value in (0, 1), line, "a state set has its own label, 0 or 1")


def check_histogram(family):
    """Of each set of labels: bounds and counts rise, and the last bucket holds everything."""
    buckets, counts, sums = {}, {}, set()
    for (name, labels), value in family.samples.items():
        others = tuple(pair for pair in labels if pair[0] != "le")
        if name.endswith("_bucket"):
            buckets.setdefault(others, []).append((float(dict(labels)["le"]), value))
        elif name.endswith("_count"):
            counts[others] = value
        else:
            sums.add(others)
    require(buckets.keys() == counts.keys() == sums, family.name, "buckets, sum and count go together")
    for labels, pairs in buckets.items():
        bounds, values = zip(*pairs)
        require(list(bounds) == sorted(set(bounds)) and bounds[-1] == math.inf, family.name, "bounds rise to +Inf")
        require(list(values) == sorted(values) and values[-1] == counts[labels], family.name, "buckets hold those before them")


def check_names(families, line):
    """No sample name may belong to two families, whether it is shown or not."""
    owners = {}
    for family in families.values():
        must, may = SUFFIXES[family.type]
        for name in {family.name} | {family.name + suffix for suffix in must | may}:
            require(name not in owners, line, f"{name} belongs to {family.name} and to {owners.get(name)}")
            owners[name] = family.name


def read(page):
    require(isinstance(page, bytes), page, "a page is bytes")
    require(page.endswith(b"\n# EOF\n") or page == b"# EOF\n", page[-20:], "the page does not end with '# EOF'")
    require(b"\r" not in page and not page.startswith(b"\xef\xbb\xbf"), page[:20], "carriage return or byte order mark")
    families, current = {}, None
    for line in page.decode("utf-8").split("\n")[:-2]:
        require(line, line, "an empty line")
        if line.startswith("#"):
            keyword, name, text = read_metadata(line)
            if current is None or current.name != name:
                require(name not in families, line, "a family in two places")
                current = families[name] = Family(name)
            require(not current.samples, line, "metadata behind samples")
            order = [METADATA.index(known) for known in [*current.metadata, keyword]]
            require(order == sorted(set(order)), line, "metadata twice or not in the order TYPE, UNIT, HELP")
            current.metadata[keyword] = text
            continue
        name, labels, value = read_sample(line)
        require(current, line, "a sample without a family")
        must, may = SUFFIXES[current.type]
        require(name in {current.name + suffix for suffix in must | may}, line, f"no sample of {current.name}")
        key = (name, tuple(sorted(labels.items())))
        require(key not in current.samples, line, "a series twice")
        check_value(current, name, labels, value, line)
        current.samples[key] = value
    check_names(families, "# EOF")
    for family in families.values():
        if family.type == "histogram":
            check_histogram(family)
    return families
