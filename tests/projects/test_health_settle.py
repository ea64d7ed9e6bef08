"""What the deep checks of a boot wait for, by systemd's answers; tests/machines/test_settle.py boots it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from generator.files import assets

SETTLE = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files/settle.sh"
LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
LINE = "* || cycleforge boot_services units='sku-customizations' within_s={within_s}\n"
# Blocks of systemctl show, an empty line after each; Job is 0 without a job: org.freedesktop.systemd1(5), systemctl(1).
SYSTEMCTL = """#!/bin/bash
if mkdir "${0%/*}/asked" 2>/dev/null; then printf '%s\\n' FIRST; else printf '%s\\n' THEN; fi
"""
ACTIVE = "Id=sku-customizations.service ActiveState=active Job=0 After=basic.target"


def settle(folder: Path, first: str, then: str = ACTIVE, within_s: int = 30) -> str:
    """What it says when systemd shows the unit so at the first look and at all later ones."""
    (folder / "etc/cycleforge/nhc").mkdir(parents=True)
    (folder / "etc/cycleforge/nhc/deep.conf").write_text(LINE.format(within_s=within_s))
    tools = folder / "bin"
    tools.mkdir()
    text = SYSTEMCTL.replace("FIRST", first).replace("THEN", then)
    (tools / "systemctl").write_text(text)
    (tools / "systemctl").chmod(0o755)
    for file in (SETTLE, LIBRARY):
        (tools / file.name).write_bytes(file.read_bytes())
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "CYCLEFORGE_ROOT": str(folder), "CYCLEFORGE_POLL_S": "0.1"}
    done = subprocess.run(["bash", str(tools / "settle.sh")], env=environment, capture_output=True, text=True,
                          check=True, timeout=60)  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("shown", ["ActiveState=activating Job=0", "ActiveState=reloading Job=0",
                                   "ActiveState=inactive Job=77"])  # fmt: skip
def test_a_unit_that_starts_or_has_a_job_is_waited_for(tmp_path: Path, shown: str) -> None:
    said = settle(tmp_path, f"Id=sku-customizations.service {shown} After=basic.target")
    assert "deep checks wait for sku-customizations.service" in said
    assert "s for what starts at boot" in said


@pytest.mark.parametrize("shown", ["ActiveState=inactive Job=0 After=basic.target", "ActiveState=failed Job=0 After=x",
                                   "ActiveState=inactive Job=77 After=multi-user.target"])  # fmt: skip
def test_nothing_is_gained_by_waiting_for_others(tmp_path: Path, shown: str) -> None:
    """One after multi-user.target waits for slurmd, which waits for the deep checks."""
    assert settle(tmp_path, f"Id=sku-customizations.service {shown}") == ""


def test_the_wait_has_an_end(tmp_path: Path) -> None:
    shown = "Id=sku-customizations.service ActiveState=activating Job=7 After=basic.target"
    assert "after 1 s still starting: sku-customizations.service; the deep checks begin" in settle(
        tmp_path, shown, shown, within_s=1
    )
