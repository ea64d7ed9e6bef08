"""What the blob service answers when it lists blobs or blocks.

Formats: https://learn.microsoft.com/rest/api/storageservices/list-blobs and .../get-block-list
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.etree import ElementTree

from .layout import Stored


class NoListing(ValueError):  # noqa: N818 - named by what happened
    """The answer is something else."""


def page_of(content: bytes) -> tuple[list[tuple[str, Stored]], str]:
    """Name and figures of each blob, in the order of the service, and where the next page begins; raises NoListing."""
    with _understood():
        page = ElementTree.fromstring(content)  # noqa: S314 - of the server we signed in to; expat has limits of its own
        blobs = page.find("Blobs")
        if page.tag != "EnumerationResults" or blobs is None:
            raise NoListing("no list of blobs")
        return [(_name(blob), _stored(blob)) for blob in blobs.iterfind("Blob")], page.findtext("NextMarker") or ""


def blocks_of(content: bytes) -> list[tuple[str, int]]:
    """Id and bytes of each block that was sent and not committed; raises NoListing."""
    with _understood():
        page = ElementTree.fromstring(content)  # noqa: S314
        if page.tag != "BlockList":
            raise NoListing("no list of blocks")
        rows = page.iterfind("UncommittedBlocks/Block")
        return [(_text(row.findtext("Name") or ""), int(row.findtext("Size") or "")) for row in rows]


def _text(block_id: str) -> str:
    """An id as its writer chose it, which may be no text at all."""
    return base64.b64decode(block_id, validate=True).decode("utf-8", "backslashreplace")


@contextmanager
def _understood() -> Iterator[None]:
    try:
        yield
    except (ElementTree.ParseError, binascii.Error, TypeError, ValueError) as error:
        raise NoListing(str(error)) from error


def _name(blob: ElementTree.Element) -> str:
    """A name with characters that XML cannot hold comes percent-encoded."""
    name = blob.find("Name")
    if name is None or not name.text:
        raise NoListing("a blob without a name")
    return unquote(name.text) if name.get("Encoded") == "true" else name.text


def _stored(blob: ElementTree.Element) -> Stored:
    def value(field: str) -> str:
        return blob.findtext(f"Properties/{field}") or ""

    md5 = value("Content-MD5")
    is_folder = value("ResourceType") == "directory" or blob.findtext("Metadata/hdi_isfolder") == "true"
    return Stored(
        int(value("Content-Length")), base64.b64decode(md5, validate=True) if md5 else None, _quoted(value("Etag")),
        parsedate_to_datetime(value("Last-Modified")), is_folder,
    )  # fmt: skip


def _quoted(etag: str) -> str:
    """Listings leave out the quotes that a condition needs."""
    return etag if etag.startswith('"') else f'"{etag}"'
