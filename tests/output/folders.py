"""Files and folders for the tests of `generator.output.folder`."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path, PurePosixPath

from generator.files.file import Files, manifest_file, text


def files(version: str, count: int = 5, size: int = 200) -> Files:
    """A small deployment folder; every file holds the version, and some exist only in one."""
    made: Files = {PurePosixPath(f"d{n % 3}/f{n}.txt"): text(f"{version} {n} " + "x" * size) for n in range(count)}
    made[PurePosixPath("same.txt")] = text("the same in every version")
    made[PurePosixPath("run.sh")] = text(f"#!/bin/sh\necho {version}", executable=True)
    made[PurePosixPath(f"only-{version}/file")] = text(version)
    made[PurePosixPath("manifest.json")] = manifest_file(made, version)
    return made


def assert_whole(folder: Path, *versions: str) -> str:
    """The folder is exactly one of the versions, as its manifest says; returns which."""
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["version"] in versions
    found = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    assert found == manifest["files"]
    return str(manifest["version"])


def snapshot(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything in a folder: mode, time, inode and content."""
    return {
        path.relative_to(folder).as_posix(): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.lstat().st_ino,
            path.read_bytes() if path.is_file() and not path.is_symlink() else None,
        )
        for path in sorted(folder.rglob("*"))
    }
