"""Another content under a version that is there: nodes see the old one, none, or the new one."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.locker.container import Conflict
from generator.locker.look import look
from generator.locker.upload import replace
from tests.locker import azurite
from tests.locker.faults import Request
from tests.locker.ground import FILES, Silent, assert_whole, contents, noise, opened, project, send, stored, wanted
from tests.locker.proxy import Proxy

MANIFEST = "projects/site/1.0.0/manifest.json"
OLD = {**FILES, "files/gone": b"old", "files/big": noise(3_000)}
NEW = {**FILES, "files/data": b"new", "files/more": b"new", "files/big": noise(4_100, 2)}


@pytest.mark.usefixtures("small_blocks")
def test_old_or_none_or_new_and_never_half(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    old = project(tmp_path / "old", OLD, blobs={"a": b"one"})
    new = project(tmp_path / "new", NEW, blobs={"a": b"two", "b": b"three"})
    send(opened(container.server.url, container), old)
    seen: list[bool] = []

    def whole(request: Request) -> None:
        seen.append(MANIFEST in container.names())
        assert_whole(container, contents(old), contents(new))

    proxy.observe = whole
    done = send(opened(proxy.url, container), new, force=True)
    assert done.word == "replaced"
    assert done.deleted == ("projects/site/1.0.0/default/cluster-init/files/gone",)
    assert stored(container) == contents(new)
    # Everything was sent before the version went away, so that it is away for a few short requests only.
    gone = seen.index(False)
    assert all(seen[:gone])
    assert not any(seen[gone:-1])
    assert seen[-1]
    assert proxy.requests[gone].operation == "Delete Blob"
    assert sum(each.body_bytes for each in proxy.requests[gone:] if each.operation == "Put Block") == 0


def test_only_what_differs_is_sent(tmp_path: Path, container: azurite.Container, proxy: Proxy) -> None:
    send(opened(container.server.url, container), project(tmp_path / "old"))
    new = project(tmp_path / "new", {**FILES, "files/data": b"new"})
    done = send(opened(proxy.url, container), new, force=True)
    assert done.sent == ("projects/site/1.0.0/default/cluster-init/files/data", MANIFEST)
    assert stored(container) == contents(new)


def test_files_that_come_and_go(tmp_path: Path, container: azurite.Container) -> None:
    """Also an empty one, and the manifest with it."""
    opener = opened(container.server.url, container)
    send(opener, project(tmp_path / "old"))
    new = project(tmp_path / "new", {"scripts/20-b.sh": b"", "files/empty": b"not any more"}, blobs={"x": b"y"})
    assert len(send(opener, new, force=True).deleted) == 2
    assert stored(container) == contents(new)


def test_after_an_interruption_a_plain_upload_completes_it(tmp_path: Path, container: azurite.Container) -> None:
    opener = opened(container.server.url, container)
    send(opener, project(tmp_path / "old", OLD))
    new = project(tmp_path / "new", NEW)
    opener.delete(MANIFEST)
    assert send(opener, new).word == "completed"
    assert stored(container) == contents(new)


def test_what_was_staged_and_given_up_is_in_nobodys_way(tmp_path: Path, container: azurite.Container) -> None:
    opener = opened(container.server.url, container)
    folder = project(tmp_path)
    for name in wanted(folder).all:
        opener.stage(name, "cf-00000-" + "0" * 32, b"given up")
    send(opener, folder)
    assert stored(container) == contents(folder)


def test_somebody_else_replaced_it_meanwhile(tmp_path: Path, container: azurite.Container) -> None:
    opener = opened(container.server.url, container)
    send(opener, project(tmp_path / "old", OLD))
    found = look(opener, wanted(project(tmp_path / "ours", NEW)))
    theirs = project(tmp_path / "theirs", {**FILES, "files/data": b"theirs"})
    send(opener, theirs, force=True)
    with pytest.raises(Conflict, match="another program"):
        replace(opened(container.server.url, container), found, Silent())
    assert stored(container) == contents(theirs)
