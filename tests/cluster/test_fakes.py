"""The stand-ins of the cluster tests are plain programs, held to the same standard as what they test."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.bed.fakes import NVIDIA_SMI
from tests.bed.slurm import configuration, hardware
from tests.bed.slurm.cluster import FAKES

ROOT = Path(__file__).parents[2]


def test_shellcheck_accepts_every_script(tmp_path: Path) -> None:
    scripts = [path for path in (*FAKES.iterdir(), NVIDIA_SMI) if path.read_text().startswith("#!/bin/bash\n")]
    for name, text in (("install", configuration.INSTALL), ("start", configuration.START_SERVICES),
                       ("hardware", hardware.SCRIPT)):  # fmt: skip
        scripts.append(tmp_path / name)
        scripts[-1].write_text(f"#!/usr/bin/env bash\n{text}")
    scripts.append(ROOT / "benchmarks/health_reference.sh")
    shellcheck = Path(sys.executable).with_name("shellcheck")
    result = subprocess.run([shellcheck, *map(str, scripts)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert len(scripts) > len(list(FAKES.iterdir())) - 2
