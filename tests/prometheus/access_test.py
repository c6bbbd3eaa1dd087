# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""TLS, client certificates, users and roles of web.config_file, as a real Prometheus and a plain TLS client meet them.

Usage: access_test.py RANKSCOPE
"""
import base64
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from support import Prometheus, need, wait_for

PASSWORD = "correct horse"


def bcrypt(password):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import crypt
    return crypt.crypt(password, "$2b$08$" + "abcdefghijklmnopqrstuu")


class Authority:
    """A certificate authority in `folder`, made by openssl."""

    def __init__(self, folder, name):
        self._folder, self.name = folder, name
        self.crt, self._key = f"{folder}/{name}.crt", f"{folder}/{name}.key"
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={name}",
                      "-keyout", self._key, "-out", self.crt)

    @staticmethod
    def _openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def issue(self, name, sans, usage):
        """(certificate, key), as files that are renamed into place: the key first."""
        crt, key, request, extensions = (f"{self._folder}/{name}.{end}" for end in ("crt", "key", "csr", "ext"))
        Path(extensions).write_text(f"subjectAltName={sans}\nextendedKeyUsage={usage}\n")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", key + ".new",
                      "-out", request)
        self._openssl("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self._key, "-CAcreateserial", "-days", "2", "-extfile",
                      extensions, "-out", crt + ".new")
        for path in (key, crt):
            os.replace(path + ".new", path)
        return crt, key


class Daemon:
    def __init__(self, binary, folder, config, listen):
        write(f"{folder}/rankscope.yaml", config)
        self._log = Path(folder) / "serve.log"
        arguments = [word for address in listen for word in ("--web.listen-address", address)]
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                [binary, "serve", "--config.file", f"{folder}/rankscope.yaml", "--state.dir", f"{folder}/state", "--run.socket",
                 f"{folder}/run.sock", "--ebpf", "off", *arguments], stdout=log, stderr=log)
        wait_for("the daemon's addresses", lambda: len(self._addresses()) == len(listen))
        self.ports = [int(address.rpartition(":")[2]) for address in self._addresses()]

    def _addresses(self):
        assert self.process.poll() is None, self.log()
        return re.findall(r"msg=listening address=(\S+)", self.log())

    def log(self):
        return self._log.read_text()

    def close(self):
        self.process.terminate()
        self.process.wait(20)


def client(authority, certificate=None, host="127.0.0.1"):
    context = ssl.create_default_context(cafile=authority.crt)
    context.check_hostname = host is not None
    if certificate:
        context.load_cert_chain(*certificate)
    return context


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


def ask(port, path, context=None, headers=None, host="127.0.0.1", method="GET"):
    """(status, headers, body); the errors of a handshake are the caller's."""
    connection = (http.client.HTTPSConnection(host, port, context=context, timeout=10) if context
                  else http.client.HTTPConnection(host, port, timeout=10))
    with contextlib.closing(connection):
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()


def status(*arguments, **named):
    return ask(*arguments, **named)[0]


def refused(*arguments):
    """Whether the handshake, or what follows it in TLS 1.3, ends the connection."""
    try:
        ask(*arguments)
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return True
    return False


