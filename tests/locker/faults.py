"""What a proxy can do to a request, and to which ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from tests.locker.refusals import Answer

# ---------------------------------------------------------------- requests


@dataclass
class Request:
    """One request, and what became of it."""

    number: int
    """1 for the first one through this proxy."""
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """By name in lower case."""
    body_bytes: int = 0
    """As many as came from the client."""
    fault: Fault | None = None
    served: int | None = None
    """The server's status; None when it was not asked or did not answer."""
    status: int | None = None
    """The status that the client got; None when it got no answer."""
    started_s: float = field(default_factory=time.monotonic)
    ended_s: float = 0.0
    """When the answer, or the end of the connection, began to go to the client."""

    def end(self) -> None:
        """Now, unless it has ended before."""
        self.ended_s = self.ended_s or time.monotonic()

    @property
    def container(self) -> str:
        """Behind the account's name."""
        return unquote(self.path).split("/", 3)[2] if self.path.count("/") > 1 else ""

    @property
    def blob(self) -> str:
        """Its name; empty when the request is about a container or the account."""
        return unquote(self.path).split("/", 3)[3] if self.path.count("/") > 2 else ""

    @property
    def operation(self) -> str:
        """As the REST reference calls it, for those that a locker may need; else method and `comp`.

        Source: https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
        """
        comp, kind = self.query.get("comp", ""), self.query.get("restype", "")
        if kind == "account":
            return "Get Account Information"
        if kind == "container":
            return "List Blobs" if comp == "list" else _CONTAINER.get(self.method, f"{self.method} container {comp}")
        return _BLOB.get((self.method, comp), f"{self.method} {comp}")


_CONTAINER = {"PUT": "Create Container", "GET": "Get Container Properties", "HEAD": "Get Container Properties"}
_BLOB = {
    ("PUT", ""): "Put Blob", ("PUT", "block"): "Put Block", ("PUT", "blocklist"): "Put Block List",
    ("GET", "blocklist"): "Get Block List", ("GET", ""): "Get Blob", ("HEAD", ""): "Get Blob Properties",
    ("DELETE", ""): "Delete Blob", ("PUT", "lease"): "Lease Blob", ("GET", "list"): "List Containers",
}  # fmt: skip

# ---------------------------------------------------------------- faults


@dataclass(frozen=True)
class Cut:
    """The connection ends.

    before: nothing reaches the server. body: half of the body does. after: the server has done it and its answer is
    lost. answer: half of the answer comes through.
    """

    where: Literal["before", "body", "after", "answer"]
    reset: bool = True
    """With a reset, as when a machine goes; without, as when a program closes it."""


@dataclass(frozen=True)
class Delay:
    """The answer is held back."""

    seconds: float


@dataclass(frozen=True)
class Rewrite:
    """The server's answer with other headers and another body."""

    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[bytes], bytes] = lambda content: content


Fault = Cut | Answer | Delay | Rewrite
Decide = Callable[[Request], Fault | None]
"""Asked once for each request, in the order of their numbers."""

HIERARCHICAL = Rewrite({"x-ms-is-hns-enabled": "true"})
"""For Get Account Information of an account with a hierarchical namespace."""


def with_folders(*names: str) -> Rewrite:
    """For List Blobs of such an account: folders are entries of their own, told apart by their metadata."""
    entries = "".join(
        f"<Blob><Name>{name}</Name><Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
        "<Last-Modified>Sat, 21 Nov 2026 12:00:00 GMT</Last-Modified><Etag>0x8DC0000000000000</Etag>"
        "<ResourceType>directory</ResourceType></Properties>"
        "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata></Blob>"
        for name in names
    ).encode()

    def add(listing: bytes) -> bytes:
        assert b"<Blobs" in listing, listing
        return listing.replace(b"<Blobs/>", b"<Blobs></Blobs>").replace(b"<Blobs>", b"<Blobs>" + entries)

    return Rewrite(body=add)


# ---------------------------------------------------------------- which requests


def nothing(_: Request) -> Fault | None:
    """All pass."""
    return None


def at(number: int, fault: Fault) -> Decide:
    """The n-th request, counted from 1."""
    return burst(number, 1, fault)


def burst(first: int, count: int, fault: Fault) -> Decide:
    """So many requests from the n-th on."""
    return lambda request: fault if first <= request.number < first + count else None


def on(operation: str, fault: Fault, times: int = 1_000_000) -> Decide:
    """The first requests of one operation, or all."""
    counter = Counter()
    return lambda request: fault if request.operation == operation and counter.next() <= times else None


def either(*decisions: Decide) -> Decide:
    """The first of them that has a fault for the request."""
    return lambda request: next((fault for decide in decisions if (fault := decide(request))), None)


class Counter:
    """1, 2, 3, … for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._value = 0

    def next(self) -> int:
        """The next number."""
        with self._lock:
            self._value += 1
            return self._value
