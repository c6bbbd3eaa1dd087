#!/usr/bin/env python3
# SPDX-FileCopyrightText: The rankscope authors
# SPDX-License-Identifier: Apache-2.0
"""HTTPS with a private CA for http_client_test: tls_server.py FOLDER

Writes ca.pem, client.pem and client.key to FOLDER, serves the same on FOLDER/socket without TLS, and prints the port. The body of an
answer is the name in the client's certificate, "nobody" without one. Ends when its standard input does.
"""
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading

os.chdir(sys.argv[1])


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def certificate(name, extension):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key",
            "-out", f"{name}.csr")
    with open(f"{name}.ext", "w", encoding="ascii") as file:
        file.write(extension)
    openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", f"{name}.ext",
            "-out", f"{name}.pem")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        peer = self.request.getpeercert() if isinstance(self.request, ssl.SSLSocket) else None
        body = (dict(pair[0] for pair in peer["subject"])["commonName"] if peer else "nobody").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self):
        return "client"

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass  # clients that do not trust it


class LocalServer(Server):
    address_family = socket.AF_UNIX

    def server_bind(self):
        self.socket.bind(self.server_address)


openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=private CA", "-keyout", "ca.key",
        "-out", "ca.pem")
certificate("server", "subjectAltName=IP:127.0.0.1\n")
certificate("client", "extendedKeyUsage=clientAuth\n")
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("server.pem", "server.key")
context.load_verify_locations("ca.pem")
context.verify_mode = ssl.CERT_OPTIONAL
server = Server(("127.0.0.1", 0), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
for each in (server, LocalServer("socket", Handler)):
    threading.Thread(target=each.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
