"""Who is slow, from measurements of pairs: exactly the culprits, and nobody on a healthy cluster.

All cases of a table walk through files in one Bash process. The model of a measurement: a pair is as slow as the
slower of its nodes, times uniform noise of 5 %.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from generator.files import assets

SIMULATE = Path(__file__).with_name("simulated_tournament.sh").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Case:
    """A cluster: number of nodes, seed and noise in percent of its measurements, slow nodes by number, slow links."""

    nodes: int
    seed: int
    culprits: tuple[int, ...] = ()
    links: tuple[str, ...] = ()
    noise: float = 5

    @property
    def expected(self) -> set[str]:
        return {f"n{number}" for number in self.culprits}


def judged(folder: Path, cases: Sequence[Case]) -> list[list[list[str]]]:
    lines = "".join(
        f"case{number} {each.nodes} {each.seed} {each.noise} {','.join(map(str, each.culprits)) or '-'} "
        f"{'/'.join(each.links) or '-'}\n"
        for number, each in enumerate(cases)
    )
    subprocess.run(
        ["bash", "-c", SIMULATE, "-", assets.folder("recipes")], input=lines, text=True, cwd=folder, check=True
    )
    return [rows((folder / f"case{number}.judged").read_text()) for number in range(len(cases))]


def rows(text: str) -> list[list[str]]:
    return [line.split("\t") for line in text.splitlines()]


def named(lines: list[list[str]], kind: str = "node") -> set[str]:
    """Everything that is named, even by a warning."""
    return {line[1] for line in lines if line[0] == kind and line[2] != "pass"}


def whole(lines: list[list[str]]) -> str:
    (line,) = (line for line in lines if line[0] == "whole")
    return line[2]


def bash(script: str, folder: Path) -> str:
    recipes = assets.folder("recipes")
    text = f"set -euo pipefail; export LC_ALL=C; . {recipes}/lib/outliers.sh; . {recipes}/lib/tournament.sh; {script}"
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=True, cwd=folder).stdout


def test_fifty_clusters_with_one_or_two_slow_nodes(tmp_path: Path) -> None:
    """15 % slower, any place, single measurements with noise of 5 %."""
    cases = [
        Case(
            nodes,
            seed,
            tuple(sorted({1 + seed % nodes, 1 + (seed * 5 + 3) % nodes})) if seed % 2 else (1 + seed % nodes,),
        )
        for seed, nodes in enumerate(10 * (6, 8, 9, 16, 24))
    ]
    assert {len(each.culprits) for each in cases} == {1, 2}
    for case, lines in zip(cases, judged(tmp_path, cases), strict=True):
        assert named(lines) == case.expected, case
        assert whole(lines) == "fail"
        assert not named(lines, "pair"), case


def test_fifty_healthy_clusters_name_nobody(tmp_path: Path) -> None:
    cases = [Case(nodes, seed) for seed, nodes in enumerate(10 * (4, 6, 8, 16, 24), 1000)]
    for case, lines in zip(cases, judged(tmp_path, cases), strict=True):
        assert (named(lines), named(lines, "pair"), whole(lines)) == (set(), set(), "pass"), case


def test_small_clusters_measure_each_pair_more_than_once(tmp_path: Path) -> None:
    cases = [Case(4, seed, (1 + seed % 4,)) for seed in range(10)] + [Case(5, seed, (2, 4)) for seed in range(10)]
    for case, lines in zip(cases, judged(tmp_path, cases), strict=True):
        assert named(lines) == case.expected, case


def test_a_slow_link_is_not_a_slow_node(tmp_path: Path) -> None:
    cases = [Case(8, seed, links=("n2,n7",), noise=1) for seed in range(5)] + [Case(8, 6, (3,), ("n2,n7",), noise=1)]
    for case, lines in zip(cases, judged(tmp_path, cases), strict=True):
        assert named(lines) == case.expected
        assert named(lines, "pair") in ({"n2,n7"}, {"n7,n2"})
        # Measured once: repeat it before a cable is changed.
        assert [line[2] for line in lines if line[0] == "pair"] == ["warn"]


def test_where_most_are_slow_nobody_is_named_and_nothing_passes(tmp_path: Path) -> None:
    cases = [Case(8, seed, (1, 2, 3, 4), noise=1) for seed in range(5)] + [Case(4, 3, (1, 2), noise=1)]
    for lines in judged(tmp_path, cases):
        assert (named(lines), whole(lines)) == (set(), "fail")


def test_a_little_slower_on_a_quiet_fabric_is_a_warning(tmp_path: Path) -> None:
    """5 % below 15 partners that agree within 0.2 %."""
    plan = bash("seq -f n%g 1 16 >nodes; tournament_rounds nodes | tee plan", tmp_path)
    table = "".join(
        f"{line}\t{100 + (number % 5) / 20 - (5 if 'n9' in line.split() else 0)}\n"
        for number, line in enumerate(plan.splitlines())
    )
    (tmp_path / "table").write_text(table)
    lines = rows(bash("judge_pairs plan table", tmp_path))
    assert [line[1:3] for line in lines if line[2] != "pass"] == [["n9", "warn"], ["-", "warn"]]


PLAN = "1\ta\tb\n1\tc\td\n2\ta\tc\n2\tb\td\n3\ta\td\n3\tb\tc\n"
EQUAL = "".join(f"{line}\t100\n" for line in PLAN.splitlines())
WITHOUT_A = "".join(f"{line}\t100\n" for line in PLAN.splitlines() if "a" not in line.split())
SILENT_A = "".join(f"{line}\t{'failed' if 'a' in line.split() else 100}\n" for line in PLAN.splitlines())


@pytest.mark.parametrize(
    ("table", "verdict", "nodes", "text"),
    [
        (EQUAL, "pass", set(), "0 of 4 nodes"),
        (EQUAL.replace("a\tb\t100", "a\tb\t80"), "warn", set(), "0 of 4 nodes and 1 pairs"),
        (EQUAL.replace("a\tb\t100", "a\tb\tfailed"), "fail", set(), "0 of 4 nodes and 1 pairs"),
        # A node that answers nobody.
        (SILENT_A, "fail", {"a"}, "1 of 4"),
        # What was planned and is not there has failed.
        (WITHOUT_A, "fail", {"a"}, "1 of 4"),
        ("", "fail", set(), "no few nodes explain"),
        (EQUAL[:-5], "error", set(), "damaged"),
        (EQUAL + "4\ta\tb\t100\n", "error", set(), "damaged"),
        (EQUAL + "3\tb\tc\t100\n", "error", set(), "damaged"),
        (EQUAL.replace("b\tc\t100", "b\tc\tnan"), "error", set(), "no number"),
        (EQUAL.replace("b\tc\t100", "b\tc\t0"), "error", set(), "no number"),
        (EQUAL.replace("b\tc\t100", "b\tc\t-100"), "error", set(), "no number"),
        (EQUAL.replace("b\tc\t100", "b\tc\t"), "error", set(), "no number"),
    ],
)  # fmt: skip
def test_what_is_missing_or_damaged_never_passes(
    tmp_path: Path, table: str, verdict: str, nodes: set[str], text: str
) -> None:
    (tmp_path / "plan").write_text(PLAN)
    (tmp_path / "table").write_text(table)
    lines = rows(bash("judge_pairs plan table", tmp_path))
    assert (whole(lines), named(lines)) == (verdict, nodes)
    assert text in next(line[5] for line in lines if line[0] == "whole")


def test_without_plan_or_measurements_it_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(PLAN)
    (tmp_path / "empty").touch()
    for call in ("judge_pairs empty empty", "judge_pairs plan gone", "judge_pairs gone gone"):
        assert whole(rows(bash(call, tmp_path))) == "error"


def test_fewer_than_four_nodes_are_judged_by_floors_alone(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("1\ta\tb\n2\ta\tc\n3\tb\tc\n")
    (tmp_path / "table").write_text("1\ta\tb\t100\n2\ta\tc\t80\n3\tb\tc\t102\n")
    verdicts = {
        call: [line[2] for line in rows(bash(f"judge_pairs plan table {call}", tmp_path))]
        for call in ("'' ''", "90 ''", "'' 90", "70 101", "70 75")
    }
    assert verdicts == {
        "'' ''": 4 * ["no_baseline"],
        "90 ''": ["pass", "fail", "pass", "fail"],
        "'' 90": ["pass", "warn", "pass", "warn"],
        "70 101": ["warn", "warn", "pass", "warn"],
        "70 75": 4 * ["pass"],
    }


def test_a_floor_decides_beside_the_median(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text(PLAN)
    (tmp_path / "table").write_text(EQUAL)
    assert whole(rows(bash("judge_pairs plan table 99 ''", tmp_path))) == "pass"
    assert whole(rows(bash("judge_pairs plan table 101 ''", tmp_path))) == "fail"
    assert whole(rows(bash("judge_pairs plan table 90 101", tmp_path))) == "warn"


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 7, 16])
def test_in_a_tournament_everybody_meets_everybody_once(tmp_path: Path, nodes: int) -> None:
    plan = rows(bash(f"seq -f n%g 1 {nodes} >nodes; tournament_rounds nodes", tmp_path))
    assert len({frozenset(line[1:]) for line in plan}) == len(plan) == nodes * (nodes - 1) // 2
    rounds = {line[0] for line in plan}
    assert len(rounds) == (0 if nodes == 1 else nodes - 1 + nodes % 2)
    for each in rounds:
        met = [name for line in plan if line[0] == each for name in line[1:]]
        assert len(set(met)) == len(met) == nodes // 2 * 2


def test_a_few_rounds_of_many(tmp_path: Path) -> None:
    plan = rows(bash("seq -f n%g 1 64 >nodes; tournament_rounds nodes 5", tmp_path))
    assert len({line[0] for line in plan}) == 5
    assert len(plan) == 5 * 32


def test_suspects_meet_good_nodes_again(tmp_path: Path) -> None:
    nodes = "node\ta\tfail\t1\nnode\tb\tpass\t2\nnode\tc\tpass\t2\nnode\td\twarn\t2\n"
    (tmp_path / "judged").write_text(nodes)
    more = rows(bash("confirmation_rounds judged 3", tmp_path))
    assert len(more) == 6
    assert {line[1] for line in more} == {"a", "d"}
    assert all(line[2] in "bc" for line in more)
    # The link between the only good nodes and the nodes that need them take turns.
    (tmp_path / "judged").write_text(nodes + "pair\tb,c\twarn\t1\n")
    more = rows(bash("confirmation_rounds judged 3", tmp_path))
    assert [line for line in more if line[0] != "c2"] == [["c1", "b", "c"], ["c3", "b", "c"]]
    assert {line[1] for line in more if line[0] == "c2"} == {"a", "d"}
    (tmp_path / "judged").write_text("whole\t-\tfail\t1\n")
    assert not bash("confirmation_rounds judged 3", tmp_path)


@pytest.mark.parametrize(("value", "slow"), [("159", set()), ("failed", {"n6", "n7"})])
def test_who_has_met_slow_nodes_only_is_neither_good_nor_slow(tmp_path: Path, value: str, slow: set[str]) -> None:
    """n6 is slow with everybody; n7 has met n6 alone. Only one that never gave a result is known to be bad."""
    good = [f"n{number}" for number in range(1, 6)]
    pairs = [(a, b, "187") for place, a in enumerate(good) for b in good[place + 1 :]]
    pairs += [("n6", other, "159") for other in good] + [("n6", "n7", value)]
    rounds = [(str(number), *pair) for number, pair in enumerate(pairs)]
    (tmp_path / "plan").write_text("".join("\t".join(each[:3]) + "\n" for each in rounds))
    (tmp_path / "table").write_text("".join("\t".join(each) + "\n" for each in rounds))
    script = f". {assets.folder('recipes')}/lib/outliers.sh; judge_pairs plan table"
    said = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert (named(rows(said)), whole(rows(said))) == (slow, "fail")
