"""What a build makes of the store: blobs travel with their project or are left out, and the digest never changes."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from generator import pipeline
from generator.blobs import Store, Unusable, pinned
from generator.blobs.fetch import LocalPath, fetch
from generator.files import assets
from generator.files.file import Files
from generator.output import diff
from generator.pipeline import Checked
from generator.plan.projects import with_need
from generator.projects import lock
from generator.projects.content import contents, digest, shipped_project
from generator.projects.ini import keep_blobs, read_project
from generator.projects.local import CarriedBlob
from tests.bed.sources import origin_or_skip
from tests.blobs.catalogue import BINARY, SOURCE, TAR, blob, catalogue_of, entry

FILE = SOURCE["file"]
PLACE = PurePosixPath("projects/slurm_nhc/blobs") / FILE
SHIPPED = assets.folder("projects") / "slurm_nhc"
INI = PurePosixPath("projects/slurm_nhc/project.ini")
GPU = b"""\
name: lab
location: southcentralus
admin: {username: ccadmin}
slurm:
  partitions:
    - {name: hpc, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2, default: true}
"""


def content_of(file: str) -> bytes:
    """What stands for the other blobs of the shipped projects."""
    return file.encode() * 9


OTHERS = [
    entry(
        each.file,
        content_of(each.file),
        project=each.project,
        needed="without_built_in_containers",
    )
    for each in pinned().values()
    if each.file != FILE and each.is_for_nodes
]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that lacks one blob of slurm_nhc. The lock knows the real pins, so it is off here."""
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(tmp_path / "store"))
    monkeypatch.setattr(lock, "shipped_problems", lambda _: ())
    with catalogue_of(monkeypatch, SOURCE, *OTHERS):
        made = Store(tmp_path / "store")
        for row in OTHERS:
            made.put(blob(row), content_of(row["file"]))
        yield made


def checked(text: bytes = GPU) -> Checked:
    return pipeline.check(text, "lab.yaml", {}, Path())


def ids(found: Checked) -> list[str]:
    return [problem.rule_id for problem in found.problems]


def built(found: Checked) -> Files:
    assert found.plan is not None, found.problems
    return pipeline.render(found.plan, Path())


def digests(found: Checked) -> dict[str, str]:
    assert found.plan is not None
    return {project.name: project.digest for project in found.plan.projects}


def readme(files: Files) -> str:
    return files[PurePosixPath("README.md")].content.decode()


def missed() -> str:
    """The message about the one file, with what nodes do instead."""
    return f"not on this machine, so the nodes do without: {FILE} (slurm_nhc): {pinned()[FILE].without}"


# ---------------------------------------------------------------- left out and carried


def test_a_missing_blob_is_left_out_and_said_once(store: Store, tmp_path: Path) -> None:
    found = checked()
    (problem,) = found.problems
    assert (problem.rule_id, problem.level, problem.path) == ("I1591", "info", ("slurm",))
    assert problem.message == missed()
    assert problem.hint is not None
    assert "cycleforge blobs fetch" in problem.hint
    files = built(found)
    assert [path for path in files if path.is_relative_to(PLACE.parent)] == []
    assert b"blobs" not in files[INI].content
    (folder := tmp_path / "slurm_nhc").mkdir()
    (folder / "project.ini").write_bytes(files[INI].content)
    (folder / "specs/default/cluster-init").mkdir(parents=True)
    assert dataclasses.replace(read_project(folder), folder=SHIPPED, blobs=(FILE,)) == read_project(SHIPPED)
    assert (
        f"Left out, because the machine that built this folder did not have them: `{FILE}` (project `slurm_nhc`)"
        in (readme(files))
    )
    assert "cycleforge blobs fetch" in readme(files)


