"""A web server on the loopback whose answers a test chooses one by one; the last one is given again and again."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from generator.blobs.download import Limits

Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Its address, what it answers, what it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: list[Answer] = [status(500)]
        self.asked: list[str] = []
        self.agents: list[str] = []
        self.stop = threading.Event()

    def limits(self, **changes: object) -> Limits:
        """Ours, in hundredths of a second, with every address led here."""
        fields: dict[str, object] = {
            "answer_s": 5, "total_s": 20, "pause_s": 0.01, "schemes": ("http",),
            "address": lambda url: self.url + urlsplit(url).path,
        }  # fmt: skip
        return Limits(**(fields | changes))  # type: ignore[arg-type]


@contextmanager
def serving() -> Iterator[Server]:
    """A server on a free port, ended afterwards with its answers."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.asked.append(self.path)
            server.agents.append(self.headers["User-Agent"])
            self.close_connection = True
            answer = server.answers.pop(0) if len(server.answers) > 1 else server.answers[0]
            with suppress(OSError):  # the client has gone, as some tests want it to
                answer(self)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = False
    server = Server(f"http://127.0.0.1:{http.server_address[1]}")
    http.stop_event = server.stop  # type: ignore[attr-defined]
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.stop.set()
        http.shutdown()
        thread.join()
        http.server_close()


def whole(content: bytes, *, promise: int | None = None) -> Answer:
    """200 with a length, which may promise more or less than comes."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(content) if promise is None else promise))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def chunked(content: bytes, *, is_complete: bool = True) -> Answer:
    """200 without a length."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for start in range(0, len(content), 1000):
            part = content[start : start + 1000]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        if is_complete:
            handler.wfile.write(b"0\r\n\r\n")

    return answer


def status(code: int, **headers: str) -> Answer:
    """A status without a body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def silence(handler: BaseHTTPRequestHandler) -> None:
    """No answer until the test ends."""
    handler.server.stop_event.wait()  # type: ignore[attr-defined]


def drip(handler: BaseHTTPRequestHandler) -> None:
    """A byte now and then, endlessly."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.stop_event.wait(0.02):  # type: ignore[attr-defined]
        handler.wfile.write(b"x")


def endless(handler: BaseHTTPRequestHandler) -> None:
    """Bytes endlessly."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.stop_event.is_set():  # type: ignore[attr-defined]
        handler.wfile.write(bytes(65536))


def garbage(handler: BaseHTTPRequestHandler) -> None:
    """Something that is not HTTP."""
    handler.wfile.write(b"220 mail.example ESMTP\r\n")


def reset(handler: BaseHTTPRequestHandler) -> None:
    """The connection breaks."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()
