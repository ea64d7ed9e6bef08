"""`cycleforge locker prune`: old versions away, and nothing else."""

from __future__ import annotations

import os
import pty
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from generator.locker.prune import RUNNING, Prune, plan_prune, prune
from generator.locker.refusals import Refused
from tests.locker.azurite import Container
from tests.locker.command import Command, in_locker, site
from tests.locker.faults import Counter, Cut, Request
from tests.locker.ground import contents, opened, stored
from tests.locker.proxy import Proxy

ROOT_FOLDER = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, container: Container
) -> Iterator[Command]:
    yield from in_locker(monkeypatch, capsys, tmp_path, container)


def define(run: Command, name: str, *projects: str, extra: str = "") -> None:
    """A definition in `cluster_defs/`; `projects` are entries of its own."""
    folder = run.folder / "here/cluster_defs"
    folder.mkdir(exist_ok=True)
    text = (ROOT_FOLDER / "cluster_defs/minimal.yaml").read_text().replace("max_nodes: 2", f"max_nodes: 2{extra}")
    entries = "".join(f"  - {entry}\n" for entry in projects)
    (folder / f"{name}.yaml").write_text(f"{text}\nprojects:\n{entries}" if entries else text)


@pytest.fixture
def filled(run: Command, container: Container) -> Container:
    """Versions of `site`, of which definitions use two, and of another project."""
    site(run, container, "1.0.0", shared__bin=b"s", first__bin=b"1")
    site(run, container, "1.1.0", shared__bin=b"s", second__bin=b"2")
    site(run, container, "1.9.0", shared__bin=b"s")
    site(run, container, "1.10.0", new__bin=b"n")
    for version in ("0.1.0", "0.2.0"):
        container.put(f"projects/foreign/{version}/manifest.json", b"{}")
    container.put("projects/foreign/blobs/x", b"")
    define(run, "one", "{name: site, version: 1.1.0}", extra=", extra_projects: [site]")
    define(run, "two")
    return container


def test_prune(run: Command, filled: Container, proxy: Proxy) -> None:
    run.environment(CYCLEFORGE_LOCKER=f"{proxy.url}/{filled.name}")
    before = stored(filled)
    code, out, _ = run("locker", "prune", "--dry-run")
    assert (code, out.splitlines()) == (0, [
        "remove  site 1.0.0, 336 B",
        "remove  site 1.9.0, 223 B",
        "remove  projects/site/blobs/first.bin, 1 B",
        "keep    foreign 0.1.0: of a project that no definition here names",
        "keep    foreign 0.2.0: of a project that no definition here names",
        "keep    site 1.1.0: used by a definition here",
        "keep    site 1.10.0: one of the newest, --keep",
    ])  # fmt: skip
    code, out, err = run("locker", "prune")
    assert code == 2
    assert "there is no terminal to ask on" in err
    assert "--yes removes without asking" in err
    assert stored(filled) == before
    assert proxy.done("Delete Blob") == []

    seen: list[set[str]] = []

    def whole(_: Request) -> None:
        now = filled.names()
        for version in ("1.0.0", "1.1.0", "1.9.0", "1.10.0"):
            if f"projects/site/{version}/manifest.json" in now:
                missing = {each for each in contents(run.folder / f"site-{version}") if each not in now}
                assert not missing, f"{version} is visible without {missing}"
        seen.append(now)

    proxy.observe = whole
    code, found = run.json("locker", "prune", "--yes")
    assert (code, found["ok"], found["dry_run"], found["locker"]) == (0, True, False, f"{proxy.url}/{filled.name}")
    assert [(each["project"], each["version"]) for each in found["removed"]] == [("site", "1.0.0"), ("site", "1.9.0")]
    assert found["blobs"] == ["projects/site/blobs/first.bin"]
    assert len(seen) > 8
    gone = {name for name in before if "/1.0.0/" in name or "/1.9.0/" in name or name.endswith("first.bin")}
    assert stored(filled) == {name: content for name, content in before.items() if name not in gone}
    assert run("locker", "prune", "--yes") == (0, "nothing to remove\n", "")


