"""Pages of listings, as Azure writes them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from urllib.parse import quote
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.locker.layout import Stored
from generator.locker.listing import NoListing, blocks_of, page_of
from tests.locker import azurite
from tests.locker.ground import opened

MD5 = bytes(range(16))
PAGE = """\ufeff<?xml version="1.0" encoding="utf-8"?>
<EnumerationResults ServiceEndpoint="https://a.blob.core.windows.net/" ContainerName="c"><Prefix>projects/</Prefix>
<Blobs>{}</Blobs><NextMarker /></EnumerationResults>"""
BLOB = """<Blob><Name{attribute}>{name}</Name><Properties><Last-Modified>Sat, 21 Nov 2026 12:00:00 GMT</Last-Modified>
<Etag>0x8DE1</Etag><Content-Length>{size}</Content-Length><Content-Type>text/plain</Content-Type>
<Content-MD5>{md5}</Content-MD5><BlobType>BlockBlob</BlobType>{more}</Properties>{metadata}<OrMetadata /></Blob>"""


def page(name: str = "projects/a", *, size: object = 3, md5: str = "", attribute: str = "", more: str = "",
         metadata: str = "") -> bytes:  # fmt: skip
    blob = BLOB.format(attribute=attribute, name=name, size=size, md5=md5, more=more, metadata=metadata)
    return PAGE.format(blob).encode()


def blobs_in(content: bytes) -> list[tuple[str, Stored]]:
    return page_of(content)[0]


def test_the_five_figures() -> None:
    ((name, blob),) = blobs_in(page(md5=base64.b64encode(MD5).decode()))
    assert (name, blob.size_bytes, blob.md5, blob.is_folder) == ("projects/a", 3, MD5, False)
    assert blob.modified == datetime(2026, 11, 21, 12, tzinfo=UTC)
    assert blob.etag == '"0x8DE1"', "conditions need the quotes"


def test_without_md5_there_is_none() -> None:
    assert next(iter(blobs_in(page())))[1].md5 is None


@pytest.mark.parametrize(
    "folder",
    [
        {"more": "<ResourceType>directory</ResourceType>"},
        {"metadata": "<Metadata><hdi_isfolder>true</hdi_isfolder></Metadata>"},
    ],
)
def test_folders_are_told_apart(folder: dict[str, str]) -> None:
    assert next(iter(blobs_in(page(**folder))))[1].is_folder


def test_an_empty_container() -> None:
    assert list(blobs_in(PAGE.format("").encode())) == []


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1))
def test_any_name(name: str) -> None:
    assert next(iter(blobs_in(page(escape(name)))))[0] == name
    assert next(iter(blobs_in(page(quote(name), attribute=' Encoded="true"'))))[0] == name


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<",
        b"<html><body>Sign in</body></html>",
        b"<EnumerationResults/>",
        page(size="many"),
        page(md5="?"),
        page(""),
    ],
)
def test_anything_else_is_no_listing(content: bytes) -> None:
    with pytest.raises(NoListing):
        list(blobs_in(content))


def test_where_the_next_page_begins() -> None:
    assert page_of(PAGE.format("").encode())[1] == ""
    more = PAGE.replace("<NextMarker />", "<NextMarker>2!8!x--</NextMarker>").format("").encode()
    assert page_of(more)[1] == "2!8!x--"


def test_blocks_that_wait() -> None:
    block = "<Block><Name>{}</Name><Size>{}</Size></Block>"
    listing = "<?xml version='1.0'?><BlockList><CommittedBlocks/><UncommittedBlocks>{}</UncommittedBlocks></BlockList>"
    rows = block.format("Y2YtMQ==", 12) + block.format("/w==", 0)
    assert blocks_of(listing.format(rows).encode()) == [("cf-1", 12), ("\\xff", 0)]
    assert blocks_of(b"<BlockList/>") == []
    wrong = [listing.format(block.format(*row)) for row in (("?", 1), ("", "x"))]
    for content in ("", "<html/>", *wrong):
        with pytest.raises(NoListing):
            blocks_of(content.encode())


def test_as_the_sdk_reads_it(container: azurite.Container, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several pages, and names that must be escaped."""
    monkeypatch.setattr("generator.locker.container._PAGE_NAMES", 2)
    for name in ("a&b", "ü <x>", "c d", "100%"):
        container.put(f"projects/{name}", name.encode())
    found = dict(opened(container.server.url, container).listing("projects/"))
    for blob in container.client().list_blobs():
        ours = found.pop(blob.name)
        assert (ours.size_bytes, ours.etag.strip('"')) == (blob.size, blob.etag.strip('"'))
        assert ours.md5 == (bytes(blob.content_settings.content_md5) if blob.content_settings.content_md5 else None)
        assert ours.modified == blob.last_modified
    assert not found
