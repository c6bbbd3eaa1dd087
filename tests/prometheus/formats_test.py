# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes each format and keeps the same series with the same values.

Usage: formats_test.py FLIP_SERVER SOURCE_DIR
"""
import contextlib
import re
import sys
import tempfile

from support import FlipServer, Prometheus, Proxy, fetch, need, wait_for

TEXT, OPENMETRICS, PROTOBUF = "text", "openmetrics", "protobuf"
CONTENT_TYPES = {
    TEXT: "text/plain; version=0.0.4; charset=utf-8",
    OPENMETRICS: "application/openmetrics-text; version=1.0.0; charset=utf-8",
    PROTOBUF: "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited",
}
# What Prometheus 3 sends by default; 2.42 reads the answer to it all the same.
PROMETHEUS_3 = ("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
                "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
                "text/plain;version=0.0.4;q=0.2,*/*;q=0.1")

# (what, Accept put in place of Prometheus' own or None, flags, format, Content-Type).
SCRAPES = [
    ("Prometheus as it comes", None, (), OPENMETRICS, CONTENT_TYPES[OPENMETRICS]),
    ("native histograms", None, ("--enable-feature=native-histograms",), PROTOBUF, CONTENT_TYPES[PROTOBUF]),
    ("vmagent's Accept", "text/plain;version=0.0.4;q=1,*/*;q=0.1", (), TEXT, CONTENT_TYPES[TEXT]),
    ("Prometheus 3's Accept", PROMETHEUS_3, (), OPENMETRICS, CONTENT_TYPES[OPENMETRICS] + "; escaping=underscores"),
]

SAMPLE = re.compile(r'(\w+)(?:\{(.*)\})? (\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
COUNTS = re.compile(r'rankscope_http_scrapes_total\{format="(\w+)"\} (\d+)')


def scrapes(server, state):
    """{format: pages served}, this one not yet among them."""
    server.publish(state)
    return {name: int(count) for name, count in COUNTS.findall(fetch(server.url + "/metrics"))}


def unescaped(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def on_the_page(server):
    """{series: value} of the text page. To Prometheus an empty label is none."""
    series = {}
    for line in fetch(server.url + "/metrics").splitlines():
        if not line.startswith("#"):
            name, labels, value = SAMPLE.fullmatch(line).groups()
            pairs = [("__name__", name), *((label, unescaped(text)) for label, text in LABEL.findall(labels or ""))]
            series[frozenset((label, text) for label, text in pairs if text)] = float(value)
    return series


def in_prometheus(prometheus):
    """{series: value} that Prometheus holds of the target, without what it adds itself."""
    series = {}
    for labels, value in prometheus.query('{job="rankscope"}'):
        if labels["__name__"] == "up" or labels["__name__"].startswith("scrape_"):
            continue
        labels = {name: text for name, text in labels.items() if name not in ("job", "instance")}
        series[frozenset(labels.items())] = float(value)
    return series


def same(a, b):
    return a.keys() == b.keys() and all(a[key] == b[key] or (a[key] != a[key] and b[key] != b[key]) for key in a)


def scrape(server, accept, flags, expected):
    """Scrapes until Prometheus has what is on the page; what passed between the two."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Proxy(server.address, accept)) as proxy, \
            contextlib.closing(Prometheus(folder, proxy.address, flags=flags)) as prometheus:
        wait_for("the first scrape", lambda: prometheus.value('up{job="rankscope"}') == "1")
        wait_for("the page's series and values", lambda: same(in_prometheus(prometheus), expected))
        assert prometheus.value("scrape_samples_scraped") == str(len(expected))
        types = {labels["__name__"] for labels, _ in prometheus.query('{__name__=~"rankscope_.*_(created|count|sum|bucket)"}')}
        histograms = ("rankscope_cuda_launch_gap_seconds", "rankscope_slurm_call_seconds")
        assert types == {f"{name}_{part}" for name in histograms for part in ("bucket", "sum", "count")}, types
        assert prometheus.value('histogram_quantile(0.5, rankscope_cuda_launch_gap_seconds_bucket)') is not None
        return list(proxy.seen)


def main():
    need("prometheus")
    with contextlib.closing(FlipServer(sys.argv[1])) as server:
        for what, accept, flags, form, content_type in SCRAPES:
            before = scrapes(server, "diverged")
            expected = on_the_page(server)
            assert any(value != value for value in expected.values()), "the state has a NaN"
            seen = scrape(server, accept, flags, expected)
            assert {answer[2] for answer in seen} == {content_type}, (what, seen)
            assert {answer[1] for answer in seen} == {"gzip"}, (what, seen)
            if accept is None:
                assert all(answer[0].endswith(",*/*;q=0.1") for answer in seen), seen
            after = scrapes(server, "diverged")
            grown = {name: after[name] - before[name] for name in after}
            grown[TEXT] -= 2  # this test's own: one in each of scrapes() and on_the_page()
            assert {name for name, count in grown.items() if count > 0} == {form}, (what, grown)
            assert grown[form] >= len(seen) > 0, (what, grown, len(seen))
            print(f"{what}: {len(expected)} series by {form}, {grown[form]} scrapes")
    print("ok")


if __name__ == "__main__":
    main()
