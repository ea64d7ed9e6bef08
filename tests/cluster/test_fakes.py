"""The stand-ins of the beds and what they install are plain programs, held to the same standard as what they test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from generator.files import assets
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.slurm.cluster import FAKES

TESTS = assets.root() / "tests"


def test_shellcheck_accepts_every_script() -> None:
    scripts = [path for path in (*FAKES.iterdir(), NVIDIA_SMI) if path.read_text().startswith("#!/bin/bash\n")]
    scripts += [*TESTS.glob("bed/*/*.sh"), *TESTS.glob("bed/*/machine/*.sh"), *TESTS.glob("jobs/*.sh")]
    scripts += [TESTS / "bed/containers/machine/jetpack", *(TESTS / "mpi/machine").iterdir()]
    scripts.append(assets.root() / "benchmarks/health_reference.sh")
    shellcheck = Path(sys.executable).with_name("shellcheck")
    result = subprocess.run([shellcheck, *map(str, scripts)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert len(scripts) > 20
