"""slurm_nhc: a node on which no prolog can run does not join, so that it drains nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode

HOOK = "#!/bin/bash\nexit 0\n"


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    """Hooks are on a share, to which /etc/slurm has a link, as cyclecloud-slurm 4.x makes it."""
    node = healthy(make_node("slurm_nhc"))
    hooks(node).mkdir(parents=True)
    (node.root / "etc/slurm").mkdir(exist_ok=True)
    (node.root / "etc/slurm/prolog.d").symlink_to(hooks(node))
    node.write("sched/c/prolog.d/90-imex_prolog.sh", HOOK, 0o755)
    node.write("sched/c/prolog.d/20-cycleforge_health.sh", HOOK, 0o755)
    return node


def hooks(node: Healthy) -> Path:
    return node.root / "sched/c/prolog.d"


def join(node: Healthy) -> tuple[int, str]:
    """What slurmd's ExecStartPre ends with and says."""
    result = node.command(str(node.root / "opt/cycleforge/slurm_nhc/join.sh"))
    return result.returncode, result.stdout + result.stderr


def test_a_node_joins_when_its_hooks_can_run(node: Healthy) -> None:
    node.write("sched/c/prolog.d/50-program", "\x7fELF\0", 0o755)
    assert join(node) == (0, "")


def test_an_older_slurm_project_has_no_hooks(node: Healthy) -> None:
    (node.root / "etc/slurm/prolog.d").unlink()
    assert join(node) == (0, "")


@pytest.mark.parametrize(
    ("name", "text", "mode", "says"),
    [
        ("20-cycleforge_health.sh", "#!/usr/bin/env bash\nif true; then\n", 0o755, "is no valid script: "),
        ("10-health_prolog.sh", "#!/bin/sh -e\necho 'x\n", 0o755, "is no valid script: "),
        ("README", "about these hooks\n", 0o644, "is not a file that can be run"),
    ],
)
def test_a_hook_that_cannot_run_anywhere(node: Healthy, name: str, text: str, mode: int, says: str) -> None:
    node.write(f"sched/c/prolog.d/{name}", text, mode)
    code, output = join(node)
    assert code == 1
    assert f"every job's prolog would fail here: /etc/slurm/prolog.d/{name} {says}" in output


def test_a_share_that_is_not_there_or_empty(node: Healthy) -> None:
    for path in hooks(node).iterdir():
        path.unlink()
    assert join(node)[0] == 1
    hooks(node).rmdir()
    code, output = join(node)
    assert (code, "/etc/slurm/prolog.d has no hooks; is its share mounted?" in output) == (1, True)
    hooks(node).mkdir()
    node.write("sched/c/prolog.d/90-imex_prolog.sh", HOOK, 0o755)
    assert join(node) == (0, ""), "systemd starts slurmd again, and it joins by itself"


def test_a_share_that_hangs(node: Healthy) -> None:
    """What reads from a share whose server is gone ends only when it is killed: 124 by SIGTERM, 137 by SIGKILL."""
    for code in (124, 137):
        node.fake("timeout", f"exit {code}")
        ended, output = join(node)
        assert ended == 1
        assert "/etc/slurm/prolog.d does not answer within 20 s" in output


def test_slurmd_asks_before_it_starts(node: Healthy) -> None:
    drop_in = "etc/systemd/system/slurmd.service.d/25-cycleforge-join.conf"
    assert "exec /bin/bash /opt/cycleforge/slurm_nhc/join.sh" in node.read(drop_in)
    node.attribute("cycleforge.health.enabled", "False")
    node.ok("20-health.sh")
    assert not (node.root / drop_in).exists()
