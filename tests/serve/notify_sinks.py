# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""Where notifications go: a real SMTP server with STARTTLS and a login, servers that do it wrong, a webhook, a real Alertmanager."""
import email
import email.policy
import http.server
import json
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

SKIPPED = 77

try:
    from aiosmtpd.controller import Controller
    from aiosmtpd.smtp import SMTP, AuthResult
except ImportError:
    print("SKIPPED: aiosmtpd is not installed (Debian package python3-aiosmtpd)")
    sys.exit(SKIPPED)

USER, PASSWORD = "rankscope", "a secret of the test"


def certificate(folder):
    """ca.pem, and server.pem with server.key for 127.0.0.1, signed by it."""
    def openssl(*words):
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl("req", "-x509", *key, "-subj", "/CN=test CA", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *key, "-subj", "/CN=127.0.0.1", "-keyout", "server.key", "-out", "server.csr")
    Path(folder, "server.ext").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "server.ext",
            "-out", "server.pem")


class Mails:
    """aiosmtpd: takes mail after STARTTLS and a login, and nothing else."""

    def __init__(self, folder, port=0, answer="250 taken", answers=1 << 30):
        """The first `answers` mails get that answer, the others are taken."""
        self.arrived = []  # (time, envelope, message)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/server.pem", f"{folder}/server.key")
        mails = self

        class Handler:
            async def handle_DATA(self, server, session, envelope):
                message = email.message_from_bytes(envelope.content, policy=email.policy.default)
                mails.arrived.append((time.monotonic(), envelope, message))
                return answer if len(mails.arrived) <= answers else "250 taken"

        def login(server, session, envelope, mechanism, data):
            good = (data.login, data.password) == (USER.encode(), PASSWORD.encode())
            return AuthResult(success=good)

        class Server(Controller):
            def factory(self):
                return SMTP(self.handler, tls_context=context, require_starttls=True, auth_required=True, authenticator=login)

        if port == 0:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
        self.port = port
        self.server = Server(Handler(), hostname="127.0.0.1", port=port, ready_timeout=60)
        self.server.start()
        self.url = f"smtp://127.0.0.1:{port}"

    def close(self):
        self.server.stop()

    def messages(self):
        return [message for _, _, message in self.arrived]


class Webhook:
    """Keeps what is posted to it."""

    def __init__(self):
        self.posts = []  # (path, body)
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.posts.append((self.path, json.loads(body)))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def notifications(self, path="/hook"):
        return [one for where, body in list(self.posts) if where == path for one in body["notifications"]]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class WrongServer:
    """One that takes connections and does not answer as it should: `answer` gets each connection."""

    def __init__(self, answer):
        self.asked = 0
        self.kept = []
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.asked += 1
            self.answer(self, connection)

    def close(self):
        self.listener.close()
        for connection in self.kept:
            connection.close()


def hangs(server, connection):
    server.kept.append(connection)


def resets(_, connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def quits(_, connection):
    """Greets, and shuts the door."""
    try:
        connection.sendall(b"220 relay ESMTP\r\n")
        connection.recv(512)
        connection.sendall(b"421 too many connections\r\n")
    except OSError:
        pass
    connection.close()


def garbage(_, connection):
    try:
        connection.sendall(bytes(range(256)) * 64 + b"\r\n")
    except OSError:
        pass
    connection.close()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Alertmanager:
    def __init__(self, folder):
        program = shutil.which("prometheus-alertmanager")
        if program is None:
            print("SKIPPED: prometheus-alertmanager is not installed")
            sys.exit(SKIPPED)
        config = Path(folder, "alertmanager.yml")
        config.write_text("route: {receiver: none}\nreceivers: [{name: none}]\n")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [program, f"--config.file={config}", f"--storage.path={folder}/alertmanager", "--cluster.listen-address=",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def alerts(self):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/alerts?active=true", timeout=10) as answer:
                return json.load(answer)
        except OSError:
            return None

    def close(self):
        self.process.terminate()
        self.process.wait(20)
