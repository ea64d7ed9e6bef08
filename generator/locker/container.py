"""The narrow interface to one container of Azure's blob service.

Each method is one request (a listing: one per 5000 names; a download: one per 2 MiB) and raises Refused. A write says
what it expects to find, so two uploads at a time cannot mix unseen; a write whose answer was lost and that is tried
again is recognised by content.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobProperties, ContentSettings
from msgspec import Struct

from .address import Address
from .client import CONNECTIONS, Limits, client
from .credentials import SignIn
from .layout import Listing, Stored
from .refusals import Refused, code_of, explained, not_azure

NEW = ""
"""In place of an ETag: there must be no blob of the name."""
Expected = str | None
"""An ETag, NEW, or None for whatever is there."""
_WRITTEN_MEANWHILE = ("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet")
_NO_BLOB = "BlobNotFound"
_PAGE_NAMES = 5000
"""Of a listing; the service gives no more at once."""
_FIRST_TRIES = 4
"""Of the first request: a wrong name or a closed door should not take a minute to be reported."""


class Staged(Struct, frozen=True):
    """A block that was sent and is not yet part of a blob."""

    id: str
    size_bytes: int


class Conflict(Refused):
    """Someone else has written the blob since we looked."""


class Container:
    """One container. `stop` ends waiting for a next try."""

    def __init__(self, address: Address, sign_in: SignIn, limits: Limits | None = None) -> None:
        self.address = address
        self.stop = threading.Event()
        self._sign_in = sign_in
        self._client = client(address, sign_in.credential, limits or Limits(), self.stop)

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
        with self._understood():
            found = self._client.list_blobs(prefix, ["metadata"], results_per_page=_PAGE_NAMES, tries=_FIRST_TRIES)
            return {blob.name: _stored(blob) for blob in found}

    def is_hierarchical(self) -> bool | None:
        """Return True when the account has a hierarchical namespace; None when that cannot be asked."""
        with self._explained():
            try:
                return bool(self._client.get_account_information(tries=_FIRST_TRIES).get("is_hns_enabled"))
            except HttpResponseError as error:
                if error.status_code is None or error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
                return None

    def put(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        """A whole blob in one request; the service compares its MD5. Raises Conflict."""
        with self._explained():
            try:
                self._upload(name, content, md5, expected)
            except HttpResponseError as error:
                # Where blocks were staged and never committed, a server may say that there is a blob.
                if not self._is_there(name, len(content), md5, error):
                    self._upload(name, content, md5, None)

    def _upload(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        self._client.upload_blob(
            name, content, length=len(content), overwrite=True, validate_content=True,
            content_settings=_with(md5), **_condition(expected),
        )  # fmt: skip

    def stage(self, name: str, block_id: str, content: bytes) -> None:
        """Send a block, which nobody sees before it is committed.

        Without an MD5: TLS protects it on its way, and for large files a second checksum costs more than it finds.
        Source: https://learn.microsoft.com/rest/api/storageservices/put-block
        """
        with self._explained():
            self._client.get_blob_client(name).stage_block(block_id, content, len(content))

    def staged(self, name: str) -> list[Staged]:
        """The blocks of a blob that were sent and not committed; the service forgets them after a week."""
        with self._understood():
            try:
                _, blocks = self._client.get_blob_client(name).get_block_list("uncommitted")
            except HttpResponseError as error:
                if code_of(error) == _NO_BLOB:
                    return []
                raise
            return [Staged(block.id, block.size) for block in blocks]

    def forget_staged(self, name: str) -> None:
        """Give up the staged blocks of a blob that does not exist yet."""
        try:
            self.put(name, b"", hashlib.md5(b"", usedforsecurity=False).digest(), NEW)
        except Conflict:
            return
        self.delete(name)

    def commit(self, name: str, block_ids: list[str], size_bytes: int, md5: bytes, expected: Expected) -> None:
        """Make staged blocks the content of a blob, all at once. Raises Conflict."""
        blocks = [BlobBlock(block_id) for block_id in block_ids]
        with self._explained():
            try:
                self._client.get_blob_client(name).commit_block_list(
                    blocks, content_settings=_with(md5), **_condition(expected)
                )
            except HttpResponseError as error:
                if not self._is_there(name, size_bytes, md5, error):
                    raise

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of a blob, piece by piece; a blob that is changed meanwhile is refused."""
        with self._understood():
            yield from self._client.download_blob(name, max_concurrency=1).chunks()

    def read(self, name: str) -> bytes:
        return b"".join(self.stream(name))

    def delete(self, name: str, expected: Expected = None) -> None:
        """Remove a blob; one that is gone already is as well. Raises Conflict."""
        with self._explained():
            try:
                self._client.delete_blob(name, **_condition(expected))
            except HttpResponseError as error:
                code = code_of(error)
                if code == _NO_BLOB:
                    return
                # The answer to an earlier try may have been lost; nothing is left of what was to go.
                if code not in _WRITTEN_MEANWHILE:
                    raise
                if self._properties(name) is not None:
                    raise Conflict(f"{name} was changed by another program", _AGAIN) from error

    def delete_all(self, blobs: Mapping[str, Stored]) -> None:
        """Remove blobs, each only if it is the one that was listed."""
        self.run_all(partial(self.delete, name, stored.etag) for name, stored in blobs.items())

    def _properties(self, name: str) -> BlobProperties | None:
        try:
            return self._client.get_blob_client(name).get_blob_properties()
        except ResourceNotFoundError:
            return None

    def _is_there(self, name: str, size_bytes: int, md5: bytes, error: HttpResponseError) -> bool:
        """After a refused write: True when the blob has our content, since the answer to an earlier try was lost.

        False when there is no blob. Raises Conflict when there is another one, and errors that mean something else.
        """
        if code_of(error) not in _WRITTEN_MEANWHILE:
            raise error
        found = self._properties(name)
        if found is None:
            return False
        if found.size == size_bytes and bytes(found.content_settings.content_md5 or b"") == md5:
            return True
        raise Conflict(f"{name} was changed by another program", _AGAIN) from error

    @contextmanager
    def _understood(self) -> Iterator[None]:
        """The package takes any answer for one of Azure, and fails somewhere in its models when it is another."""
        with self._explained():
            try:
                yield
            except (AttributeError, LookupError, TypeError, ValueError) as error:
                raise not_azure(HTTPStatus.OK, self.address) from error

    def _explained(self) -> AbstractContextManager[None]:
        return explained(self.address, self._sign_in)


_AGAIN = "another upload of the project may be running: wait until it has finished, then run the command again"


def _stored(blob: BlobProperties) -> Stored:
    md5, etag = blob.content_settings.content_md5, blob.etag
    if not blob.name or blob.last_modified is None:
        raise ValueError("a blob without its name or time")
    # Listings leave out the quotes that a condition needs.
    quoted = etag if etag.startswith('"') else f'"{etag}"'
    is_folder = (blob.metadata or {}).get("hdi_isfolder") == "true"
    return Stored(int(blob.size), bytes(md5) if md5 else None, quoted, blob.last_modified, is_folder)


def _with(md5: bytes) -> ContentSettings:
    return ContentSettings(content_md5=bytearray(md5))


def _condition(expected: Expected) -> dict[str, Any]:
    if expected is None:
        return {}
    if expected == NEW:
        return {"match_condition": MatchConditions.IfMissing}
    return {"etag": expected, "match_condition": MatchConditions.IfNotModified}
