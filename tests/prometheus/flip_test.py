# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus sees the verdict that /verdict tells, and sees it flip. Usage: flip_test.py FLIP_SERVER SOURCE_DIR"""
import json
import sys

from support import fetch, scraped, wait_for

FAMILIES = 34  # that are shown where they are ruled out, in the full profile


def agrees(server, prometheus, family):
    """Whether Prometheus names this one family for the job; then everything else must agree with /verdict."""
    if prometheus.value('rankscope_verdict_info{job_id="8841",family="%s"}' % family) != "1":
        return False
    verdict = json.loads(fetch(server.url + "/verdict?job_id=8841"))
    assert verdict["family"] == family, verdict
    live = verdict["state"] == "live"
    # No evidence speaks for another family.
    states = [(labels["family"], value) for labels, value in prometheus.query('rankscope_verdict{job_id="8841"}')]
    assert states == ([(family, "1")] if live else []), states
    confidence = prometheus.value(f'rankscope_verdict_confidence_ratio{{job_id="8841",family="{family}"}}')
    assert float(confidence) == verdict["confidence"], (confidence, verdict["confidence"])
    [(info, one)] = prometheus.query('rankscope_verdict_info{job_id="8841"}')
    assert one == "1"
    for key in ("family", "code", "scope", "domain", "phase", "state"):
        assert info[key] == verdict[key], (key, info, verdict[key])
    assert info["severity"] == verdict["triage"]["severity"]
    ruled_out = prometheus.query('rankscope_verdict_ruled_out{job_id="8841"}')
    assert len(ruled_out) == (FAMILIES if live else 0), ruled_out
    assert sum(int(value) for _, value in ruled_out) == (len(verdict["ruled_out"]) if live else 0)
    return True


def main():
    with scraped(sys.argv[1]) as (server, prometheus):
        wait_for("the first scrape", lambda: prometheus.value('up{job="rankscope"}') == "1")
        assert prometheus.query("rankscope_verdict") == []
        assert prometheus.value('rankscope_source_up{source="procfs"}') == "1"
        assert prometheus.value('rankscope_source_up{source="proc_connector"}') == "0"
        for state, family in (("healthy", "healthy"), ("hanging", "collective_hang"), ("healthy", "healthy")):
            server.publish(state)
            wait_for(f"{family} in Prometheus", lambda: agrees(server, prometheus, family))

        # Every series of the scrape arrived, with its own labels: none was renamed, merged or refused.
        scrape = fetch(server.url + "/metrics")
        sent = sum(1 for line in scrape.splitlines() if not line.startswith("#"))
        wait_for("all samples", lambda: prometheus.value("scrape_samples_scraped") == str(sent))
        assert prometheus.query('{__name__=~".+",exported_job!=""}') == []
        assert prometheus.query('{__name__=~".+",exported_instance!=""}') == []

        # A loss that is not a number reads as one that is not, and is not absent.
        server.publish("diverged")
        wait_for("NaN", lambda: prometheus.value('rankscope_training_loss{job_id="8841"}') == "NaN")
        wait_for("E1", lambda: agrees(server, prometheus, "loss_divergence"))

        # Two minutes after its end a job has a verdict and no ranks.
        server.publish("finished")
        wait_for("the ranks' end", lambda: prometheus.query('rankscope_rank_alive{job_id="8841"}') == [])
        assert agrees(server, prometheus, "healthy")
        server.publish("none")
        wait_for("the job's end", lambda: prometheus.query('{job_id="8841"}') == [])
    print("ok")


if __name__ == "__main__":
    main()
