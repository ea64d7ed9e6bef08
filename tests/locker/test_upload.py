"""A version into the locker, against a real blob server."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from azure.storage.blob import BlobBlock

from generator.errors import CannotRead
from generator.locker import upload as uploading
from generator.locker.container import Conflict
from generator.locker.look import look
from generator.locker.refusals import Refused
from generator.locker.upload import NotComplete, finish, upload
from generator.projects.payload import Payload
from tests.locker import azurite
from tests.locker.faults import Request, at
from tests.locker.ground import FILES, Silent, assert_whole, contents, noise, opened, project, send, stored, wanted
from tests.locker.proxy import Proxy
from tests.locker.refusals import Answer

# ---------------------------------------------------------------- what is there afterwards


def test_everything_and_the_manifest_last(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    folder = project(tmp_path, blobs={"big/a.tar": b"blob"})
    done = send(opened(proxy.url, container), folder)
    assert (done.word, len(done.sent)) == ("uploaded", 5)
    assert stored(container) == contents(folder)
    written = [each.blob for each in proxy.done("Put Blob")]
    assert written[-1] == "projects/site/1.0.0/manifest.json"
    assert written[-2] == "projects/site/blobs/big/a.tar"
    assert all(blob.md5 == azurite.md5_of(blob.content) for blob in container.blobs().values())


def test_nothing_is_sent_again(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    folder = project(tmp_path, blobs={"a.tar": b"blob"})
    send(opened(proxy.url, container), folder)
    proxy.forget()
    assert send(opened(proxy.url, container), folder).word == "unchanged"
    assert proxy.sent_bytes == 0
    assert [each.operation for each in proxy.requests] == ["List Blobs", "List Blobs"]


def test_nothing_else_is_touched(tmp_path: Path, container: azurite.Container) -> None:
    others = {
        "projects/site/0.9.0/manifest.json": b"{}",
        "projects/site/1.0.0-old/x": b"1",
        "projects/site/1.0.01/manifest.json": b"2",
        "projects/site/blobs/other": b"3",
        "projects/site2/1.0.0/manifest.json": b"4",
        "blobs/site/x": b"5",
        "cache/projects/site/1.0.0/manifest.json": b"6",
    }
    for name, content in others.items():
        container.put(name, content)
    folder = project(tmp_path)
    send(opened(container.server.url, container), folder)
    assert stored(container) == others | contents(folder)


def test_a_version_without_manifest_is_completed_and_cleaned(tmp_path: Path, container: azurite.Container) -> None:
    folder = project(tmp_path)
    prefix = "projects/site/1.0.0/default/cluster-init/"
    container.put(f"{prefix}files/data", FILES["files/data"])
    container.put(f"{prefix}scripts/10-a.sh", b"of another program")
    container.put(f"{prefix}scripts/99-stale.sh", b"stale")
    done = send(opened(container.server.url, container), folder)
    assert (done.word, done.deleted) == ("completed", (f"{prefix}scripts/99-stale.sh",))
    assert f"{prefix}files/data" not in done.sent
    assert stored(container) == contents(folder)


def test_a_blob_that_vanished_is_put_back(tmp_path: Path, container: azurite.Container) -> None:
    folder = project(tmp_path, blobs={"a": b"1", "b": b"2"})
    opener = opened(container.server.url, container)
    send(opener, folder)
    container.client().delete_blob("projects/site/blobs/a")
    done = send(opener, folder)
    assert (done.word, done.sent) == ("repaired", ("projects/site/blobs/a",))
    assert stored(container) == contents(folder)


# ---------------------------------------------------------------- versions do not change


@pytest.mark.parametrize("change", ["edited", "added", "removed", "gone from the locker"])
def test_another_content_is_refused(tmp_path: Path, container: azurite.Container, change: str) -> None:
    before = project(tmp_path / "old")
    opener = opened(container.server.url, container)
    send(opener, before)
    files = dict(FILES)
    if change == "edited":
        files["files/data"] = b"DATA\n"
    elif change == "added":
        files["files/new"] = b"new"
    elif change == "removed":
        del files["files/data"]
    else:
        container.client().delete_blob("projects/site/1.0.0/default/cluster-init/files/data")
    held = stored(container)
    found = look(opener, wanted(project(tmp_path / "new", files)))
    assert found.state == "different"
    assert len(found.reasons) == 1
    with pytest.raises(ValueError, match="different content"):
        upload(opener, found, Silent())
    assert stored(container) == held


def test_a_blob_that_another_version_uses_is_refused(tmp_path: Path, container: azurite.Container) -> None:
    opener = opened(container.server.url, container)
    send(opener, project(tmp_path / "1", blobs={"a": b"one"}))
    found = look(opener, wanted(project(tmp_path / "2", blobs={"a": b"two"}, version="2.0.0")))
    assert (found.state, found.reasons) == ("different", ("differs: blobs/a, which version 1.0.0 uses",))


def test_a_blob_that_no_version_uses_is_replaced(tmp_path: Path, container: azurite.Container) -> None:
    container.put("projects/site/blobs/a", b"of an upload that never ended")
    folder = project(tmp_path, blobs={"a": b"one"})
    send(opened(container.server.url, container), folder)
    assert stored(container) == contents(folder)


def test_an_unreadable_manifest_counts_as_a_user(tmp_path: Path, container: azurite.Container) -> None:
    container.put("projects/site/blobs/a", b"old")
    container.put("projects/site/0.1.0/manifest.json", b"{")
    found = look(opened(container.server.url, container), wanted(project(tmp_path, blobs={"a": b"new"})))
    assert found.state == "different"


def test_without_md5_the_content_decides(tmp_path: Path, container: azurite.Container) -> None:
    """Other programs leave none for files that they send in blocks."""
    folder = project(tmp_path)
    opener = opened(container.server.url, container)
    send(opener, folder)
    for name, content in stored(container).items():
        client = container.client().get_blob_client(name)
        client.stage_block("one", content or b"-")
        client.commit_block_list([BlobBlock("one")] if content else [])
    assert look(opener, wanted(folder)).state == "same"
    client = container.client().get_blob_client("projects/site/1.0.0/default/cluster-init/files/data")
    client.stage_block("two", b"DATA\n")
    client.commit_block_list([BlobBlock("two")])
    assert look(opener, wanted(folder)).state == "different"


# ---------------------------------------------------------------- large files


@pytest.mark.usefixtures("small_blocks")
def test_a_large_blob_goes_in_blocks(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    folder = project(tmp_path, blobs={"big": noise(10_500)})
    send(opened(proxy.url, container), folder)
    assert stored(container) == contents(folder)
    assert sorted(each.body_bytes for each in proxy.done("Put Block")) == [500] + [1000] * 10
    big = container.blobs("projects/site/blobs/")["projects/site/blobs/big"]
    assert big.md5 == azurite.md5_of(noise(10_500))


@pytest.mark.usefixtures("small_blocks")
def test_what_was_sent_of_a_large_blob_is_not_sent_again(
    tmp_path: Path, container: azurite.Container, proxy: Proxy
) -> None:
    folder = project(tmp_path, blobs={"big": noise(10_500)})
    client = opened(proxy.url, container)
    refuse = Answer(403, "AuthorizationFailure", "no")
    proxy.decide = lambda request: refuse if request.operation == "Put Block" and _place(request) == 7 else None
    with pytest.raises(Exception, match="AuthorizationFailure"):
        send(client, folder)
    first = {_place(each) for each in proxy.done("Put Block")}
    assert first
    assert 7 not in first
    proxy.forget()
    send(opened(proxy.url, container), folder)
    assert {_place(each) for each in proxy.done("Put Block")} == set(range(11)) - first
    assert stored(container) == contents(folder)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_another_content_are_not_used(tmp_path: Path, container: azurite.Container) -> None:
    name = "projects/site/blobs/big"
    client = container.client().get_blob_client(name)
    for number in range(5):
        client.stage_block(f"cf-{number:05d}-{'0' * 32}", b"x" * 1000)
    folder = project(tmp_path, blobs={"big": noise(4_200)})
    send(opened(container.server.url, container), folder)
    assert stored(container) == contents(folder)


@pytest.mark.usefixtures("small_blocks")
def test_blocks_of_another_program_are_given_up(tmp_path: Path, container: azurite.Container) -> None:
    """Azure wants ids of one length in a blob; another program's are of another."""
    name = "projects/site/blobs/big"
    container.client().get_blob_client(name).stage_block("of-az", b"half")
    folder = project(tmp_path, blobs={"big": noise(4_200)})
    opener = opened(container.server.url, container)
    send(opener, folder)
    assert stored(container) == contents(folder)
    assert opener.staged(name) == []


