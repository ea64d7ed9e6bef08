"""The narrow interface to one container of Azure's blob service.

Each method is one request (a listing: one per 5000 names; a download: one per 2 MiB) and raises Refused. A write says
what it expects to find, so two uploads at a time cannot mix unseen; a write whose answer was lost and that is tried
again is recognised by content.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from http import HTTPStatus
from xml.sax.saxutils import escape

from ..records import record
from .address import Address
from .credentials import SignIn
from .layout import Listing, Stored
from .listing import NoListing, blocks_of, page_of
from .refusals import Refused, explained
from .service import Limits, Service, ServiceError

CONNECTIONS = 16
NEW = ""
"""In place of an ETag: there must be no blob of the name."""
Expected = str | None
"""An ETag, NEW, or None for whatever is there."""
_WRITTEN_MEANWHILE = ("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet")
_NO_BLOB = "BlobNotFound"
_PIECE_BYTES = 2 * 2**20
"""Read at once of a download; times the number of connections, this bounds the memory."""
_PAGE_NAMES = 5000
"""Of a listing; the service gives no more at once."""
_FIRST_TRIES = 4
"""Of the first request: a wrong name or a closed door should not take a minute to be reported."""


@record
class Staged:
    """A block that was sent and is not yet part of a blob."""

    id: str
    size_bytes: int


class Conflict(Refused):
    """Someone else has written the blob since we looked."""


class Container:
    """One container. `stop` ends waiting for a next try."""

    def __init__(self, address: Address, sign_in: SignIn, limits: Limits | None = None) -> None:
        self.address = address
        self._sign_in = sign_in
        self._service = Service(address, sign_in.signature, limits or Limits(), CONNECTIONS)
        self.stop = self._service.stop

    def run_all(self, tasks: Iterable[Callable[[], None]], workers: int = CONNECTIONS) -> None:
        """Run tasks in threads and raise the first error; then nothing more is begun, and `stop` ends what waits.

        Tasks should hold little: all of them are queued at once.
        """
        pool = ThreadPoolExecutor(workers, thread_name_prefix="locker")
        try:
            for future in as_completed([pool.submit(task) for task in tasks]):
                future.result()
        except BaseException as error:
            self.stop.set()
            # After Ctrl-C nobody wants to wait for an answer of the service.
            pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
            raise
        pool.shutdown()

    def listing(self, prefix: str) -> Listing:
        """All blobs below a prefix, by name in the order of the service."""
        found: dict[str, Stored] = {}
        query = {"restype": "container", "comp": "list", "prefix": prefix}
        query |= {"include": "metadata", "maxresults": str(_PAGE_NAMES)}
        with self._explained():
            while True:
                answer = self._service.send("GET", query=query, tries=_FIRST_TRIES)
                blobs, query["marker"] = page_of(answer.content)
                found.update(blobs)
                if not query["marker"]:
                    return found

    def is_hierarchical(self) -> bool | None:
        """Whether the account has a hierarchical namespace; None when we may not know."""
        query = {"restype": "account", "comp": "properties"}
        with self._explained():
            try:
                answer = self._service.send("GET", query=query, tries=_FIRST_TRIES, about_account=True)
            except ServiceError as error:
                if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
                return None
        return answer.headers.get("x-ms-is-hns-enabled", "").lower() == "true"

    def put(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        """A whole blob in one request; the service compares its MD5. Raises Conflict."""
        with self._explained():
            try:
                self._upload(name, content, md5, expected)
            except ServiceError as error:
                # Where blocks were staged and never committed, a server may say that there is a blob.
                if not self._is_there(name, len(content), md5, error):
                    self._upload(name, content, md5, None)

    def _upload(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        checksum = base64.b64encode(md5).decode("ascii")
        headers = {"x-ms-blob-type": "BlockBlob", "Content-MD5": checksum, "x-ms-blob-content-md5": checksum}
        self._service.send("PUT", name, headers=headers | _condition(expected), content=content)

    def stage(self, name: str, block_id: str, content: bytes) -> None:
        """Send a block, which nobody sees before it is committed.

        Without an MD5: TLS protects it on its way, and for large files a second checksum costs more than it finds.
        Source: https://learn.microsoft.com/rest/api/storageservices/put-block
        """
        with self._explained():
            self._service.send("PUT", name, {"comp": "block", "blockid": _base64(block_id)}, content=content)

    def staged(self, name: str) -> list[Staged]:
        """The blocks of a blob that were sent and not committed; the service forgets them after a week."""
        with self._explained():
            try:
                answer = self._service.send("GET", name, {"comp": "blocklist", "blocklisttype": "uncommitted"})
            except ServiceError as error:
                if error.code == _NO_BLOB:
                    return []
                raise
            return [Staged(block_id, size_bytes) for block_id, size_bytes in blocks_of(answer.content)]

    def forget_staged(self, name: str) -> None:
        """Give up the staged blocks of a blob that does not exist yet."""
        try:
            self.put(name, b"", hashlib.md5(b"", usedforsecurity=False).digest(), NEW)
        except Conflict:
            return
        self.delete(name)

    def commit(self, name: str, block_ids: list[str], size_bytes: int, md5: bytes, expected: Expected) -> None:
        """Make staged blocks the content of a blob, all at once. Raises Conflict."""
        rows = "".join(f"<Latest>{escape(_base64(block_id))}</Latest>" for block_id in block_ids)
        content = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{rows}</BlockList>'.encode()
        headers = {"x-ms-blob-content-md5": base64.b64encode(md5).decode("ascii"), **_condition(expected)}
        with self._explained():
            try:
                self._service.send("PUT", name, {"comp": "blocklist"}, headers, content)
            except ServiceError as error:
                if not self._is_there(name, size_bytes, md5, error):
                    raise

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of a blob, piece by piece; a blob that is changed meanwhile is refused."""
        begin, end = 0, _PIECE_BYTES
        condition: dict[str, str] = {}
        with self._explained():
            while begin < end:
                wanted = {"x-ms-range": f"bytes={begin}-{begin + _PIECE_BYTES - 1}"}
                try:
                    answer = self._service.send("GET", name, headers=wanted | condition)
                except ServiceError as error:
                    if error.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and not begin:
                        return  # nothing is in it
                    raise
                condition = {"If-Match": answer.headers.get("ETag", "")}
                begin, end = begin + len(answer.content), _whole_bytes(answer.headers.get("Content-Range", ""))
                yield answer.content

    def read(self, name: str) -> bytes:
        """The content of a small blob."""
        return b"".join(self.stream(name))

    def delete(self, name: str, expected: Expected = None) -> None:
        """Remove a blob; one that is gone already is as well. Raises Conflict."""
        with self._explained():
            try:
                self._service.send("DELETE", name, headers=_condition(expected))
            except ServiceError as error:
                if error.code == _NO_BLOB:
                    return
                # The answer to an earlier try may have been lost; nothing is left of what was to go.
                if error.code not in _WRITTEN_MEANWHILE:
                    raise
                if self._properties(name) is not None:
                    raise Conflict(f"{name} was changed by another program", _AGAIN) from error

    def _properties(self, name: str) -> tuple[int, str] | None:
        """Size and MD5 (base64, as its writer claimed it) of a blob; None if there is none."""
        try:
            headers = self._service.send("HEAD", name).headers
        except ServiceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return int(headers.get("Content-Length", "0")), headers.get("Content-MD5", "")

    def _is_there(self, name: str, size_bytes: int, md5: bytes, error: ServiceError) -> bool:
        """After a refused write: True when the blob has our content, since the answer to an earlier try was lost.

        False when there is no blob. Raises Conflict when there is another one, and errors that mean something else.
        """
        if error.code not in _WRITTEN_MEANWHILE:
            raise error
        found = self._properties(name)
        if found is None:
            return False
        if found == (size_bytes, base64.b64encode(md5).decode("ascii")):
            return True
        raise Conflict(f"{name} was changed by another program", _AGAIN) from error

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.address, self._sign_in)


_AGAIN = "another upload of the project may be running: wait until it has finished, then run the command again"


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")


def _whole_bytes(content_range: str) -> int:
    """The last number of `bytes 0-99/1000`."""
    number = content_range.rpartition("/")[2]
    if not number.isdecimal():
        raise NoListing(f"no range of a blob: {content_range!r}")
    return int(number)


def _condition(expected: Expected) -> dict[str, str]:
    if expected is None:
        return {}
    return {"If-None-Match": "*"} if expected == NEW else {"If-Match": expected}
