"""Sources of pyxis and enroot for the tests: a local git copy gives the pinned commit, packed as the locker has it."""

from __future__ import annotations

import os
import subprocess
from functools import cache
from hashlib import sha256

import pytest

from generator.blobs.archive import normalised
from generator.blobs.pins import pinned

VARIABLES = {"enroot-4.1.2.tar": "ENROOT_SRC", "pyxis-0.24.0.tar": "PYXIS_SRC"}


@cache
def blobs() -> dict[str, bytes]:
    """Both blobs of pyxis_enroot, byte for byte as pinned; skips, with the reason, without the git copies."""
    return {name: _blob(name, variable) for name, variable in VARIABLES.items()}


def _blob(name: str, variable: str) -> bytes:
    pin = pinned()[name]
    wanted = f"it must name a local git copy of {pin.repository} that has commit {pin.commit}"
    copy = os.environ.get(variable)
    if not copy:
        pytest.skip(f"{variable} is not set; {wanted}")
    result = subprocess.run(
        ["git", "-C", copy, "archive", "--format=tar", f"--prefix={pin.commit}/", pin.commit],
        capture_output=True, check=False,
    )  # fmt: skip
    if result.returncode:
        pytest.skip(f"{variable}={copy}: {result.stderr.decode(errors='replace').strip()}; {wanted}")
    content = normalised(result.stdout, pin.members, pin.size_bytes)
    assert sha256(content).hexdigest() == pin.sha256, f"{name} does not have its pinned content"
    return content