def test_blocks_cover_a_file_and_are_never_too_many() -> None:
    for size_bytes in (1, 999, 1000, 1001, 123_456_789, uploading.BLOCK_BYTES * 50_001):
        parts = uploading.blocks_of(Payload(size_bytes, b""))
        assert len(parts) <= uploading.MOST_BLOCKS
        assert sum(part.size_bytes for part in parts) == size_bytes
        assert all(part.offset == sum(p.size_bytes for p in parts[:1]) * part.number for part in parts)


# ---------------------------------------------------------------- the ground moves


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("path", ["specs/default/cluster-init/files/data", "blobs/big"])
def test_a_file_that_changes_meanwhile_is_noticed(tmp_path: Path, container: azurite.Container, path: str) -> None:
    folder = project(tmp_path, blobs={"big": noise(4_200)})
    opener = opened(container.server.url, container)
    found = look(opener, wanted(folder))
    content = (folder / path).read_bytes()
    (folder / path).write_bytes(content[:-1] + b"!")
    with pytest.raises(CannotRead, match="changed while it was being sent"):
        upload(opener, found, Silent())
    assert "projects/site/1.0.0/manifest.json" not in container.names()
    assert "projects/site/blobs/big" not in container.names() or path != "blobs/big"


def test_two_uploads_at_a_time_do_not_mix(tmp_path: Path, container: azurite.Container) -> None:
    """Both looked at an empty locker; the second one to write meets the first one's files."""
    ours = opened(container.server.url, container)
    found = look(ours, wanted(project(tmp_path / "ours", dict(FILES) | {"files/data": b"ours"})))
    send(opened(container.server.url, container), project(tmp_path / "theirs"))
    with pytest.raises(Conflict, match="another program"):
        upload(ours, found, Silent())
    assert_whole(container, contents(tmp_path / "theirs"))
    assert "projects/site/1.0.0/manifest.json" in container.names()


