"""Layers above the node root with compilers: for pyxis and enroot what the slurm project installs, and a small one."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.bed.machines.overlay import Bind, overlay_machine
from tests.bed.machines.roots import node_root, package_lists

CACHE = Path(__file__).parents[3] / ".cache" / "containers"
PACKAGES = ("gcc", "make", "libc6-dev", "libslurm-dev")
SMALL = ("tcc", "libc6-dev", "libslurm-dev")
INSTALL = """\
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
install() { apt-get install -y -qq --no-install-recommends "$@" >/dev/null; }
# The lists may be as old as the root, and name packages that the mirror has no more.
cp -r /mnt/. /var/lib/apt/lists
install "$@" || { apt-get update -qq; install "$@"; }
rm -rf /var/lib/apt/lists/* /var/cache/apt/*
"""


def toolchain() -> Path:
    return _layer(PACKAGES)


def small_toolchain() -> Path:
    """For a Slurm plug-in of our own, with tcc, in less than half the time."""
    return _layer(SMALL)


def _layer(packages: Sequence[str]) -> Path:
    """Built at the first use, in a few seconds, and kept for this node root. Never write below it."""
    root = node_root()
    recipe = "\0".join((INSTALL, *packages))
    layer = CACHE / f"{root.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(CACHE / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if not layer.is_dir():
            for old in CACHE.iterdir():
                if old.is_dir() and (old.suffix or not old.name.startswith(f"{root.name}-")):
                    shutil.rmtree(old)
            lists = Bind(package_lists(root), "/mnt")
            with overlay_machine(root, network="host", binds=[lists]) as machine:
                result = machine.run(INSTALL, *packages, timeout_s=180)
                if result.code:
                    pytest.fail(f"no compiler from Debian's mirror:\n{result.output[-2000:]}")
                building = layer.with_suffix(".building")
                subprocess.run(["cp", "-a", str(machine.upper), str(building)], check=True)
                building.rename(layer)
    finally:
        os.close(descriptor)
    return layer
