"""A proxy between a client and the blob server that counts requests and breaks the ones a test names.

It changes no header, so the client's signature stays right. Each request goes to the server on a connection of its own;
towards the client connections are kept open, as the server's would be.
"""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import BinaryIO
from urllib.parse import parse_qsl, urlsplit

from tests.locker.azurite import ACCOUNT, Azurite
from tests.locker.certificate import HOST
from tests.locker.faults import Cut, Decide, Delay, Request, Rewrite, nothing
from tests.locker.http_messages import Head, Piece, body_of, read_head
from tests.locker.refusals import REQUEST_ID, Answer

Observer = Callable[[Request], None]
Socket = socket.socket
SILENT_S = 60.0
_END_AT_ONCE = struct.pack("ii", 1, 0)


class Proxy:
    """What it does (`decide`, `observe`), and what went through it (`requests`)."""

    def __init__(self, server: Azurite) -> None:
        self.server = server
        self.decide: Decide = nothing
        self.observe: Observer | None = None
        """Called after the server has answered and before the client gets to know, and after a request that broke on
        its way. While it is set, requests go through one at a time: it sees every state of the server."""
        self.requests: list[Request] = []
        self.errors: list[BaseException] = []
        """What an observer raised, or the proxy itself; `proxying` raises the first one at its end."""
        self.port = 0
        self._one = threading.Lock()
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._listener: Socket | None = None
        self._connections: dict[threading.Thread, Socket] = {}
        self._accepting: list[threading.Thread] = []

    # ------------------------------------------------------------ for the test

    @property
    def url(self) -> str:
        """Of the account, through this proxy."""
        return f"{'https' if self.server.certificate else 'http'}://{HOST}:{self.port}/{ACCOUNT}"

    def forget(self) -> None:
        """Count from 1 again, with no faults."""
        with self._lock:
            self.requests = []
            self.decide = nothing

    def done(self, operation: str) -> list[Request]:
        """The requests of one operation that the server has carried out."""
        return [each for each in self.requests if each.operation == operation and (each.served or 999) < 300]

    @property
    def sent_bytes(self) -> int:
        """Of all bodies that came from the client."""
        return sum(each.body_bytes for each in self.requests)

    def open(self) -> None:
        """Accept connections, on the same port as before."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self._listener = listener
        thread = threading.Thread(target=self._accept, args=(listener,))
        self._accepting.append(thread)
        thread.start()

    def close(self) -> None:
        """Refuse connections, and end those there are. `decide` and `observe` may call it."""
        with self._lock:
            listener, self._listener = self._listener, None
            connections = list(self._connections.values())
        if listener is None:
            return
        with suppress(OSError):  # wakes the thread that accepts
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in connections:
            _wake(connection)

    def restart_server(self) -> None:
        """A crash of a server that keeps its word: no answer comes through any more, and what was stored is there
        afterwards. `decide` and `observe` may call it."""
        self.close()
        self.server.restart()
        self.open()

    def end(self) -> None:
        """Close, and let no answer wait any longer."""
        self._stop.set()
        self.close()
        for thread in (*self._accepting, *list(self._connections)):
            thread.join()

    # ------------------------------------------------------------ connections

    def _accept(self, listener: Socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            with self._lock:
                self._connections[thread] = connection
                if self._listener is not listener:  # closed in between
                    _wake(connection)
            thread.start()

    def _serve(self, connection: Socket) -> None:
        thread = threading.current_thread()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.server.certificate:
                connection = self.server.certificate.server_context().wrap_socket(connection, server_side=True)
                self._connections[thread] = connection
            with connection.makefile("rb") as reader:
                while self._exchange(connection, reader):
                    pass
        except OSError:  # the client has gone, or `close` was called
            pass
        except BaseException as error:  # a thread's error would be lost
            self.errors.append(error)
        finally:
            with self._lock:
                self._connections.pop(thread, None)
            with suppress(OSError):
                connection.close()

    def _exchange(self, client: Socket, reader: BinaryIO) -> bool:
        """One request and its answer; False when the connection ends with it."""
        head = read_head(reader)
        if head is None:
            return False
        request = self._counted(head)
        try:
            return self._handled(request, head, client, reader)
        except ssl.SSLError as error:
            raise ConnectionError from error
        finally:
            request.end()

    def _counted(self, head: Head) -> Request:
        method, target, _ = head.first.split(" ")
        parts = urlsplit(target)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        with self._lock:
            request = Request(len(self.requests) + 1, method, parts.path, query, head.headers)
            request.fault = self.decide(request)
            self.requests.append(request)
        return request

    def _handled(self, request: Request, head: Head, client: Socket, reader: BinaryIO) -> bool:
        fault = request.fault
        if isinstance(fault, Cut) and fault.where == "before":
            request.end()
            return _cut(client, fault)
        pieces = _counting(body_of(reader, request.headers), request)
        if isinstance(fault, Answer):
            for _ in pieces:
                pass
            return _answered(request, client, fault)
        # An answer is read within the lock and sent after it: a client that is slow or delayed holds up nobody.
        with self._one if self.observe else nullcontext():
            answer = self._forwarded(request, head, pieces)
            if self.observe:
                self._observed(request)
        if answer is None:
            request.end()
            return _cut(client, Cut("body"))
        with answer:
            if isinstance(fault, Cut):
                request.end()
                return answer.cut(client, fault)
            if isinstance(fault, Delay):
                self._stop.wait(fault.seconds)
            if isinstance(fault, Rewrite):
                answer.rewrite(fault)
            for _ in pieces:  # the rest of a body that the server did not want
                pass
            return answer.send(request, client)

    def _observed(self, request: Request) -> None:
        assert self.observe
        try:
            self.observe(request)
        except BaseException as error:  # a thread's error would be lost
            self.errors.append(error)

    def _forwarded(self, request: Request, head: Head, pieces: Iterator[Piece]) -> _Answered | None:
        """The server's answer; None when there is none, because of the fault or of the server."""
        try:
            server = self._connected()
        except OSError:
            return None
        try:
            fault = request.fault
            if isinstance(fault, Cut) and fault.where == "body":
                _send_half(server, request, head, pieces)
                server.close()
                return None
            # A server that refuses need not read the body before it answers.
            with suppress(BrokenPipeError, ConnectionResetError):
                server.sendall(head.raw)
                for piece in pieces:
                    server.sendall(piece.raw)
            answered = _Answered(server, request.method)
        except OSError:
            server.close()
            return None
        request.served = answered.head.status
        return answered

    def _connected(self) -> Socket:
        server = socket.create_connection((HOST, self.server.port), SILENT_S)
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.server.certificate:
            return self.server.certificate.client_context().wrap_socket(server, server_hostname=HOST)
        return server