def test_two_equal_uploads_at_a_time_both_succeed(tmp_path: Path, container: azurite.Container) -> None:
    folder = project(tmp_path)
    ours = opened(container.server.url, container)
    found = look(ours, wanted(folder))
    send(opened(container.server.url, container), folder)
    assert upload(ours, found, Silent()).word == "uploaded"
    assert stored(container) == contents(folder)


def test_no_manifest_over_what_is_not_whole(tmp_path: Path, container: azurite.Container) -> None:
    """Someone removes and adds files while an upload runs."""
    folder = project(tmp_path)
    opener = opened(container.server.url, container)
    with pytest.raises(NotComplete, match="incomplete"):
        finish(opener, wanted(folder))
    for name, content in contents(folder).items():
        if not name.endswith("manifest.json"):
            container.put(name, content)
    container.put("projects/site/1.0.0/default/cluster-init/scripts/00-foreign.sh", b"x")
    with pytest.raises(NotComplete, match="00-foreign"):
        finish(opener, wanted(folder))
    assert "projects/site/1.0.0/manifest.json" not in container.names()


def test_what_is_damaged_on_its_way_is_refused(container: azurite.Container) -> None:
    """The service compares what came with the MD5 that we send along."""
    opener = opened(container.server.url, container)
    right = hashlib.md5(b"content").digest()
    with pytest.raises(Refused, match="contentMD5 doesn't match"):
        opener.put("projects/x", b"content", bytes(16), None)
    assert not container.names()
    opener.put("projects/x", b"content", right, None)


# ---------------------------------------------------------------- one fault


@pytest.mark.parametrize("status", [(500, "InternalError"), (503, "ServerBusy"), (429, "TooManyRequests"), (408, "x")])
def test_a_burst_of_refusals_is_waited_out(
    tmp_path: Path, container: azurite.Container, proxy: Proxy, status: tuple[int, str]
) -> None:
    folder = project(tmp_path)
    burst = Answer(*status, "later", headers={"Retry-After": "0"} if status[0] == 429 else {})
    proxy.decide = lambda request: burst if _times(proxy, request) <= 2 else None
    assert send(opened(proxy.url, container), folder).word == "uploaded"
    assert stored(container) == contents(folder)


def test_an_endless_burst_ends(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    proxy.decide = lambda request: Answer(429, "TooManyRequests", "later", headers={"Retry-After": "3600"})
    with pytest.raises(Exception, match="429"):
        send(opened(proxy.url, container), project(tmp_path))
    assert len(proxy.requests) == 3
    proxy.forget()
    proxy.decide = at(3, Answer(400, "InvalidHeaderValue", "no"))
    with pytest.raises(Exception, match="InvalidHeaderValue"):
        send(opened(proxy.url, container), project(tmp_path))
    assert container.names() < set(contents(tmp_path))


def _place(request: Request) -> int:
    return int(base64.b64decode(request.query["blockid"]).decode().split("-")[1])


def _times(proxy: Proxy, request: Request) -> int:
    same = [each for each in proxy.requests if (each.method, each.path, each.query) == (
        request.method, request.path, request.query)]  # fmt: skip
    return 1 + len(same)
