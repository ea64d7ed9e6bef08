"""The guard's arithmetic, as nodes and scheduler have it: many cases in one process of Bash."""

from __future__ import annotations

import itertools
import random
import subprocess

from generator import catalog
from generator.files import assets

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
FIGURES = catalog.health().shared_cause
PERCENT, NODES, WINDOW_S = FIGURES.percent, FIGURES.nodes, FIGURES.window_s


def bash(text: str, lines: list[str]) -> list[str]:
    """What Bash with the guard's rule prints for each line of input."""
    start = f". {FILES / 'guard-rule.sh'}; guard_figures {FILES / 'guard.tsv'} || exit 9\n"
    run = subprocess.run(
        ["bash", "-euc", f"{start}while read -r -a words; do {text}; done"],
        input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return run.stdout.splitlines()


def test_more_than_30_percent_and_at_least_3_nodes() -> None:
    cases = [(failing, total) for total in range(101) for failing in range(min(total, 40) + 1)]
    text = 'if guard_trips "${words[@]}"; then echo yes; else echo no; fi'
    said = bash(text, [f"{failing} {total}" for failing, total in cases])
    assert said == ["yes" if failing >= 3 and failing / total > 0.3 else "no" for failing, total in cases]
    tripped = [case for case, answer in zip(cases, said, strict=True) if answer == "yes"]
    assert min(failing for failing, _ in tripped) == 3
    assert (3, 10) not in tripped
    assert (4, 10) in tripped
    assert (3, 3) in tripped


def test_an_alarm_ends_lower_than_it_begins() -> None:
    cases = [(failing, total) for total in range(1, 101) for failing in range(min(total, 40) + 1)]
    text = 'guard_trips "${words[@]}" && echo yes || { guard_clears "${words[@]}" && echo no || echo between; }'
    said = bash(text, [f"{failing} {total}" for failing, total in cases])
    both = bash('guard_trips "${words[@]}" && guard_clears "${words[@]}" && echo both || echo one',
                [f"{failing} {total}" for failing, total in cases])  # fmt: skip
    assert set(both) == {"one"}
    between = {case for case, answer in zip(cases, said, strict=True) if answer == "between"}
    assert (20, 100) in between
    assert (15, 100) not in between
    assert (2, 4) not in between


def test_the_window_slides() -> None:
    chance = random.Random(14)
    rows = [sorted(chance.sample(range(3000), chance.randrange(0, 9))) for _ in range(60)]
    rows += [[0, WINDOW_S], [0, WINDOW_S + 1], [5, 5, 5]]
    expected = [max((sum(a <= b <= a + WINDOW_S for b in row) for a in row), default=0) for row in rows]
    shuffled = [" ".join(map(str, chance.sample(row, len(row)))) for row in rows]
    said = bash('guard_densest "${words[@]}"; echo "${REPLY}"', shuffled)
    assert said == [str(count) for count in expected]


def test_hardware_of_gpus_and_odd_names_are_not_covered() -> None:
    always = list(FIGURES.always_drain)
    names = [*always, *(f"{name}_more" for name in always), "../x", "a/b", "a@b", "Mount", ".."]
    assert set(bash('guard_covers "${words[0]}" && echo yes || echo no', names)) == {"no"}
    covered = ["mount_shared", "gpu_xidx", "gpu_count", "ib_ports_active", "nvme_disks"]
    assert set(bash('guard_covers "${words[0]}" && echo yes || echo no', covered)) == {"yes"}


def test_whoever_hangs_is_not_waited_for() -> None:
    """The process that hangs holds the pipe and takes no signal; the answer of one that ends is whole."""
    script = f"""
        . {FILES / "guard-rule.sh"}
        hangs() {{ trap '' TERM; printf 'half'; sleep 30; printf 'late'; }}
        answers() {{ printf 'two\\nlines'; }}
        fails() {{ printf 'something'; return 3; }}
        guard_ask 0.2 hangs && echo wrong; echo "after: ${{SECONDS}}" >&2
        guard_ask 5 answers && echo "${{REPLY}}"
        guard_ask 5 fails && echo wrong
        exit 0"""
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, timeout=25)
    assert run.stdout == "two\nlines\n"


def test_a_table_that_is_cut_means_no_guard() -> None:
    whole = (FILES / "guard.tsv").read_text().splitlines()
    for left_out in range(1, len(whole)):
        if whole[left_out].startswith(("#", "always")):
            continue
        text = "\n".join(itertools.chain(whole[:left_out], whole[left_out + 1 :]))
        script = f". {FILES / 'guard-rule.sh'}; guard_figures /dev/stdin && echo whole || echo cut"
        run = subprocess.run(["bash", "-c", script], input=text, capture_output=True, text=True, check=True)
        assert run.stdout == "cut\n"