class _Answered:
    """An answer of the server whose body may still be on its way."""

    def __init__(self, server: Socket, method: str) -> None:
        self._server = server
        self._reader = server.makefile("rb")
        while True:
            head = read_head(self._reader)
            if head is None:
                raise ConnectionError("the server closed the connection")
            if head.status >= 200:
                break
        self.head = head
        has_body = method != "HEAD" and head.status not in (204, 304)
        framed = {"content-length", "transfer-encoding"} & set(head.headers)
        self._ends_with_body = has_body and not framed
        self._pieces = body_of(self._reader, head.headers, until_end=True) if has_body else iter(())

    def __enter__(self) -> _Answered:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._server.close()

    def rewrite(self, change: Rewrite) -> None:
        """Before it is sent."""
        content = change.body(b"".join(piece.content for piece in self._pieces))
        self._pieces = iter([Piece(content, content)])
        self.head = self.head.changed(
            **{"content-length": str(len(content)), "transfer-encoding": "", **change.headers}
        )  # fmt: skip

    def send(self, request: Request, client: Socket) -> bool:
        """All of it; False when the connection ends with it."""
        request.status = self.head.status
        request.end()
        client.sendall(self.head.raw)
        for piece in self._pieces:
            client.sendall(piece.raw)
        wishes = {self.head.headers.get("connection", ""), request.headers.get("connection", "")}
        return "close" not in {wish.lower() for wish in wishes} and not self._ends_with_body

    def cut(self, client: Socket, fault: Cut) -> bool:
        """Nothing of it, or about half."""
        if fault.where == "answer":
            content = b"".join(piece.raw for piece in self._pieces)
            # A head that ends early counts as whole for http.client, so a bare one ends within its first word.
            client.sendall(self.head.raw + content[: len(content) // 2] if content else self.head.raw[:5])
            if fault.reset:  # a reset overtakes what was sent; let the client see that half
                time.sleep(0.02)
        return _cut(client, fault)


def _wake(connection: Socket) -> None:
    """End it for the thread that serves it and for the client."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _counting(pieces: Iterator[Piece], request: Request) -> Iterator[Piece]:
    for piece in pieces:
        request.body_bytes += len(piece.content)
        yield piece


def _send_half(server: Socket, request: Request, head: Head, pieces: Iterator[Piece]) -> None:
    """Head and half of the body, or half of the head where there is no body; the client still has the rest to send."""
    whole = int(request.headers.get("content-length", 0))
    if not whole:
        server.sendall(head.raw[: len(head.raw) // 2])
        return
    server.sendall(head.raw)
    left = whole // 2
    while left:
        piece = next(pieces).raw[:left]
        server.sendall(piece)
        left -= len(piece)


def _answered(request: Request, client: Socket, answer: Answer) -> bool:
    body = answer.body()
    headers = {
        "Content-Length": str(len(body)), "Content-Type": "application/xml", "x-ms-request-id": REQUEST_ID,
        "x-ms-version": request.headers.get("x-ms-version", ""), "x-ms-error-code": answer.code,
        "Server": "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0", **answer.headers,
    }  # fmt: skip
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    request.status = answer.status
    request.end()
    client.sendall(f"HTTP/1.1 {answer.status} {answer.code}\r\n{lines}\r\n".encode("latin-1"))
    if request.method != "HEAD":
        client.sendall(body)
    return True


def _cut(client: Socket, fault: Cut) -> bool:
    if fault.reset:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _END_AT_ONCE)
    else:
        client.shutdown(socket.SHUT_WR)
    return False


@contextmanager
def proxying(server: Azurite) -> Iterator[Proxy]:
    """A proxy in front of a server, on a free port; ends with the first error of its threads."""
    proxy = Proxy(server)
    proxy.open()
    try:
        yield proxy
    finally:
        proxy.end()
    if proxy.errors:
        raise proxy.errors[0]