def job(name, port, authority, certificate=None, user=None, password=None):
    tls = {"ca_file": authority.crt}
    if certificate:
        tls.update(cert_file=certificate[0], key_file=certificate[1])
    scrape = {"job_name": name, "scheme": "https", "tls_config": tls, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
    if user:
        scrape["basic_auth"] = {"username": user, "password": password}
    return scrape


def write(path, document):
    """JSON is YAML."""
    Path(path + ".new").write_text(json.dumps(document))
    os.replace(path + ".new", path)


def check_against_promtool(binary, folder):
    """Of the classic keys we take what promtool takes, and refuse what it refuses."""
    authority = Authority(folder, "authority")
    authority.issue("server", "IP:127.0.0.1", "serverAuth")
    files = {"cert_file": "server.crt", "key_file": "server.key"}
    path = f"{folder}/web.yaml"
    Path(f"{folder}/rankscope.yaml").write_text(json.dumps({"web": {"config_file": path}}))

    def tls(**more):
        return {"tls_server_config": {**files, **more}}

    good = [{}, tls(), tls(min_version="TLS10", max_version="TLS12"), tls(curve_preferences=["CurveP256", "X25519"]),
            tls(cipher_suites=["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"], prefer_server_cipher_suites=False),
            *(tls(client_auth_type=name, client_ca_file="authority.crt")
              for name in ("RequestClientCert", "RequireAnyClientCert", "VerifyClientCertIfGiven", "RequireAndVerifyClientCert")),
            tls(client_auth_type="NoClientCert"), {"basic_auth_users": {"ann": bcrypt("a")}},
            {"http_server_config": {"http2": False, "headers": {"X-Content-Type-Options": "nosniff", "X-XSS-Protection": "1"}}}]
    bad = [{"tls_server": {}}, tls(cert_fil="x"), tls(min_version="TLS9"), tls(cipher_suites=["AES128-SHA"]), tls(curve_preferences=["P-256"]),
           tls(client_auth_type="Require"), tls(client_ca_file="authority.crt"), tls(cert_file="nothing.crt"),
           {"tls_server_config": {"cert_file": "server.crt"}}, {"tls_server_config": {"key_file": "server.key"}},
           {"basic_auth_users": ["ann"]}, {"http_server_config": {"headers": {"X-Powered-By": "me"}}},
           {"http_server_config": {"headers": {"X-Frame-Options": "no"}}}]
    for documents, wanted in ((good, True), (bad, False)):
        for document in documents:
            write(path, document)
            promtool = subprocess.run([need("promtool"), "check", "web-config", path], capture_output=True, text=True)
            ours = subprocess.run([binary, "check", "--config.file", f"{folder}/rankscope.yaml", "--state.dir", folder], capture_output=True,
                                  text=True, timeout=60)
            assert (promtool.returncode == 0) == wanted, (document, promtool)
            assert bool(re.search(r"^web +yes ", ours.stdout, re.M)) == wanted, (document, ours.stdout)


def check_clients(folder, port, authority, good, other, stranger):
    """Certificates and passwords, right and wrong; roles."""
    ann, bob = basic("ann", PASSWORD), basic("bob", PASSWORD)
    assert refused(port, "/metrics", client(authority), ann), "no certificate"
    assert refused(port, "/metrics", client(authority, stranger), ann), "of another authority"
    assert refused(port, "/metrics", client(authority, other), ann), "a name that is not allowed"
    context = client(authority, good)
    code, headers, _ = ask(port, "/verdict", context)
    assert code == 401 and headers["WWW-Authenticate"].startswith("Basic "), (code, headers)
    assert headers["Strict-Transport-Security"] == "max-age=60" and headers["X-Frame-Options"] == "deny", headers
    for wrong in (basic("ann", "wrong"), basic("nobody", PASSWORD), {"Authorization": "Bearer x"}, {"Authorization": "Basic !"}):
        assert status(port, "/metrics", context, wrong) == 401, wrong
    assert status(port, "/-/healthy", context) == 200, "an open path"
    assert status(port, "/-/ready", context) == 401
    assert status(port, "/verdict", context, ann) == 200
    assert status(port, "/metrics", context, bob) == 200
    assert status(port, "/verdict", context, bob) == 403
    # A session that is resumed keeps what the certificate said.
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as first:
        session = first.session
    with socket.create_connection(("127.0.0.1", port)) as raw, \
            context.wrap_socket(raw, server_hostname="127.0.0.1", session=session) as again:
        assert again.session_reused
    # Without TLS there is no answer, and older ones than 1.2 are not agreed on.
    assert refused(port, "/metrics")
    old = client(authority, good)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
    assert refused(port, "/metrics", old, ann)


def serial(port, context):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw, context.wrap_socket(raw, server_hostname="127.0.0.1") as tls:
        return tls.getpeercert()["serialNumber"]


def check_prometheus(folder, port, authority, server_authority, good, stranger, web, web_path):
    """Four scrapes, one of them right; then certificate and password change, and the right one goes on."""
    jobs = [job("right", port, authority, good, "ann", PASSWORD), job("stranger", port, authority, stranger, "ann", PASSWORD),
            job("password", port, authority, good, "ann", "wrong"), job("anonymous", port, authority)]
    with contextlib.closing(Prometheus(folder, None, jobs=jobs)) as prometheus:
        wait_for("the right scrape", lambda: prometheus.value('up{job="right"}') == "1")
        for wrong in ("stranger", "password", "anonymous"):
            wait_for(wrong, lambda name=wrong: prometheus.value(f'up{{job="{name}"}}') == "0")
            assert prometheus.value(f'max_over_time(up{{job="{wrong}"}}[1m])') == "0", wrong
        number = "rankscope_web_config_last_reload_success_timestamp_seconds"
        before, old = float(prometheus.value(number)), serial(port, client(authority, good))
        server_authority.issue("server", "IP:127.0.0.1", "serverAuth")
        wait_for("the new certificate", lambda: serial(port, client(authority, good)) != old)
        wait_for("the new reading", lambda: float(prometheus.value(number) or 0) > before)
        assert prometheus.value('min_over_time(up{job="right"}[10s])') == "1"
        # A broken file changes nothing but a metric, and one that is right again is taken.
        successful = "rankscope_web_config_last_reload_successful"
        Path(web_path).write_text("basic_auth_users: {ann: plain}\n")
        wait_for("the mistake", lambda: prometheus.value(successful) == "0")
        assert status(port, "/verdict", client(authority, good), basic("ann", PASSWORD)) == 200
        write(web_path, {**web, "basic_auth_users": {"ann": bcrypt("new"), "bob": bcrypt(PASSWORD)}})
        wait_for("the password that is old", lambda: prometheus.value('up{job="right"}') == "0")
        wait_for("the new password", lambda: status(port, "/verdict", client(authority, good), basic("ann", "new")) == 200)


def check_tls(binary, folder):
    authority, strange = Authority(folder, "authority"), Authority(folder, "strange")
    authority.issue("server", "IP:127.0.0.1", "serverAuth")
    good = authority.issue("good", "DNS:prometheus.example", "clientAuth")
    other = authority.issue("other", "DNS:other.example", "clientAuth")
    stranger = strange.issue("stranger", "DNS:prometheus.example", "clientAuth")
    web, path = {
        "tls_server_config": {"cert_file": "server.crt", "key_file": "server.key", "client_ca_file": "authority.crt",
                              "client_auth_type": "RequireAndVerifyClientCert", "client_allowed_sans": ["prometheus.example"]},
        "http_server_config": {"http2": True, "headers": {"Strict-Transport-Security": "max-age=60", "X-Frame-Options": "deny"}},
        "basic_auth_users": {"ann": bcrypt(PASSWORD), "bob": bcrypt(PASSWORD)},
    }, f"{folder}/web.yaml"
    write(path, web)
    config = {"web": {"config_file": path, "open_paths": ["/-/healthy"], "roles": ["user:ann=log", "user:bob=metrics"],
                      "plain_loopback": False}}
    with contextlib.closing(Daemon(binary, folder, config, ["127.0.0.1:0"])) as daemon:
        for page, code in (("/config", 200), ("/-/reload", 403)):  # of which the second is not switched on
            method = "GET" if code == 200 else "POST"
            assert status(daemon.ports[0], page, client(authority, good), basic("ann", PASSWORD), method=method) == code, page
            assert status(daemon.ports[0], page, client(authority, good), basic("bob", PASSWORD), method=method) == 403, page
        check_clients(folder, daemon.ports[0], authority, good, other, stranger)
        check_prometheus(folder, daemon.ports[0], authority, authority, good, stranger, web, path)
        assert "msg=listening" in daemon.log() and PASSWORD not in daemon.log()


def check_plain_loopback(binary, folder):
    """Users without TLS on every address but that of loopback; IPv6."""
    path = f"{folder}/web.yaml"
    write(path, {"basic_auth_users": {"ann": bcrypt(PASSWORD)}})
    config = {"web": {"config_file": path, "plain_loopback": True}}
    with contextlib.closing(Daemon(binary, folder, config, ["[::1]:0", "127.0.0.1:0", "[::]:0"])) as daemon:
        own, own4, everywhere = daemon.ports
        assert status(own, "/verdict", host="::1") == 200
        assert status(own4, "/verdict") == 200
        for host in ("::1", "127.0.0.1"):
            assert status(everywhere, "/verdict", host=host) == 401, host
            assert status(everywhere, "/verdict", headers=basic("ann", PASSWORD), host=host) == 200, host
        answers = [status(everywhere, "/verdict", headers=basic("ann", f"guess {i}")) for i in range(20)]
        assert 429 in answers and 200 not in answers, answers
        assert status(everywhere, "/verdict", headers=basic("ann", PASSWORD)) == 200, "who is known goes on"


def check_reload(binary, folder):
    """SIGHUP and /-/reload take over what can change; a broken file changes nothing; /config has no secret."""
    path = f"{folder}/rankscope.yaml"
    config = {"web": {"enable_lifecycle": True, "max_requests": 40}, "log": {"level": "info"},
              "slurm": {"role": "off", "restd_url": "http://me:hidden@localhost/slurm/v0.0.41"}}
    with contextlib.closing(Daemon(binary, folder, config, ["127.0.0.1:0"])) as daemon:
        port = daemon.ports[0]

        def metric(name):
            return float(re.search(rf"^rankscope_config_last_reload_{name} (\S+)$", ask(port, "/metrics")[2], re.M)[1])

        text = ask(port, "/config")[2]
        assert "hidden" not in text and "http://<secret>@localhost/" in text and "max_requests: 40" in text, text
        first = metric("success_timestamp_seconds")
        assert metric("successful") == 1 and abs(first - time.time()) < 120
        config["slurm"]["targets"], config["web"]["max_requests"], config["log"]["level"] = ["gpu:mfu=0.4"], 41, "warn"
        write(path, config)
        assert status(port, "/-/reload") == 405
        assert status(port, "/-/reload", headers={"Origin": "http://evil.example"}, method="POST") == 403
        code, _, answer = ask(port, "/-/reload", method="POST")
        assert code == 200, answer
        text = ask(port, "/config")[2]
        assert "gpu:mfu=0.4" in text and "level: warn" in text and "max_requests: 40" in text, text
        assert re.search("only after a restart.*web.max_requests", daemon.log()), daemon.log()
        wait_for("the time of the reading", lambda: metric("success_timestamp_seconds") > first)
        Path(path).write_text("slurm: {targts: []}\nlog: {level: debug}\n")
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("the mistake", lambda: metric("successful") == 0)
        code, _, answer = ask(port, "/-/reload", method="POST")
        assert code == 500 and "rankscope.yaml:1" in answer and "slurm.targets" in answer, answer
        assert "gpu:mfu=0.4" in ask(port, "/config")[2]
        config["log"]["level"] = "info"
        write(path, config)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for("the correction", lambda: metric("successful") == 1)
        assert "level: info" in ask(port, "/config")[2]


def check_refusals(binary, folder):
    """A file with mistakes keeps the daemon from starting, and check says them."""
    path = f"{folder}/web.yaml"
    Path(path).write_text("tls_server_config:\n  cert_fil: x\n")
    Path(f"{folder}/rankscope.yaml").write_text(json.dumps({"web": {"config_file": path}}))
    arguments = ["--config.file", f"{folder}/rankscope.yaml", "--web.listen-address", "127.0.0.1:0", "--state.dir", f"{folder}/state"]
    serve = subprocess.run([binary, "serve", *arguments, "--run.socket", f"{folder}/run.sock"], capture_output=True, text=True, timeout=30)
    assert serve.returncode == 1 and "web.yaml:2" in serve.stderr and "unknown key" in serve.stderr, serve
    check = subprocess.run([binary, "check", *arguments], capture_output=True, text=True, timeout=60)
    assert re.search(r"^web +no .*web.yaml:2", check.stdout, re.M), check.stdout


def main():
    need("prometheus")
    if not shutil.which("openssl"):
        print("SKIPPED: openssl is not installed")
        sys.exit(77)
    for check in (check_reload, check_refusals, check_against_promtool, check_plain_loopback, check_tls):
        with tempfile.TemporaryDirectory() as folder:
            check(sys.argv[1], folder)
            print(check.__name__, "ok", flush=True)


if __name__ == "__main__":
    main()
