"""A blob server that keeps names, sizes and digests, but no content: for blobs too large to store twice in a test."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from tests.locker.azurite import ACCOUNT
from tests.locker.faults import Request

_DATE = "Sat, 21 Nov 2026 12:00:00 GMT"
_PIECE_BYTES = 1 << 20
_LARGEST_LIST_BYTES = 64 << 20


class _Stored(NamedTuple):
    size_bytes: int
    md5: str
    etag: str


class _Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str = ""


def _refused(status: int, code: str) -> _Answer:
    xml = f"<?xml version='1.0' encoding='utf-8'?><Error><Code>{code}</Code><Message>{code}</Message></Error>"
    return _Answer(status, {"x-ms-error-code": code}, xml)


@dataclass
class Sink:
    """What came: bytes of bodies, and the blobs that a real server would have now."""

    url: str = ""
    received_bytes: int = 0
    blobs: dict[str, _Stored] = field(default_factory=dict)
    _staged: dict[str, dict[str, int]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request, size_bytes: int, body: bytes) -> _Answer:
        """As Azure does, for the requests that an upload makes; `body` is empty unless it is a list of blocks."""
        with self._lock:
            self.received_bytes += size_bytes
            if request.operation == "Put Blob":
                return self._stored(request, size_bytes)
            if request.operation == "Put Block":
                self._staged.setdefault(request.blob, {})[request.query["blockid"]] = size_bytes
                return _Answer(201, {})
            if request.operation == "Put Block List":
                staged = self._staged.pop(request.blob, {})
                ids = [element.text or "" for element in ElementTree.fromstring(body)]
                if missing := [each for each in ids if each not in staged]:
                    return _refused(400, f"InvalidBlockList {missing[0]}")
                return self._stored(request, sum(staged[each] for each in ids))
            if request.operation == "Get Account Information":
                return _Answer(200, {"x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2"})
            if request.operation == "List Blobs":
                return _Answer(200, {}, self._listing(request.query.get("prefix", "")))
            if request.operation == "Get Block List":
                return self._blocks(request.blob)
            return self._properties(request.blob)

    def _stored(self, request: Request, size_bytes: int) -> _Answer:
        md5 = request.headers.get("x-ms-blob-content-md5") or request.headers.get("content-md5", "")
        self.blobs[request.blob] = _Stored(size_bytes, md5, f'"0x{len(self.blobs) + 1:X}"')
        return _Answer(201, {"ETag": self.blobs[request.blob].etag})

    def _blocks(self, name: str) -> _Answer:
        if name not in self._staged:
            return _refused(404, "BlobNotFound")
        rows = "".join(f"<Block><Name>{each}</Name><Size>{size}</Size></Block>" for each, size in
                       self._staged[name].items())  # fmt: skip
        return _Answer(
            200, {}, f"<?xml version='1.0'?><BlockList><UncommittedBlocks>{rows}</UncommittedBlocks></BlockList>"
        )

    def _properties(self, name: str) -> _Answer:
        if (stored := self.blobs.get(name)) is None:
            return _refused(404, "BlobNotFound")
        return _Answer(200, {"ETag": stored.etag, "Content-MD5": stored.md5, "x-ms-blob-type": "BlockBlob",
                             "x-ms-size": str(stored.size_bytes)})  # fmt: skip

    def _listing(self, prefix: str) -> str:
        rows = "".join(
            f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{_DATE}</Last-Modified>"
            f"<Etag>{escape(stored.etag)}</Etag><Content-Length>{stored.size_bytes}</Content-Length>"
            f"<Content-MD5>{stored.md5}</Content-MD5><BlobType>BlockBlob</BlobType></Properties></Blob>"
            for name, stored in sorted(self.blobs.items())
            if name.startswith(prefix)
        )
        return f"<?xml version='1.0' encoding='utf-8'?><EnumerationResults><Blobs>{rows}</Blobs></EnumerationResults>"


@contextmanager
def sink() -> Iterator[Sink]:
    """A server on a free port, ended afterwards. It checks no signature."""
    kept = Sink()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(0, self.command, unquote(parts.path), query, headers)
            size_bytes = int(headers.get("content-length", 0))
            if request.operation == "Put Block List":
                answer = kept.answer(request, size_bytes, self.rfile.read(min(size_bytes, _LARGEST_LIST_BYTES)))
            else:
                self._drain(size_bytes)
                answer = kept.answer(request, size_bytes, b"")
            self._send(answer)

        do_GET = do_PUT = do_HEAD = do_DELETE = handle_any  # noqa: N815 - the names that http.server calls

        def _drain(self, size_bytes: int) -> None:
            buffer = memoryview(bytearray(_PIECE_BYTES))
            while size_bytes:
                got = self.rfile.readinto(buffer[: min(size_bytes, _PIECE_BYTES)])
                if not got:
                    raise ConnectionError("the connection ended within a body")
                size_bytes -= got

        def _send(self, answer: _Answer) -> None:
            body = answer.body.encode()
            self.send_response(answer.status)
            for name, value in {"Last-Modified": _DATE, "x-ms-version": "2021-12-02", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", answer.headers.get("x-ms-size", str(len(body))))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_address[1]}/{ACCOUNT}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield kept
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
