"""What a page of a listing says.

The SDK turns each blob into a model of fifty fields, which takes four times as long as the request; a locker is listed
at every upload and needs five of them.
Format: https://learn.microsoft.com/rest/api/storageservices/list-blobs
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from urllib.parse import unquote
from xml.etree import ElementTree

from .layout import Stored


class NoListing(ValueError):  # noqa: N818 - named by what happened
    """The answer is something else."""


def blobs_of_page(content: bytes) -> Iterator[tuple[str, Stored]]:
    """Name and figures of each blob, in the order of the service; raises NoListing."""
    try:
        page = ElementTree.fromstring(content)  # noqa: S314 - of the server we signed in to; expat has limits of its own
        blobs = page.find("Blobs")
        if page.tag != "EnumerationResults" or blobs is None:
            raise NoListing("no list of blobs")
        for blob in blobs.iterfind("Blob"):
            yield _name(blob), _stored(blob)
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
