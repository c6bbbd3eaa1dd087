# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""The OpenMetrics page is valid by the specification and by Prometheus' own client; the checker refuses broken pages.

Usage: openmetrics_test.py FLIP_SERVER SOURCE_DIR
"""
import contextlib
import math
import sys
import unittest
import urllib.request
from pathlib import Path

import openmetrics
from support import FlipServer

ACCEPT = {"Accept": "application/openmetrics-text; version=1.0.0"}
GOLDEN = "tests/fixtures/metrics/scrape.openmetrics.txt"


def get(url):
    with urllib.request.urlopen(urllib.request.Request(url, headers=ACCEPT), timeout=10) as answer:
        assert answer.headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
        return answer.read()


class Page(unittest.TestCase):
    def pages(self):
        yield Path(sys.argv[2], GOLDEN).read_bytes()
        with contextlib.closing(FlipServer(sys.argv[1])) as server:
            for state in ("none", "healthy", "hanging", "diverged", "finished"):
                server.publish(state)
                yield get(server.url + "/metrics")
            yield get(server.url + "/metrics?collect[]=rank&collect[]=source")

    def test_every_state_is_valid(self):
        for page in self.pages():
            families = openmetrics.read(page)
            self.assertTrue(families)
            for family in families.values():
                self.assertEqual(list(family.metadata)[0], "TYPE")
                self.assertIn("HELP", family.metadata)
                self.assertTrue(family.samples, family.name)

    def test_types_are_those_of_the_format(self):
        families = openmetrics.read(Path(sys.argv[2], GOLDEN).read_bytes())
        self.assertEqual(families["process_cpu_seconds"].metadata["UNIT"], "seconds")
        self.assertEqual(families["process_cpu_seconds"].type, "counter")
        self.assertEqual(families["rankscope_build"].type, "info")
        self.assertEqual(families["rankscope_source_up"].type, "gauge")
        self.assertEqual(families["rankscope_cuda_launch_gap_seconds"].type, "histogram")
        # Its stem is the state set's name.
        self.assertEqual(families["rankscope_verdict_info"].type, "gauge")
        self.assertEqual(families["rankscope_verdict"].type, "gauge")

    def test_the_reference_client_reads_the_same(self):
        try:
            from prometheus_client.openmetrics.parser import text_string_to_metric_families
        except ImportError:
            self.skipTest("Debian package python3-prometheus-client is not installed")
        for page in self.pages():
            theirs = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value
                      for family in text_string_to_metric_families(page.decode()) for sample in family.samples}
            ours = {key: value for family in openmetrics.read(page).values() for key, value in family.samples.items()}
            self.assertEqual(theirs.keys(), ours.keys())
            for key, value in ours.items():
                self.assertTrue(theirs[key] == value or math.isnan(value) and math.isnan(theirs[key]), key)


class Checker(unittest.TestCase):
    GOOD = ('# TYPE a_seconds counter\n# UNIT a_seconds seconds\n# HELP a_seconds Say \\"it\\".\n'
            'a_seconds_total{x="1",y="\\\\\\n"} 1.5e-3\n# TYPE b gauge\n# HELP b B.\nb -Inf\n# EOF\n')

    def test_takes_what_is_right(self):
        families = openmetrics.read(self.GOOD.encode())
        self.assertEqual(families["a_seconds"].samples,
                         {("a_seconds_total", (("x", "1"), ("y", "\\\n"))): 0.0015})
        self.assertEqual(openmetrics.read(b"# EOF\n"), {})

    def test_refuses_what_is_wrong(self):
        for old, new in (("# EOF\n", ""), ("# EOF\n", "# EOF"), ("# EOF\n", "# EOF\n\n"), ("b -Inf\n", "b -Inf\n\n"),
                         ("b -Inf", "b  -Inf"), ("b -Inf", "b x"), ("b -Inf", "b 1\r"), ("b -Inf", "b 1 1700000000"),
                         ("b -Inf", "b 1\nb 2"), ("b -Inf", "b_total 1"), ("b -Inf", "c 1"), ("b -Inf", "b{} 1\na_seconds_total 1"),
                         ("b -Inf", 'b{x="1",} 1'), ("b -Inf", 'b{x="1"y="2"} 1'), ("b -Inf", 'b{x="1",x="2"} 1'),
                         ("b -Inf", 'b{x="\\t"} 1'), ("b -Inf", 'b{x="1} 1'), ("_total{", "{"), ("1.5e-3", "-1"), ("1.5e-3", "NaN"),
                         ("# UNIT a_seconds seconds", "# UNIT a_seconds bytes"), ("# HELP b B.", "# HELP b B.\n# HELP b B."),
                         ("# HELP b B.\n", "# HELP b B.\n# remark\n"), ("Say \\\"it\\\".", 'Say "it".'),
                         ("# TYPE b gauge", "# TYPE a_seconds gauge"), ("# TYPE b gauge", "# TYPE b untyped"),
                         ("# TYPE b gauge", "# TYPE b info"), ("# TYPE b gauge", "# TYPE b stateset"),
                         ("# TYPE b gauge\n# HELP b B.", "# HELP b B.\n# TYPE b gauge"),
                         ("b -Inf\n", "b -Inf\n# TYPE a_seconds_total gauge\na_seconds_total 1\n"),
                         ("b -Inf\n", "b -Inf\n# TYPE b info\nb_info 1\n")):
            broken = self.GOOD.replace(old, new)
            self.assertNotEqual(broken, self.GOOD, old)
            with self.assertRaises(openmetrics.Invalid, msg=broken):
                openmetrics.read(broken.encode())


class Histograms(unittest.TestCase):
    GOOD = ('# TYPE h histogram\n# HELP h H.\nh_bucket{x="1",le="0.5"} 1\nh_bucket{x="1",le="+Inf"} 3\nh_sum{x="1"} 4.5\n'
            'h_count{x="1"} 3\n# EOF\n')

    def test_takes_what_is_right(self):
        self.assertEqual(len(openmetrics.read(self.GOOD.encode())["h"].samples), 4)

    def test_refuses_what_is_wrong(self):
        for old, new in (('le="0.5"', 'le="5e-1"'), ('le="0.5"', 'le="+Inf"'), ('le="+Inf"', 'le="9.0"'), ('0.5"} 1', '0.5"} 4'),
                         ('h_sum{x="1"}', 'h_sum{x="1",le="1.0"}'), ('h_bucket{x="1",le="0.5"}', 'h_bucket{x="1"}'),
                         ('h_sum{x="1"} 4.5\n', ""), ('_count{x="1"} 3', '_count{x="1"} 2'), ('h_count{x="1"}', 'h_count{x="2"}'),
                         ('_sum{x="1"} 4.5', '_sum{x="1"} NaN'), ('h_count{x="1"} 3', "h 3")):
            broken = self.GOOD.replace(old, new)
            self.assertNotEqual(broken, self.GOOD, old)
            with self.assertRaises(openmetrics.Invalid, msg=broken):
                openmetrics.read(broken.encode())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
