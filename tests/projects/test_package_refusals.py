"""What is followed, what is refused: links, line ends, names."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.projects import tree
from generator.projects.content import contents
from generator.projects.ini import ProjectUnreadable, read_project
from generator.projects.package import package_folder
from tests.projects.folders import INI, SCRIPT, content, paths, project

# ---------------------------------------------------------------- links


def test_links_inside_become_what_they_lead_to(tmp_path: Path) -> None:
    """As equinor/hpc-azure-cyclecloud-openpbs does: scripts/ holds links into stages/."""
    folder = project(tmp_path, specs={"default/cluster-init/stages/install.sh": b"#!/bin/sh\n"}, shared__a=b"a")
    base = folder / "specs/default/cluster-init"
    (base / "scripts").mkdir()
    (base / "scripts/00-install.sh").symlink_to("../stages/install.sh")
    (base / "files").symlink_to(folder / "shared")
    (folder / "specs/copy").symlink_to("default")
    found = package_folder(folder)
    half = ["cluster-init/files/a", "cluster-init/scripts/00-install.sh", "cluster-init/stages/install.sh"]
    assert paths(found) == [f"copy/{name}" for name in half] + [f"default/{name}" for name in half]
    assert content(found, "copy/cluster-init/scripts/00-install.sh") == b"#!/bin/sh\n"
    built = contents(read_project(folder), shipped=False)
    assert PurePosixPath("specs/default/cluster-init/files/a") in built, "a deployment folder holds the same"


@pytest.mark.parametrize(
    ("name", "target", "words"),
    [
        ("specs/default/cluster-init/scripts/a.sh", "/etc/passwd", "points outside the project"),
        ("specs/default/cluster-init/scripts/a.sh", "../../../../../outside", "points outside the project"),
        ("specs/default/cluster-init/files", "/etc", "points outside the project"),
        ("specs/default/cluster-init/scripts/a.sh", "gone.sh", "points to 'gone.sh', which does not exist"),
        ("specs/default/cluster-init/scripts/a.sh", "a.sh", "points to itself"),
        ("specs/default/cluster-init/scripts/up", "..", "points to a folder that contains it"),
        ("specs/default/cluster-init/scripts/up", "../../../..", "points to a folder that contains it"),
        ("blobs/b.bin", "/etc/passwd", "points outside the project"),
        ("blobs/b.bin", "nothing", "which does not exist"),
    ],
)
def test_other_links_are_named(tmp_path: Path, name: str, target: str, words: str) -> None:
    (tmp_path / "outside").write_text("secret")
    folder = project(tmp_path / "p", INI + "[blobs]\nFiles = b.bin\n")
    (folder / "blobs").mkdir()
    (folder / "blobs/b.bin").write_bytes(b"b")
    place = folder / name
    place.unlink(missing_ok=True)
    place.symlink_to(target)
    with pytest.raises(ProjectUnreadable, match=words) as caught:
        package_folder(folder)
    assert caught.value.file == place


def test_a_linked_folder_outside_is_refused_at_every_level(tmp_path: Path) -> None:
    project(tmp_path / "other")
    for name in ("specs", "specs/default", "specs/default/cluster-init"):
        folder = tmp_path / name.replace("/", "-")
        (folder / name).parent.mkdir(parents=True)
        (folder / "project.ini").write_text(INI)
        (folder / name).symlink_to(tmp_path / "other" / name)
        with pytest.raises(ProjectUnreadable, match="points outside"):
            package_folder(folder)


def test_links_cannot_multiply_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "MAX_FILES", 50)
    folder = project(tmp_path)
    shared = folder / "shared"
    for level in range(6):
        (shared / str(level)).mkdir(parents=True)
        (shared / str(level) / "x").touch()
        for name in ("l", "r"):
            (shared / str(level) / name).symlink_to(f"../{level + 1}")
    (shared / "6").mkdir()
    (folder / "specs/default/cluster-init/files").symlink_to("../../../shared/0")
    with pytest.raises(ProjectUnreadable, match="more than 50 files"):
        package_folder(folder)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    folder = project(tmp_path)
    os.mkfifo(folder / "specs/default/cluster-init/pipe")
    with pytest.raises(ProjectUnreadable, match="neither a file nor a folder"):
        package_folder(folder)


# ---------------------------------------------------------------- line ends and names


@pytest.mark.parametrize(
    ("script", "line"),
    [
        (b"#!/bin/sh\r\necho\r\n", 1),
        (b"#!/bin/sh\necho one\necho two\r\n", 3),
        (b"#!/bin/sh\n" + b"#" * (1 << 18) + b"\r\n", 2),
        (b"#!/bin/sh\n" + b"#" * ((1 << 18) - 11) + b"\r\n", 2),
        (b"#!/bin/sh\r\n\0\0", 1),
    ],
)
def test_a_script_with_line_ends_of_windows_is_refused(tmp_path: Path, script: bytes, line: int) -> None:
    folder = project(tmp_path, specs={SCRIPT: script})
    with pytest.raises(ProjectUnreadable, match="Windows line endings") as caught:
        package_folder(folder)
    place = folder / "specs" / SCRIPT
    assert (caught.value.file, caught.value.line) == (place, line)
    command = (caught.value.hint or "").partition(";")[0]
    subprocess.run(["bash", "-c", command], check=True)
    assert b"\r\n" not in place.read_bytes()
    assert package_folder(folder).files


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("default/cluster-init/scripts/run.cmd", b"echo\r\n"),
        ("default/cluster-init/files/data.sh", b"echo\r\n"),
        ("default/cluster-init/scripts/deep/x.sh", b"echo\r\n"),
        (SCRIPT, b'#!/bin/sh\ntail -c 3 "$0"\nexit\n\0\r\n'),
        (SCRIPT, b"#!/bin/sh\nprintf 'a\r'\n"),
        (SCRIPT, b""),
    ],
)
def test_other_carriage_returns_travel(tmp_path: Path, name: str, text: bytes) -> None:
    assert content(package_folder(project(tmp_path, specs={name: text})), name) == text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ä.txt", "outside printable ASCII"),
        ("a\nb", "outside printable ASCII"),
        (os.fsdecode(b"\xff.txt"), "outside printable ASCII"),
        ("a\\b", "backslash"),
        ("a.", "ends with a dot"),
        ("b /c", "ends with a space"),
        ("/".join(["long-name"] * 100), "characters, 1024 are allowed"),
        ("/".join(["x"] * 252), "parts, 254 are allowed"),
    ],
)
def test_names_that_do_not_survive_are_refused(tmp_path: Path, name: str, words: str) -> None:
    folder = project(tmp_path, specs={f"default/cluster-init/{name}": b""})
    with pytest.raises(ProjectUnreadable, match=words) as caught:
        package_folder(folder)
    assert caught.value.file == folder / "specs/default/cluster-init" / name


@pytest.mark.parametrize(("key", "line"), [("name = demo", None), ("version = 1.0.0", 3)])
def test_a_name_or_version_that_ends_with_a_dot(tmp_path: Path, key: str, line: int | None) -> None:
    with pytest.raises(ProjectUnreadable, match="ends with a dot") as caught:
        package_folder(project(tmp_path, INI.replace(key, f"{key}.")))
    assert caught.value.file == tmp_path / "project.ini"
    assert line is None or caught.value.line == line


def test_a_spec_cannot_lie_where_the_manifest_does(tmp_path: Path) -> None:
    with pytest.raises(ProjectUnreadable, match="cannot be named"):
        package_folder(project(tmp_path, specs={"manifest.json/cluster-init/a": b""}))


@given(st.text(max_size=40) | st.from_regex(r"[ -~/]{0,40}", fullmatch=True))
@example("a/b c-_.d")
def test_a_name_without_flaw_is_safe(name: str) -> None:
    if tree.flaw(name) is None:
        assert name.isascii()
        assert name.isprintable()
        assert "\\" not in name
        assert str(PurePosixPath("root") / name) == f"root/{name}"
        assert not any(part.endswith((".", " ")) for part in name.split("/"))
    else:
        assert tree.flaw(f"ok/{name}") is not None, "a folder above does not heal a name"