def test_how_many_stay_anyway(run: Command, filled: Container) -> None:
    def going(*words: str) -> list[str]:
        code, found = run.json("locker", "prune", "--dry-run", *words)
        assert code == 0
        return [each["version"] for each in found["would_remove"]]

    assert going("--keep", "0") == ["1.0.0", "1.9.0", "1.10.0"]
    assert going("--keep", "2") == ["1.0.0"]
    assert going("--keep", "9") == []
    assert going("two") == []
    assert going("one", "--keep", "0") == ["1.0.0", "1.9.0", "1.10.0"]
    code, said = run.refused("locker", "prune", "--keep", "-1")
    assert (code, "--keep is a number of versions" in said) == (2, True)


def test_a_version_that_is_only_named_is_used(run: Command, filled: Container) -> None:
    define(run, "three", "{name: site, version: 1.0.0}")
    out = run("locker", "prune", "--dry-run")[1]
    assert "keep    site 1.0.0: used by a definition here" in out


def test_a_definition_with_errors_prunes_nothing(run: Command, filled: Container) -> None:
    before = filled.names()
    (run.folder / "here/cluster_defs/bad.yaml").write_text("name: x\n")
    code, out, err = run("locker", "prune", "--yes")
    assert (code, out) == (1, "")
    assert "has errors, so nothing was sent" in err
    assert filled.names() == before


@pytest.mark.parametrize(("answer", "is_done"), [("yes", True), ("n", False), ("", False)])
def test_a_person_is_asked(
    run: Command, filled: Container, answer: str, is_done: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = filled.names()
    terminal, other = pty.openpty()
    try:
        with os.fdopen(os.dup(other), encoding="utf-8") as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            os.write(terminal, f"{answer}\n".encode())
            code, out, err = run("locker", "prune")
    finally:
        os.close(terminal)
        os.close(other)
    assert err.startswith(f"remove 2 versions and 1 blobs from {filled.url}? [y/N] ")
    assert (code, filled.names() != before) == ((0, True) if is_done else (1, False))
    assert ("removed, " in out) == is_done
    assert ("nothing was removed" in err) == (not is_done)


LATER = datetime.now(UTC) + 2 * RUNNING
USED = {("site", "1.1.0")}


def plan(container: Container, now: datetime | None = None, keep: int = 1) -> Prune:
    return plan_prune(opened(container.server.url, container), {"site"}, USED, keep, now)


def test_what_is_not_finished(filled: Container) -> None:
    filled.put("projects/site/2.0.0/default/cluster-init/files/x", b"")
    young = plan(filled)
    assert [version.version for version in young.versions] == ["1.0.0", "1.9.0"]
    assert young.blobs == {}, "what the upload under way will list is not known"
    assert {each.version: why for each, why in young.kept}["2.0.0"].startswith("without a manifest and younger")
    old = plan(filled, LATER)
    assert [version.version for version in old.versions] == ["1.0.0", "1.9.0", "2.0.0"]
    assert set(old.blobs) == {"projects/site/blobs/first.bin"}


def test_blobs_stay_while_a_manifest_cannot_be_read(filled: Container) -> None:
    filled.put("projects/site/1.1.0/manifest.json", b"{")
    assert plan(filled).blobs == {}


@pytest.mark.parametrize("number", [1, 2, 3, 4, 7, 10])
def test_the_next_prune_completes_one_that_was_interrupted(
    run: Command, filled: Container, proxy: Proxy, number: int
) -> None:
    wanted = {name for name in filled.names() if not re.search(r"/1\.[09]\.0/|first\.bin", name)}
    first = plan(filled)
    count = Counter()
    deleted = len(first.versions) + len(first.blobs) + 3 * len(first.versions)

    def after(request: Request) -> Cut | None:
        return Cut("before") if request.operation == "Delete Blob" and count.next() >= number else None

    proxy.decide = after
    with suppress(Refused):
        prune(opened(proxy.url, filled), first)
    assert len(filled.names() - wanted) == deleted - (number - 1)
    # A day later: until then it might be an upload that continues.
    prune(opened(filled.server.url, filled), plan(filled, LATER))
    assert filled.names() == wanted


def test_somebody_writes_a_version_that_is_about_to_go(filled: Container) -> None:
    first = plan(filled)
    filled.put("projects/site/1.0.0/manifest.json", b"{}")
    with pytest.raises(Refused, match="changed by another program"):
        prune(opened(filled.server.url, filled), first)
    assert "projects/site/1.0.0/default/cluster-init/files/data" in filled.names()
    assert "projects/site/blobs/first.bin" in filled.names()
