"""What git keeps of a built folder: everything that was built, and nothing that holds secrets."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from generator.output.folder import write
from generator.render.deployment import deployment_files
from tests.bed.plans import plan_from

SECRET = (
    ".envrc",
    ".envrc.swp",
    ".envrc.template.orig",
    "main.bicepparam.orig",
    "main.bicepparam.orig.2",
    "main.json",
    "minimal.deployed.json",
)
"""What the README's commands, editors, tools that merge and `az bicep build-params` leave beside the built files."""


def git(folder: Path, *arguments: str) -> list[str]:
    """Lines that git prints, whatever the user's own settings are."""
    if shutil.which("git") is None:
        pytest.skip("no git on the PATH")
    own = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    done = subprocess.run(["git", *arguments], cwd=folder, env=own, capture_output=True, text=True, check=True)
    return done.stdout.split("\0")[:-1]


def test_git_keeps_what_was_built_and_no_secret(tmp_path: Path) -> None:
    files = deployment_files(plan_from(), tmp_path)
    folder = tmp_path / "minimal"
    write(folder, files)
    for name in (*SECRET, "notes.txt"):
        (folder / name).write_text("mine\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "minimal")
    kept = set(git(folder, "ls-files", "-z"))
    assert kept == {str(path) for path in files} | {"notes.txt"}
