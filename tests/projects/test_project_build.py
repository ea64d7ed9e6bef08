"""The build on disk: exact, as one step, and never in the place of something else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from generator.errors import CannotRead, CannotWrite
from generator.projects.build import build
from generator.projects.ini import ProjectUnreadable
from generator.projects.package import package_folder
from tests.projects.folders import INI, SCRIPT, project

ROOT = Path(__file__).resolve().parents[2]


def tree(folder: Path) -> dict[str, tuple[bytes, str]]:
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), oct(path.stat().st_mode & 0o777))
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_build_is_what_the_package_says(tmp_path: Path) -> None:
    specs = {SCRIPT: b"#!/bin/sh\n", "default/chef/roles/r.rb": b"r", "default/cluster-init/files/d/x": b"x"}
    folder = project(tmp_path / "p", INI + "[blobs]\nFiles = b\n", specs, blobs__b=b"large", templates__t=b"")
    (folder / "specs" / SCRIPT).chmod(0o775)
    package = package_folder(folder)
    old = os.umask(0o077)
    try:
        assert build(package, tmp_path / "deep/build") is True
    finally:
        os.umask(old)
    found = tree(tmp_path / "deep/build")
    roles = found.pop("demo/default/chef/roles.tgz")
    assert roles[1] == "0o644"
    assert found == {
        "demo/manifest.json": (package.manifest, "0o644"),
        f"demo/{SCRIPT}": (b"#!/bin/sh\n", "0o755"),
        "demo/default/cluster-init/files/d/x": (b"x", "0o644"),
    }
    assert (tmp_path / "deep/build/demo/default").stat().st_mode & 0o777 == 0o755


CHANGES: list[Callable[[Path], object]] = [
    lambda built: (built / SCRIPT).write_bytes(b"#!/bin/zz\n"),
    lambda built: (built / SCRIPT).chmod(0o600),
    lambda built: (built / SCRIPT).unlink(),
    lambda built: (built / "default/late").write_bytes(b""),
    lambda built: (built / "default/empty").mkdir(),
    lambda built: (built / "link").symlink_to(built / "default"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_up_to_date_is_not_touched_and_anything_else_is(tmp_path: Path, change: Callable[[Path], object]) -> None:
    package = package_folder(project(tmp_path / "p"))
    assert build(package, tmp_path)
    built = tmp_path / "demo"
    inode = built.stat().st_ino
    before = tree(built)
    assert not build(package, tmp_path)
    assert built.stat().st_ino == inode
    change(built)
    assert build(package, tmp_path)
    assert tree(built) == before
    assert not build(package, tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("notes.txt", b"mine"),
        ("manifest.json", b"{"),
        ("manifest.json", b"[]"),
        ("manifest.json", b'{"name": "other", "blobs": [], "version": "1"}'),
        ("manifest.json", b'{"name": "demo", "files": {}}'),
        ("project.ini", b""),
    ],
)
def test_a_folder_that_is_no_build_of_it_stays(tmp_path: Path, name: str, content: bytes) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / name).write_bytes(content)
    with pytest.raises(CannotWrite, match="is not a build of project 'demo'") as caught:
        build(package_folder(project(tmp_path / "p")), tmp_path)
    assert "choose another --out" in (caught.value.hint or "")
    assert tree(folder) == {name: (content, oct((folder / name).stat().st_mode & 0o777))}


def test_what_is_no_folder_stays(tmp_path: Path) -> None:
    package = package_folder(project(tmp_path / "p"))
    (tmp_path / "other").mkdir()
    (tmp_path / "demo").symlink_to("other")
    with pytest.raises(CannotWrite, match="is a link"):
        build(package, tmp_path)
    (tmp_path / "demo").unlink()
    (tmp_path / "demo").write_text("x")
    with pytest.raises(CannotWrite, match="is a file"):
        build(package, tmp_path)
    with pytest.raises(CannotWrite, match="cannot write"):
        build(package, tmp_path / "demo")


def test_a_build_cannot_become_part_of_the_project(tmp_path: Path) -> None:
    folder = project(tmp_path / "demo")
    package = package_folder(folder)
    for out in (folder / "specs", folder / "specs/default/cluster-init", folder / "blobs", tmp_path):
        with pytest.raises(CannotRead, match="would be inside the project itself"):
            build(package, out)
    assert build(package, folder / "build")
    assert package_folder(folder).files == package.files


def test_a_file_that_changes_on_the_way_is_noticed(tmp_path: Path) -> None:
    folder = project(tmp_path / "p")
    package = package_folder(folder)
    assert build(package, tmp_path)
    before = tree(tmp_path / "demo")
    (folder / "specs" / SCRIPT).write_bytes(b"#!/bin/sh\nexit\n")
    newer = package_folder(folder)
    (folder / "specs" / SCRIPT).write_bytes(b"#!/bin/sh\nexec\n")
    with pytest.raises(CannotRead, match="changed while it was being copied"):
        build(newer, tmp_path)
    (folder / "specs" / SCRIPT).unlink()
    with pytest.raises(ProjectUnreadable, match="cannot be read"):
        build(newer, tmp_path)
    assert tree(tmp_path / "demo") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "p"]


def test_a_full_disk_leaves_the_old_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path / "p")
    assert build(package_folder(folder), tmp_path)
    before = tree(tmp_path / "demo")
    project(folder, specs={"default/cluster-init/files/new": b"x"})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("generator.disk.swap.swap", full)
    with pytest.raises(CannotWrite, match="the disk is full; what was there is unchanged"):
        build(package_folder(folder), tmp_path)
    assert tree(tmp_path / "demo") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo", "p"]


def test_killed_at_every_step_it_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.projects.killed_builds", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    steps, leftovers = map(int, done.stdout.split())
    assert steps > 40, "the steps were not seen"
    assert leftovers > 10, "no build was hit while it wrote"


def test_the_manifest_is_json_without_a_line_end(tmp_path: Path) -> None:
    build(package_folder(project(tmp_path / "p")), tmp_path)
    content = (tmp_path / "demo/manifest.json").read_bytes()
    assert content == json.dumps(json.loads(content), indent=4, sort_keys=True).encode()
