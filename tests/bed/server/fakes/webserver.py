"""The web server of the stand-in: a daemon that detaches itself as jsvc does, and passes requests on to the stand-in.

The real one is `jsvc.exec` (Azure/cyclecloud-marketplace-image scripts/run_cc_vm_checks.sh): it forks twice and makes a
session of its own, and remains in the control group of whoever started it (systemd.kill(5)). It reads its port when it
starts (azure-docs articles/cyclecloud/how-to/ssl-configuration.md: properties are read at start).
"""

from __future__ import annotations

import os
import re
import ssl
import sys
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BEHIND = "http://127.0.0.1:8001"
PROPERTIES = Path("/opt/cycle_server/config/cycle_server.properties")


class Page(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:  # http.server's name
        headers = {"Authorization": self.headers["Authorization"]} if "Authorization" in self.headers else {}
        try:
            with urllib.request.urlopen(urllib.request.Request(BEHIND + self.path, headers=headers)) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def detach(pid_file: Path) -> None:
    """Two forks and a session; the caller's output is closed."""
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    pid_file.write_text(str(os.getpid()))


def main(folder: Path) -> None:
    detach(folder / "webserver.pid")
    slow = folder / "slow"
    time.sleep(float(slow.read_text()) if slow.exists() else 0)
    # A key that occurs twice counts with its last value.
    port = re.findall(r"^webServerSslPort=(\d+)$", PROPERTIES.read_text(), re.MULTILINE)[-1]
    server = ThreadingHTTPServer(("", int(port)), Page)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(folder / "site.pem")
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
