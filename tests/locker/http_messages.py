"""HTTP/1.1 messages as they come from a socket, with their bytes unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

PIECE_BYTES = 65536


@dataclass(frozen=True)
class Head:
    """First line and headers of a request or an answer."""

    first: str
    lines: tuple[bytes, ...]
    """The header lines, with their ends."""

    @property
    def headers(self) -> Mapping[str, str]:
        """By name in lower case."""
        pairs = (line.decode("latin-1").partition(":") for line in self.lines)
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @property
    def raw(self) -> bytes:
        """As it came."""
        return self.first.encode("latin-1") + b"\r\n" + b"".join(self.lines) + b"\r\n"

    @property
    def status(self) -> int:
        """Of an answer."""
        return int(self.first.split()[1])

    def changed(self, **headers: str) -> Head:
        """With these headers (underscores for hyphens) in place of those of the same name; an empty value removes."""
        new = {name.replace("_", "-").lower(): value for name, value in headers.items()}
        kept = [line for line in self.lines if line.decode("latin-1").partition(":")[0].strip().lower() not in new]
        added = [f"{name}: {value}\r\n".encode("latin-1") for name, value in new.items() if value]
        return Head(self.first, (*kept, *added))


class Piece(NamedTuple):
    """Some bytes of a body."""

    raw: bytes
    """As they came, with the framing of chunks."""
    content: bytes


def read_head(reader: BinaryIO) -> Head | None:
    """None when the other side has closed the connection before the first byte."""
    first = reader.readline()
    if not first:
        return None
    lines = []
    while (line := reader.readline()) != b"\r\n":
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection ended within a head")
        lines.append(line)
    return Head(first.decode("latin-1").rstrip("\r\n"), tuple(lines))


def body_of(reader: BinaryIO, headers: Mapping[str, str], *, until_end: bool = False) -> Iterator[Piece]:
    """The body that follows a head; with `until_end` one without a length lasts until the connection ends."""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        yield from _chunks(reader)
    elif "content-length" in headers:
        yield from _exactly(reader, int(headers["content-length"]))
    elif until_end:
        while data := reader.read(PIECE_BYTES):
            yield Piece(data, data)


def _exactly(reader: BinaryIO, size_bytes: int) -> Iterator[Piece]:
    while size_bytes:
        data = reader.read1(min(size_bytes, PIECE_BYTES))  # type: ignore[attr-defined]
        if not data:
            raise ConnectionError("the connection ended within a body")
        size_bytes -= len(data)
        yield Piece(data, data)


def _chunks(reader: BinaryIO) -> Iterator[Piece]:
    while True:
        line = reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionError("the connection ended within a body")
        size_bytes = int(line.split(b";")[0], 16)
        yield Piece(line, b"")
        yield from _exactly(reader, size_bytes)
        if size_bytes:
            yield Piece(reader.readline(), b"")
            continue
        while (trailer := reader.readline()) not in (b"\r\n", b""):
            yield Piece(trailer, b"")
        yield Piece(b"\r\n", b"")
        return
