"""The bisection through files: measurements come from a model in which a group is as slow as its slowest node.

All cases walk in one Bash process; `measure_groups` is replaced, all that decides is the recipe's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.files import assets
from tests.jobs.test_outliers import Case, named, rows, whole

SIMULATE = Path(__file__).with_name("simulated_bisection.sh").read_text(encoding="utf-8")


def bisected(folder: Path, cases: Sequence[Case], far: int = 0, path: str | None = None) -> list[list[list[str]]]:
    """What a bisection says of each case; with `far` all nodes above that number are behind a slow switch."""
    lines = "".join(
        f"case{number} {each.nodes} {each.seed} {each.noise} {','.join(map(str, each.culprits)) or '-'} {far}\n"
        for number, each in enumerate(cases)
    )
    command = ["bash", "-c", SIMULATE, "-", str(assets.folder("recipes"))]
    subprocess.run(command, input=lines, text=True, cwd=folder, check=True, env={"PATH": path or os.environ["PATH"]})
    return [rows((folder / f"case{number}/judged.tsv").read_text()) for number in range(len(cases))]


def test_fifty_clusters_with_one_or_two_slow_nodes(tmp_path: Path) -> None:
    cases = [
        Case(
            nodes,
            seed,
            tuple(sorted({1 + seed % nodes, 1 + (seed * 5 + 3) % nodes} if seed % 2 else {1 + seed % nodes})),
        )
        for seed, nodes in enumerate(25 * (6, 8), 300)
    ]
    assert {len(each.culprits) for each in cases} == {1, 2}
    for case, lines in zip(cases, bisected(tmp_path, cases), strict=True):
        assert (named(lines), named(lines, "pair"), whole(lines)) == (case.expected, set(), "fail"), case
        assert {line[1] for line in lines if line[0] == "node"} == {f"n{n}" for n in range(1, case.nodes + 1)}


def test_healthy_clusters_name_nobody(tmp_path: Path) -> None:
    cases = [Case(nodes, seed) for seed, nodes in enumerate(3 * (4, 7, 8, 16), 500)]
    for case, lines in zip(cases, bisected(tmp_path, cases), strict=True):
        assert {line[2] for line in lines} == {"pass"}, case


def test_halves_behind_a_slow_switch_are_no_fault_of_a_node(tmp_path: Path) -> None:
    """Each half is well, and so is every node; odd and even nodes are as slow together as all."""
    (lines,) = bisected(tmp_path, [Case(16, 1, noise=1)], far=8)
    assert not named(lines)
    (lines,) = bisected(tmp_path, [Case(16, 2, noise=1)], far=12)
    levels = {line[1]: line[2] for line in lines if line[0] == "level"}
    assert levels["l1"] == "warn"
    assert "oe" in levels
    assert not named(lines)


def test_as_few_launches_as_halving_needs(tmp_path: Path) -> None:
    bisected(tmp_path, [Case(32, 1, noise=1), Case(32, 2, (7,), noise=1)])
    waves = [int((tmp_path / f"case{number}/calls").read_text()) for number in (0, 1)]
    # 32, 16, 8, 4 nodes, both neighbours; then each suspect meets four good nodes.
    assert waves == [6, 10]


def test_where_most_are_slow_nobody_is_named_and_nothing_passes(tmp_path: Path) -> None:
    for lines in bisected(tmp_path, [Case(8, seed, (1, 2, 3, 4), noise=1) for seed in range(3)]):
        assert (named(lines), whole(lines)) == (set(), "fail")


@pytest.mark.parametrize("program", ["gawk", "mawk"])
def test_with_the_awk_of_every_distribution(tmp_path: Path, program: str) -> None:
    """Ubuntu's is mawk, AlmaLinux's gawk; mawk knows a name as an array or as a value, never as both."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/awk").symlink_to(found)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    (lines,) = bisected(tmp_path, [Case(8, 1, (5,))], path=path)
    assert named(lines) == {"n5"}
    assert {line[0] for line in lines} == {"node", "whole", "level"}
