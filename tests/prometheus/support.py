# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus in a temporary folder, and the scripted server that it scrapes."""
import contextlib
import http.client
import http.server
import importlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

SKIPPED = 77
PACKAGES = {"promtool": "prometheus"}  # where the program has another name


def need(program):
    """The program's path; without it the test is skipped, and says so."""
    path = shutil.which(program)
    if path is None:
        print(f"SKIPPED: {program} is not installed (Debian package {PACKAGES.get(program, program)})")
        sys.exit(SKIPPED)
    return path


def wait_for(what, condition, seconds=30):
    """The first true value of `condition`; fails by name when it does not come."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def mixin_of(source):
    """alerts/mixin.py of the tree."""
    sys.path.insert(0, str(pathlib.Path(source) / "alerts"))
    return importlib.import_module("mixin")


# promtool evaluates groups in any order unless it is told one; Prometheus, too, but an evaluation later all is the same.
GROUPS = ["rankscope.owners", "alerts"]


def rules_of(mixin, names):
    """Those of the rule file that make these alerts, in GROUPS."""
    settings = mixin.Settings()
    lines = ["groups:", *mixin.recorded_lines(GROUPS[0], mixin.recorded.OWNERS, settings), f"  - name: {GROUPS[1]}", "    rules:"]
    for alert in mixin.all_alerts():
        if alert.name in names:
            lines += mixin.alert_lines(alert, settings)
    return "\n".join(lines) + "\n"


def fetch(url, **headers):
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
        return answer.read().decode()


def dashboard_queries(dashboard):
    """(title, query) of each panel of a dashboard, and of its annotations."""
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield annotation["name"], annotation["expr"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class FlipServer:
    """flip_server: the real listener over scripted states."""

    def __init__(self, path):
        self._process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, port = self._process.stdout.readline().split()
        assert word == "listening"
        self.address = f"127.0.0.1:{port}"
        self.url = f"http://{self.address}"

    def publish(self, state):
        print(state, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline().split() == ["published", state]

    def close(self):
        self._process.stdin.close()
        assert self._process.wait(10) == 0
        self._process.stdout.close()


class Proxy:
    """Between a scraper and `target`: passes everything on, with `accept`, if given, in place of the scraper's Accept.

    `seen` has (Accept as the scraper sent it, Accept-Encoding, Content-Type of the answer) of each request.
    """

    def __init__(self, target, accept=None):
        seen = self.seen = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                connection = http.client.HTTPConnection(target, timeout=10)
                headers = dict(self.headers.items())
                sent = headers.get("Accept")
                if accept is not None:
                    headers["Accept"] = accept
                connection.request("GET", self.path, headers=headers)
                answer = connection.getresponse()
                body = answer.read()
                connection.close()
                seen.append((sent, headers.get("Accept-Encoding"), answer.headers["Content-Type"]))
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    if name != "Connection":
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self):
        self._server.shutdown()
        self._server.server_close()


class Prometheus:
    """Scrapes `address`, or what `jobs` (scrape_configs) say, every `interval`; retries with another port when somebody takes the one it found."""

    def __init__(self, folder, address, rules=(), flags=(), interval="200ms", jobs=None, alerting=None):
        config = {
            "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
            "rule_files": list(rules),
            "scrape_configs": jobs or [{"job_name": "rankscope", "static_configs": [{"targets": [address]}]}],
        }
        if alerting:
            config["alerting"] = alerting
        path = os.path.join(folder, "prometheus.yml")
        with open(path, "w", encoding="utf-8") as out:
            json.dump(config, out)  # JSON is YAML
        for _ in range(5):
            port = free_port()
            self.url = f"http://127.0.0.1:{port}"
            self._process = subprocess.Popen([*self._command(path, folder, f"127.0.0.1:{port}"), *flags])
            if self._wait_ready():
                return
        raise AssertionError(f"{type(self).__name__} did not start")

    @staticmethod
    def _command(config, folder, address):
        return [need("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={folder}/data", f"--web.listen-address={address}",
                "--log.level=warn"]

    def _wait_ready(self):
        end = time.monotonic() + 30
        while time.monotonic() < end and self._process.poll() is None:
            with contextlib.suppress(OSError):
                fetch(self.url + "/-/ready")
                return True
            time.sleep(0.05)
        return False

    def query(self, expression, at=None):
        """[(labels, value)] of an instant query now, or at a time."""
        parameters = {"query": expression, **({} if at is None else {"time": at})}
        answer = json.loads(fetch(self.url + "/api/v1/query?" + urllib.parse.urlencode(parameters)))
        assert answer["status"] == "success", answer
        if answer["data"]["resultType"] == "scalar":
            return [({}, answer["data"]["result"][1])]
        return [(one["metric"], one["value"][1]) for one in answer["data"]["result"]]

    def rules(self):
        return [rule for group in json.loads(fetch(self.url + "/api/v1/rules"))["data"]["groups"] for rule in group["rules"]]

    def check_rules(self):
        """Fails if a rule could not be evaluated, for example because a join found two series."""
        rules = self.rules()
        broken = [f"{rule['name']}: {rule['lastError']}" for rule in rules if rule["health"] == "err"]
        assert rules and not broken, "\n".join(broken)

    def query_range(self, expression, begin, end, step):
        """[(labels, [(time, value)])] of a range query."""
        parameters = {"query": expression, "start": begin, "end": end, "step": step}
        answer = json.loads(fetch(self.url + "/api/v1/query_range?" + urllib.parse.urlencode(parameters)))
        assert answer["status"] == "success", answer
        return [(one["metric"], one["values"]) for one in answer["data"]["result"]]

    def value(self, expression):
        """The value of the one series of `expression`; None when there is none."""
        result = self.query(expression)
        assert len(result) <= 1, result
        return result[0][1] if result else None

    def close(self):
        self._process.terminate()
        self._process.wait(20)


class VictoriaMetrics(Prometheus):
    """The same, by VictoriaMetrics. It shows what is new at once, and not half a minute late as by default."""

    @staticmethod
    def _command(config, folder, address):
        return [need("victoria-metrics"), f"-promscrape.config={config}", "-promscrape.config.strictParse=false",
                f"-storageDataPath={folder}/victoria", f"-httpListenAddr={address}", "-search.latencyOffset=1ms", "-search.disableCache",
                "-loggerLevel=ERROR", "-memory.allowedPercent=5"]


@contextlib.contextmanager
def scraped(flip_server, rules=()):
    """(server, prometheus), running until the block ends."""
    need("prometheus")
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.closing(FlipServer(flip_server)) as server:
        server.publish("none")
        with contextlib.closing(Prometheus(folder, server.address, rules)) as prometheus:
            yield server, prometheus
