"""The narrow interface to one container of Azure's blob service.

Each method is one request (a listing: one per 5000 names) and raises Refused. A write says what it expects to find, so
two uploads at a time cannot mix unseen; a write whose answer was lost and that is tried again is recognised by content.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import BlobBlock, BlobClient, ContainerClient, ContentSettings

from .address import Address
from .credentials import SignIn
from .layout import Listing, Stored
from .listing import NoListing, blobs_of_page
from .refusals import Refused, error_code, explained, not_azure
from .retries import BoundedRetries, Limits
from .transport import transport

CONNECTIONS = 16
NEW = ""
"""In place of an ETag: there must be no blob of the name."""
Expected = str | None
"""An ETag, NEW, or None for whatever is there."""
_WRITTEN_MEANWHILE = ("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet")
_PIECE_BYTES = 2 * 2**20
"""Read at once of a download; times the number of connections, this bounds the memory."""
_FIRST_TRIES = 3
"""Of the first request: a wrong name or a closed door should not take a minute to be reported."""


@dataclass(frozen=True)
class Staged:
    """A block that was sent and is not yet part of a blob."""

    id: str
    size_bytes: int


class Conflict(Refused):
    """Somebody else has written the blob since we looked."""


class Container:
    """One container. `stop` ends waiting for a next try."""

    def __init__(self, address: Address, sign_in: SignIn, limits: Limits | None = None) -> None:
        self.address = address
        self.stop = threading.Event()
        self._sign_in = sign_in
        limits = limits or Limits()
        self._client = ContainerClient(
            address.account_url, address.container, credential=sign_in.value,
            retry_policy=BoundedRetries(limits, self.stop),
            transport=transport(address.account_url, limits, CONNECTIONS),
            max_single_get_size=_PIECE_BYTES, max_chunk_get_size=_PIECE_BYTES,
        )  # fmt: skip

    def listing(self, prefix: str) -> Listing:
        """All blobs below a prefix, by name in the order of the service."""
        found: dict[str, Stored] = {}

        def keep(content: bytes) -> None:
            found.update(blobs_of_page(content))

        with explained(self.address, self._sign_in):
            names = self._client.list_blob_names(name_starts_with=prefix, retry_total=_FIRST_TRIES, content_hook=keep)
            try:
                missing = set(names) - set(found)
            except (NoListing, AttributeError) as error:  # the SDK's word for another document than a listing
                raise not_azure(200, self.address) from error
        if missing:
            raise Refused(f"{self.address}: a listing without {min(missing)!r}", "run the command again")
        return found

    def is_hierarchical(self) -> bool | None:
        """Whether the account has a hierarchical namespace; None when we may not know."""
        with explained(self.address, self._sign_in):
            try:
                information = self._client.get_account_information(retry_total=_FIRST_TRIES)
            except HttpResponseError as error:
                if error.status_code is None or error.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
                return None
        return bool(information.get("is_hns_enabled"))

    def put(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        """A whole blob in one request; the service compares its MD5. Raises Conflict."""
        with explained(self.address, self._sign_in):
            try:
                self._upload(name, content, md5, expected)
            except (ResourceExistsError, ResourceModifiedError) as error:
                # Where blocks were staged and never committed, a server may say that there is a blob.
                if not self._is_there(name, len(content), md5, error):
                    self._upload(name, content, md5, None)

    def _upload(self, name: str, content: bytes, md5: bytes, expected: Expected) -> None:
        self._blob(name).upload_blob(
            content, length=len(content), overwrite=expected != NEW, headers=_checksum(md5),
            content_settings=ContentSettings(content_md5=bytearray(md5)), **_condition(expected),
        )  # fmt: skip

    def stage(self, name: str, block_id: str, content: bytes) -> None:
        """Send a block, which nobody sees before it is committed.

        Without an MD5: TLS protects it on its way, and for large files a second checksum costs more than it finds.
        Source: https://learn.microsoft.com/python/api/azure-storage-blob/azure.storage.blob.blobclient
        """
        with explained(self.address, self._sign_in):
            self._blob(name).stage_block(block_id, content, len(content))

    def staged(self, name: str) -> list[Staged]:
        """The blocks of a blob that were sent and not committed; the service forgets them after a week."""
        with explained(self.address, self._sign_in):
            try:
                _, blocks = self._blob(name).get_block_list("uncommitted")
            except ResourceNotFoundError as error:
                if error_code(error) == "BlobNotFound":
                    return []
                raise
        return [Staged(str(block.id), int(block.size)) for block in blocks]

    def forget_staged(self, name: str) -> None:
        """Give up the staged blocks of a blob that does not exist yet."""
        try:
            self.put(name, b"", hashlib.md5(b"", usedforsecurity=False).digest(), NEW)
        except Conflict:
            return
        self.delete(name)

    def commit(self, name: str, block_ids: list[str], size_bytes: int, md5: bytes, expected: Expected) -> None:
        """Make staged blocks the content of a blob, all at once. Raises Conflict."""
        settings = ContentSettings(content_md5=bytearray(md5))
        with explained(self.address, self._sign_in):
            try:
                self._blob(name).commit_block_list(
                    [BlobBlock(block_id=block_id) for block_id in block_ids],
                    content_settings=settings, **_condition(expected),
                )  # fmt: skip
            except (ResourceExistsError, ResourceModifiedError) as error:
                if not self._is_there(name, size_bytes, md5, error):
                    raise

    def stream(self, name: str) -> Iterator[bytes]:
        """The content of a blob, piece by piece."""
        with explained(self.address, self._sign_in):
            yield from self._blob(name).download_blob(max_concurrency=1).chunks()

    def read(self, name: str) -> bytes:
        """The content of a small blob."""
        return b"".join(self.stream(name))

    def delete(self, name: str, expected: Expected = None) -> None:
        """Remove a blob; one that is gone already is as well. Raises Conflict."""
        with explained(self.address, self._sign_in):
            try:
                self._blob(name).delete_blob(**_condition(expected))
            except ResourceNotFoundError as error:
                if error_code(error) != "BlobNotFound":
                    raise
            except ResourceModifiedError as error:
                # The answer to an earlier try may have been lost; nothing is left of what was to go.
                if error_code(error) not in _WRITTEN_MEANWHILE:
                    raise
                if self._exists(name):
                    raise Conflict(f"{name} has been written by somebody else", _AGAIN) from error

    def _blob(self, name: str) -> BlobClient:
        return self._client.get_blob_client(name)

    def _exists(self, name: str) -> bool:
        return bool(self._blob(name).exists())

    def _is_there(self, name: str, size_bytes: int, md5: bytes, error: HttpResponseError) -> bool:
        """After a refused write: True when the blob has our content, since the answer to an earlier try was lost.

        False when there is no blob. Raises Conflict when there is another one, and errors that mean something else.
        """
        if error_code(error) not in _WRITTEN_MEANWHILE:
            raise error
        try:
            found = self._blob(name).get_blob_properties()
        except ResourceNotFoundError:
            return False
        if found.size == size_bytes and found.content_settings.content_md5 == bytearray(md5):
            return True
        raise Conflict(f"{name} has been written by somebody else", _AGAIN) from error


_AGAIN = "another upload of the project may be running: wait until it has ended, then run the command again"


def _checksum(md5: bytes) -> dict[str, str]:
    """The header that lets the service refuse what was damaged on its way; the SDK would compute it once more."""
    return {"Content-MD5": base64.b64encode(md5).decode("ascii")}


def _condition(expected: Expected) -> dict[str, Any]:
    if expected is None:
        return {}
    if expected == NEW:
        return {"match_condition": MatchConditions.IfMissing}
    return {"etag": expected, "match_condition": MatchConditions.IfNotModified}
