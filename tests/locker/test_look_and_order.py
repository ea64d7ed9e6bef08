"""`cycleforge locker verify` and `ls`, the order of versions, and names in the locker."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.locker.layout import (
    BLOBS,
    MANIFEST,
    ROOT,
    Stored,
    listed_blobs,
    split,
    version_prefix,
    versions_of,
)
from generator.locker.prune import order
from tests.locker.azurite import Container
from tests.locker.command import BLOBS_OF, Command, in_locker, put_without_md5, site
from tests.locker.ground import FILES, contents, opened, project, send


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, container: Container
) -> Iterator[Command]:
    yield from in_locker(monkeypatch, capsys, tmp_path, container)


# ---------------------------------------------------------------- verify


def test_verify(run: Command, container: Container) -> None:
    folder = project(run.folder / "site", blobs=BLOBS_OF)
    assert run("locker", "verify", str(folder)) == (
        1, "site 1.0.0: not in the locker\n  hint: cycleforge upload\n", "",
    )  # fmt: skip
    send(opened(container.server.url, container), folder)
    assert run("locker", "verify", str(folder)) == (0, "site 1.0.0: as here, 6 files\n", "")
    client = container.client()
    client.delete_blob("projects/site/1.0.0/default/cluster-init/files/data")
    client.delete_blob("projects/site/blobs/plain.txt")
    container.put("projects/site/1.0.0/default/cluster-init/files/empty", b"not")
    container.put("projects/site/1.0.0/other/cluster-init/files/x\x7f", b"")
    container.put("projects/site/blobs/of-another-version", b"")
    code, out, _ = run("locker", "verify", str(folder))
    assert (code, out.splitlines()) == (1, [
        "site 1.0.0: differs",
        "  missing: default/cluster-init/files/data",
        "  missing: projects/site/blobs/plain.txt",
        "  differs: default/cluster-init/files/empty",
        "  does not belong there: other/cluster-init/files/x\\x7f",
    ])  # fmt: skip
    code, found = run.json("locker", "verify", str(folder))
    (row,) = found.pop("projects")
    assert (code, found) == (1, {"ok": False})
    assert row == {
        "ok": False, "name": "site", "version": "1.0.0", "files": 6, "read": 0, "is_visible": True,
        "missing": ["projects/site/1.0.0/default/cluster-init/files/data", "projects/site/blobs/plain.txt"],
        "changed": ["projects/site/1.0.0/default/cluster-init/files/empty"],
        "foreign": ["projects/site/1.0.0/other/cluster-init/files/x\x7f"],
        "locker": container.url,
    }  # fmt: skip


def test_verify_reads_what_nobody_vouches_for(run: Command, container: Container) -> None:
    folder = site(run, container)
    name = "projects/site/blobs/plain.txt"
    put_without_md5(container, name, BLOBS_OF["plain.txt"])
    code, found = run.json("locker", "verify", str(folder))
    assert (code, found["projects"][0]["read"]) == (0, 1)
    put_without_md5(container, name, b"tEXt\n")
    code, found = run.json("locker", "verify", str(folder))
    assert (code, found["projects"][0]["changed"]) == (1, [name])


def test_verify_believes_a_checksum_unless_told_to_read(run: Command, container: Container) -> None:
    folder = site(run, container)
    name = "projects/site/1.0.0/default/cluster-init/files/data"
    put_without_md5(container, name, b"DATA\n", hashlib.md5(FILES["files/data"]).digest())
    assert run("locker", "verify", str(folder))[0] == 0
    code, found = run.json("locker", "verify", str(folder), "--content")
    assert (code, found["projects"][0]["changed"], found["projects"][0]["read"]) == (1, [name], 6)


def test_verify_many(run: Command, container: Container) -> None:
    site(run, container)
    code, out, _ = run("locker", "verify", str(run.folder / "site-1.0.0"), "slurm_nhc", "misc_ubuntu")
    assert code == 1
    assert [line.partition(":")[2] for line in out.splitlines()] == [
        " as here, 6 files", " not in the locker", " cycleforge upload", " not in the locker", " cycleforge upload",
    ]  # fmt: skip


# ---------------------------------------------------------------- ls


def test_ls(run: Command, container: Container) -> None:
    assert run("locker", "ls") == (0, f"{container.url} contains no projects\n", "")
    site(run, container, "1.10.0")
    site(run, container, "1.9.0")
    container.put("projects/odd/2\x9b31m/x", b"12")
    container.put("projects/README", b"")
    container.put("blobs/site/x", b"")
    code, out, err = run("locker", "ls")
    assert (code, err) == (0, "")
    assert [re.split(r"\s{2,}", line) for line in out.splitlines()] == [
        ["PROJECT", "VERSION", "FILES", "SIZE", "STATE"],
        ["odd", "2\\x9b31m", "1", "2 B", "no manifest"],
        ["site", "1.9.0", "4", "334 B", "visible"],
        ["site", "1.10.0", "4", "335 B", "visible"],
        ["site", "blobs", "2", "14 B"],
    ]
    code, out, _ = run("locker", "ls", "site:1.9.0")
    assert [line.split()[1] for line in out.splitlines()] == sorted(contents(run.folder / "site-1.9.0"))[:4]
    code, found = run.json("locker", "ls", "site:1.10.0", "odd")
    assert [(each["project"], each["version"], each["is_visible"]) for each in found["versions"]] == [
        ("odd", "2\x9b31m", False), ("site", "1.10.0", True),
    ]  # fmt: skip
    assert found["blobs"] == []
    code, found = run.json("locker", "ls", "site")
    assert found["locker"] == container.url
    assert [each["version"] for each in found["versions"]] == ["1.9.0", "1.10.0"]
    assert {each["name"]: each["md5"] for each in found["blobs"][0]["files"]} == {
        f"projects/site/blobs/{name}": hashlib.md5(content).hexdigest() for name, content in BLOBS_OF.items()
    }


def test_ls_of_what_is_not_there(run: Command, container: Container) -> None:
    site(run, container)
    for words, missing in (
        (("nope",), "nope"), (("site:2.0.0",), "site:2.0.0"), (("site", "nope", "site:2"), "nope, site:2"),
    ):  # fmt: skip
        code, said = run.refused("locker", "ls", *words)
        assert code == 2
        assert f"has no {missing}\n" in said
    for word in ("../x", "a/b", "site:1/0", ":1.0.0", "site:1.0.0:2", ""):
        code, said = run.refused("locker", "ls", word)
        assert (code, "is not a project of a locker" in said) == (2, True)


# ---------------------------------------------------------------- order, names

ASCENDING = [
    "alpha", "rc", "0", "0.1", "0.1.0", "0.9", "1.0.0-alpha", "1.0.0-rc1", "1.0.0-rc2", "1.0.0-rc10", "1.0.0",
    "1.0.0.1", "1.0.1", "1.9.0", "1.10.0", "2", "2.0", "10", "2026.01.01", "2026.11.21",
]  # fmt: skip


def test_versions_in_order() -> None:
    assert sorted(sorted(ASCENDING), key=order) == ASCENDING


NAMES = st.text(st.characters(codec="utf-8"), max_size=20)


@given(st.lists(NAMES, max_size=8))
@example(["²", "1", "٣", "1²"])
@example(["1" * 1000])
def test_any_versions_have_an_order(versions: list[str]) -> None:
    keys = [order(version) for version in versions]
    assert sorted(keys) == sorted(keys, reverse=True)[::-1]


@given(st.tuples(*[st.integers(0, 2000)] * 3), st.tuples(*[st.integers(0, 2000)] * 3), st.sampled_from(".-_"))
def test_numbers_sort_as_numbers(one: tuple[int, int, int], other: tuple[int, int, int], between: str) -> None:
    first, second = (order(between.join(map(str, each))) for each in (one, other))
    assert (first < second) == (one < other)
    assert order(between.join(map(str, one)) + "-rc1") < first


@given(st.lists(st.one_of(
    NAMES,
    st.tuples(st.just("projects"), *[st.sampled_from(["a", "b", BLOBS, "", "1.0", MANIFEST])] * 3).map("/".join),
)))  # fmt: skip
def test_every_file_belongs_to_one_version_or_to_none(names: list[str]) -> None:
    known = Stored(1, None, "", datetime.now(UTC))
    listing = dict.fromkeys(names, known)
    found = versions_of(listing)
    assert len({(each.project, each.version) for each in found}) == len(found)
    files = [name for each in found for name in each.files]
    assert len(files) == len(set(files))
    for each in found:
        assert each.version != BLOBS
        assert all(name.startswith(version_prefix(each.project, each.version)) for name in each.files)
        assert each.is_complete == (each.manifest in listing)
        assert each.size_bytes == len(each.files)
    for name in set(names) - set(files):
        place = split(name)
        assert place is None or place[1] == BLOBS
        assert place is not None or not re.match(r"projects/[^/]+/[^/]+/[^/]", name)
    for name in names:
        if (place := split(name)) is not None:
            assert name == f"{ROOT}{place[0]}/{place[1]}/{place[2]}" or "//" in name or "/." in name


@given(st.binary(max_size=60) | st.recursive(
    st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["blobs", "path", "checksum"]), inner, max_size=3), max_leaves=9,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_any_manifest_can_be_looked_at(content: bytes) -> None:
    found = listed_blobs(content)
    assert found is None or all(isinstance(each, str) for pair in found.items() for each in pair)