def test_a_fetched_blob_travels_with_everything_that_counts_files(store: Store) -> None:
    store.put(blob(SOURCE), TAR)
    found = checked()
    assert found.problems == ()
    files = built(found)
    assert files[PLACE].content == TAR
    assert files[PLACE].executable is False
    assert files[INI].content.endswith(f"[blobs]\nFiles = {FILE}\n".encode())
    manifest = json.loads(files[PurePosixPath("manifest.json")].content)
    assert manifest["files"][str(PLACE)] == SOURCE["sha256"]
    chunks = [file.content for path, file in sorted(files.items()) if path.parts[:2] == ("bootstrap", "payload")]
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as payload:
        stream = payload.extractfile(str(PLACE))
        assert stream is not None
        assert stream.read() == TAR
    assert f"`{PLACE}`" in readme(files).partition("Third-party files, included with their pinned sha256: ")[2]
    assert "Left out" not in readme(files)
    assert b"state: present" in files[PurePosixPath("effective.yaml")].content


def test_the_difference_names_the_blob(store: Store) -> None:
    before = checked().plan
    store.put(blob(SOURCE), TAR)
    after = checked().plan
    assert before is not None
    assert after is not None
    (change,) = diff.compare(pipeline.effective(before), pipeline.effective(after), lambda _: "node restart")
    assert change.where.endswith(f"projects[slurm_nhc].blobs[{FILE}].state")
    assert (change.old, change.new) == ("missing", "present")


def test_a_damaged_blob_is_left_out_with_a_warning(store: Store) -> None:
    store.put(blob(SOURCE), TAR)
    store.path(blob(SOURCE)).write_bytes(TAR[:-1])
    found = checked()
    assert ids(found) == ["W1592"]
    assert PLACE not in built(found)
    assert "Left out" in readme(built(found))


def test_the_digest_is_that_of_the_pin(store: Store) -> None:
    """Fetched or not: a node knows a project by its version, and the lock knows the version by this digest."""
    without = digests(checked())
    store.put(blob(SOURCE), TAR)
    assert digests(checked()) == without
    stands = contents(read_project(SHIPPED), shipped=True)
    assert stands[PurePosixPath("blobs") / FILE].content == f"sha256 {SOURCE['sha256']}\n".encode()


