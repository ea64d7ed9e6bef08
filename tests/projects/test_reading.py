"""project.ini, the files of a project, its digest."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest

from generator.files import assets
from generator.files.file import File
from generator.projects.content import Missing, contents, digest
from generator.projects.ini import ProjectUnreadable, read_project

GOOD = "[project]\nname = demo\ntype = application\nversion = 1.2.3\n"


def project(folder: Path, ini: str | bytes = GOOD) -> Path:
    scripts = folder / "specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (scripts / "10-x.sh").write_text("#!/bin/sh\n")
    (folder / "project.ini").write_bytes(ini.encode() if isinstance(ini, str) else ini)
    return folder


def test_a_project(tmp_path: Path) -> None:
    found = read_project(project(tmp_path))
    assert (found.name, found.version, found.type, found.specs, found.version_line) == (
        "demo",
        "1.2.3",
        "application",
        ("default",),
        4,
    )


@pytest.mark.parametrize(
    "ini",
    [
        GOOD.replace("\n", "\r\n"),
        GOOD.replace("name", "NAME").replace("[project]", "[Project]"),
        "# comment\n\n; another\n"
        + GOOD
        + "\n[spec default]\nrun_list = role[x], recipe[y]\n[config a.b]\nEntries := {[Value=1]}\n"
        "[[[[list Config.Entries]]]]\nName = Terminate\n",
        GOOD.replace("type = application\n", ""),
        GOOD.replace("application", "scheduler"),
        GOOD.replace(" = ", "="),
        GOOD.replace("1.2.3", "2026.07.02"),
    ],
)
def test_forms_that_cyclecloud_accepts(tmp_path: Path, ini: str) -> None:
    assert read_project(project(tmp_path, ini)).name == "demo"


BAD = [
    (GOOD.replace("name = demo\n", ""), None, "[project] has no name"),
    (GOOD.replace("demo", ""), 2, "[project] has no name"),
    (GOOD.replace("version = 1.2.3\n", ""), None, "[project] has no version"),
    (GOOD.replace("demo", "my project"), 2, "'my project' is not a valid project name"),
    (GOOD.replace("demo", "a:b"), 2, "'a:b' is not a valid project name"),
    (GOOD.replace("demo", "a/b"), 2, "'a/b' is not a valid project name"),
    (GOOD.replace("demo", "../x"), 2, "'../x' is not a valid project name"),
    (GOOD.replace("demo", "CycleCloud"), 2, "'CycleCloud' is not a valid project name"),
    (GOOD.replace("1.2.3", "1 2"), 4, "'1 2' is not a valid version"),
    (GOOD.replace("1.2.3", "1.0/2"), 4, "'1.0/2' is not a valid version"),
    (GOOD.replace("application", "applicaton"), 3, "'applicaton' is not a valid project type"),
    (GOOD + "name = again\n", 5, "'name' is set twice, first in line 2"),
    (GOOD + "no setting\n", 5, "'no setting' is not a setting"),
    ("name = demo\n" + GOOD, 1, "'name = demo' is not a setting"),
    ("[project\nname = demo\n", 1, "section '[project' is not closed"),
    (GOOD.replace("demo", "dëmo"), 2, "has characters outside ASCII"),
    (b"\xef\xbb\xbf" + GOOD.encode(), 1, "has characters outside ASCII"),
    ("", None, "[project] has no name"),
]  # fmt: skip


@pytest.mark.parametrize(("ini", "line", "words"), BAD)
def test_a_bad_file_is_named_with_its_line(tmp_path: Path, ini: str | bytes, line: int | None, words: str) -> None:
    with pytest.raises(ProjectUnreadable) as caught:
        read_project(project(tmp_path, ini))
    assert words in str(caught.value)
    assert caught.value.line == line
    assert caught.value.file == tmp_path / "project.ini"


def test_a_folder_without_project_ini(tmp_path: Path) -> None:
    with pytest.raises(ProjectUnreadable, match=r"no project\.ini"):
        read_project(tmp_path)
    with pytest.raises(ProjectUnreadable, match=r"no project\.ini"):
        read_project(tmp_path / "absent")


def test_a_project_needs_specs_in_the_right_place(tmp_path: Path) -> None:
    (tmp_path / "project.ini").write_text(GOOD)
    with pytest.raises(ProjectUnreadable, match="has no spec"):
        read_project(tmp_path)
    (tmp_path / "specs/default/scripts").mkdir(parents=True)
    with pytest.raises(ProjectUnreadable, match="neither cluster-init/ nor chef/"):
        read_project(tmp_path)


def test_blobs_have_to_be_there(tmp_path: Path) -> None:
    folder = project(tmp_path, GOOD + "[blobs]\nFiles = a.tar.gz, sub/b.zip\n[blobs more]\nfiles = c-*\n")
    found = read_project(folder)
    assert found.blobs == ("a.tar.gz", "sub/b.zip", "c-*")
    with pytest.raises(Missing, match=r"lists 'a\.tar\.gz'"):
        contents(found, shipped=False)
    (folder / "blobs/sub").mkdir(parents=True)
    (folder / "blobs/a.tar.gz").write_bytes(b"a")
    (folder / "blobs/sub/b.zip").write_bytes(b"b")
    assert PurePosixPath("blobs/sub/b.zip") in contents(found, shipped=False)


def test_editors_and_systems_leave_things_that_are_not_uploaded(tmp_path: Path) -> None:
    folder = project(tmp_path)
    for name in (".DS_Store", "x.sh~", ".x.swp", "a.pyc"):
        (folder / "specs/default/cluster-init/scripts" / name).write_text("")
    (folder / "build/demo").mkdir(parents=True)
    (folder / "build/demo/manifest.json").write_text("")
    (folder / ".git").mkdir()
    (folder / ".git/config").write_text("")
    assert [path.as_posix() for path in contents(read_project(folder), shipped=False)] == [
        "project.ini", "specs/default/cluster-init/scripts/10-x.sh",
    ]  # fmt: skip


def test_links_inside_are_followed_and_outside_refused(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    scripts = folder / "specs/default/cluster-init/scripts"
    (scripts / "20-y.sh").symlink_to("10-x.sh")
    files = contents(read_project(folder), shipped=False)
    assert files[PurePosixPath("specs/default/cluster-init/scripts/20-y.sh")].content == b"#!/bin/sh\n"
    (tmp_path / "secret").write_text("x")
    (scripts / "30-z.sh").symlink_to(tmp_path / "secret")
    with pytest.raises(ProjectUnreadable, match="points outside the project"):
        contents(read_project(folder), shipped=False)


def test_local_projects_get_no_library(tmp_path: Path) -> None:
    assert not [
        path
        for path in contents(read_project(project(tmp_path)), shipped=False)
        if path.name in ("cycleforge.sh", "vm_size.sh")
    ]


def test_the_digest_knows_paths_and_contents_only(tmp_path: Path) -> None:
    one, two = project(tmp_path / "a"), project(tmp_path / "b")
    first = digest(contents(read_project(one), shipped=False))
    os.utime(two / "project.ini", (1, 1))
    (two / "specs/default/cluster-init/scripts/10-x.sh").chmod(0o600)
    assert digest(contents(read_project(two), shipped=False)) == first
    files = contents(read_project(one), shipped=False)
    assert digest(dict(reversed(files.items()))) == first
    assert len(first) == 64


def test_the_digest_changes_with_anything_that_is_uploaded() -> None:
    a, b = PurePosixPath("a"), PurePosixPath("b")
    sets = [
        {a: File(b"1")}, {a: File(b"2")}, {b: File(b"1")}, {a: File(b"1"), b: File(b"")}, {a: File(b""), b: File(b"1")},
        {a: File(b"1\n1:b\n0:")}, {PurePosixPath("a/b"): File(b"1")}, {},
    ]  # fmt: skip
    assert len({digest(files) for files in sets}) == len(sets)
    assert digest({a: File(b"1", executable=True)}) == digest({a: File(b"1")})


@pytest.mark.parametrize(
    ("line", "is_placed"),
    [
        ('. "${CYCLECLOUD_SPEC_PATH}/files/blobs.sh"', True), ("  source /opt/x/blobs.sh", True),
        ('. "${BASH_SOURCE[0]%/*}/blobs.sh"', True), ('# . "${CYCLECLOUD_SPEC_PATH}/files/blobs.sh"', False),
        ("echo /files/blobs.sh", False), ("true", False),
    ],
)  # fmt: skip
def test_the_library_lies_beside_the_scripts_that_source_it(tmp_path: Path, line: str, is_placed: bool) -> None:
    """cycleforge.sh always, another file of the library only there: a node fetches each file by its own request."""
    folder = project(tmp_path, GOOD)
    for spec, text in (("default", line), ("other", "true")):
        scripts = folder / "specs" / spec / "cluster-init/scripts"
        scripts.mkdir(parents=True, exist_ok=True)
        (scripts / "10-x.sh").write_text(f"#!/usr/bin/env bash\n{text}\n")
    files = contents(read_project(folder), shipped=True)
    placed = {path.as_posix() for path in files if path.parent.name == "files"}
    wanted = {f"specs/{spec}/cluster-init/files/cycleforge.sh" for spec in ("default", "other")}
    assert placed == wanted | ({"specs/default/cluster-init/files/blobs.sh"} if is_placed else set())


@pytest.mark.parametrize("name", ["misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc", "slurm_policy"])
def test_shipped_projects_are_complete(name: str) -> None:
    found = read_project(assets.folder("projects") / name)
    files = contents(found, shipped=True)
    library = files[PurePosixPath("specs/default/cluster-init/files/cycleforge.sh")]
    assert library.content == (assets.folder("projects") / "_lib/cycleforge.sh").read_bytes()
    assert found.type == "application"
    for path, file in files.items():
        assert b"\r" not in file.content
        file.content.decode("ascii")
        assert file.executable == (path.suffix == ".sh")
        assert len(path.as_posix()) < 100