def test_another_pin_is_another_digest(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(shipped_project("slurm_nhc")[1])
    with catalogue_of(monkeypatch, entry(FILE, TAR + b"\0"), *OTHERS):
        assert digest(shipped_project("slurm_nhc")[1]) != before


def test_a_file_in_the_source_tree_counts_for_nothing(tmp_path: Path, store: Store) -> None:
    """Someone unpacked it there: neither the digest nor the folder may depend on it."""
    copy = tmp_path / "slurm_nhc"
    (copy / "blobs").mkdir(parents=True)
    (copy / "specs/default/cluster-init/scripts").mkdir(parents=True)
    (copy / "project.ini").write_bytes((SHIPPED / "project.ini").read_bytes())
    without = digest(contents(read_project(copy), shipped=True))
    (copy / "blobs" / FILE).write_bytes(b"somebody's")
    assert digest(contents(read_project(copy), shipped=True)) == without


def test_a_store_that_changes_under_the_build(store: Store) -> None:
    store.put(blob(SOURCE), TAR)
    found = checked()
    store.path(blob(SOURCE)).unlink()
    with pytest.raises(Unusable) as caught:
        built(found)
    assert caught.value.hint == f"cycleforge blobs fetch {FILE}"


def test_silencing_holds_on_every_machine(store: Store) -> None:
    """The rule finds something on one machine and nothing on the next; the silence is stale on neither."""
    silent = GPU + b"silence:\n  - {rule: I1591, reason: nodes of this site have NHC in their image}\n"
    assert ids(checked(silent)) == []
    store.put(blob(SOURCE), TAR)
    assert ids(checked(silent)) == []


@pytest.mark.parametrize(
    ("version", "is_needed"), [("4.0.9", False), ("4.0.3", False), ("4.0.2", True), ("3.0.12", True), ("99.0.0", True)]
)
def test_what_the_slurm_project_brings_is_not_missed(
    monkeypatch: pytest.MonkeyPatch, version: str, is_needed: bool
) -> None:
    """With a release that nobody knows the blob may be needed, so its absence is said."""
    with catalogue_of(monkeypatch, SOURCE, BINARY | {"needed": "without_built_in_containers"}):
        always = CarriedBlob(FILE, "1", "0" * 64, 1, "missing")
        sometimes = replace(always, file=BINARY["file"])
        assert [each.is_needed for each in with_need([always, sometimes], version)] == [True, is_needed]


def test_only_what_is_needed_is_missed(store: Store) -> None:
    """The Slurm project brings enroot and pyxis; what nobody needs but is there travels all the same."""
    there = {path.name for path in built(checked())}
    for row in OTHERS:
        assert row["file"] in there
        store.path(blob(row)).unlink()
    found = checked()
    (problem,) = found.problems
    assert problem.message == missed()
    assert not {path.name for path in built(found)} & {row["file"] for row in OTHERS}
    assert all(row["file"] not in readme(built(found)) for row in OTHERS)


def test_a_project_without_blobs_says_nothing(store: Store) -> None:
    none = GPU.replace(b"slurm:\n", b"slurm:\n  scheduler: {projects: []}\n  login: {projects: []}\n")
    none = none.replace(b"default: true}", b"default: true, projects: [misc_ubuntu]}")
    assert [each for each in ids(checked(none)) if each.endswith(("1591", "1592"))] == []
    assert "people" not in readme(built(checked(none)))


def test_a_user_without_home_builds_as_with_an_empty_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("CYCLEFORGE_BLOBS", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    (problem,) = checked().problems
    assert problem.rule_id == "I1591"
    assert problem.message == missed()


# ---------------------------------------------------------------- room


@pytest.mark.parametrize(("kib", "expected"), [(600, []), (900, ["E1801"])])
def test_blobs_count_for_what_the_deployment_carries(
    store: Store, monkeypatch: pytest.MonkeyPatch, kib: int, expected: list[str]
) -> None:
    noise = b"".join(hashlib.sha256(number.to_bytes(4, "big")).digest() for number in range(kib * 32))
    with catalogue_of(monkeypatch, entry(FILE, noise), *OTHERS):
        store.put(pinned()[FILE], noise)
        found = checked()
        assert ids(found) == expected
        if not expected:
            assert built(found)[PLACE].content == noise
        else:
            assert found.problems[0].message.endswith(f"; the largest fetched blob is {FILE!r} with {kib} KiB")


# ---------------------------------------------------------------- project.ini

NAMES = st.text("abc019._-", min_size=1, max_size=6)


def test_sections_without_a_file_go() -> None:
    head, tail = b"[project]\nname = a\n# kept\n\n", b"[spec x]\nrun_list =\n"
    ini = head + b"[blobs]\n# goes\nFiles = a.tar, b.tar\n[blobs more]\nfiles=c.tar\n" + tail
    assert keep_blobs(ini, {"b.tar"}) == head + b"[blobs]\n# goes\nFiles = b.tar\n" + tail
    assert keep_blobs(ini, set()) == head + tail


@given(
    sections=st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=3),
    kept=st.sets(NAMES),
    key=st.sampled_from(["Files", "files", "FILES "]),
)
def test_what_is_kept_is_what_is_read(
    sections: list[list[str]], kept: set[str], key: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "ini"
    (folder / "specs/default/cluster-init").mkdir(parents=True, exist_ok=True)
    text = "[project]\nname = a\nversion = 1.0.0\n"
    for number, names in enumerate(sections):
        text += f"[blobs {number}]\n{key}= {' ,'.join(names)}\n"
    (folder / "project.ini").write_bytes(keep_blobs(text.encode(), kept))
    found = read_project(folder)
    assert (found.name, found.version) == ("a", "1.0.0")
    assert list(found.blobs) == [name for names in sections for name in names if name in kept]


# ---------------------------------------------------------------- the real one


@pytest.mark.parametrize("file", [file for file, each in pinned().items() if each.is_for_nodes])
def test_a_real_blob_reaches_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    real = pinned()[file]
    origin = origin_or_skip(file)
    monkeypatch.setenv("CYCLEFORGE_BLOBS", str(tmp_path))
    monkeypatch.setattr(lock, "shipped_problems", lambda _: ())  # tests/projects/test_lock.py looks at the lock
    (outcome,) = fetch([real], Store(tmp_path), LocalPath(origin))
    assert outcome.state == "fetched", outcome.reason
    files = built(checked())
    carried = files[PurePosixPath("projects") / real.project / "blobs" / file].content
    assert hashlib.sha256(carried).hexdigest() == real.sha256
