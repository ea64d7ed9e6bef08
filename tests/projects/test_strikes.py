"""Strikes: how many drains in a row a node may have. The functions themselves, many runs in one process of Bash."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from generator.files import assets

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
HARNESS = f"""
set -euo pipefail
. {LIBRARY}
RUN_DIR="${{CF_ROOT}}/run" HERE={FILES}
boot_id() {{ REPLY=boot-1; }}
. {FILES}/verdicts.sh
. {FILES}/standing.sh
. {FILES}/strikes.sh
CF_CONF=([strikes]="$MOST" [strikes_h]="$HOURS")
VM_ID="$VM" PRODUCT_UUID="$UUID" NOTES=([drain]=none [repaired]="${{REPAIRED:-0}}" [passes]=0)
while read -r word; do
    case "$word" in
        drain)
            FOUND=()
            if strike_out; then describe_standing; echo "$REPLY"; else echo resumes; fi
            count_strike
            NOTES[drain]=ours ;;
        shared) forgive_strike >/dev/null ;;
    esac
done
"""


class Node:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "var/lib/cycleforge/health/strikes"
        self.file.parent.mkdir(parents=True)

    def drains(self, *words: str, most: int = 3, hours: int = 24, vm: str = "vm-1", uuid: str = "uuid-1",
               repaired: int = 0) -> list[str]:  # fmt: skip
        """What each `drain` leads to; `shared` says that the last one has a shared cause."""
        environment = {"PATH": os.environ["PATH"], "CYCLEFORGE_ROOT": str(self.folder), "MOST": str(most),
                       "HOURS": str(hours), "VM": vm, "UUID": uuid, "REPAIRED": str(repaired),
                       "LC_ALL": "C"}  # fmt: skip
        done = subprocess.run(["bash", "-c", HARNESS], input="".join(f"{word}\n" for word in words), env=environment,
                              capture_output=True, text=True, check=False, timeout=60)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return ["out" if "stays out" in line else line for line in done.stdout.splitlines()]

    def age(self, hours: float) -> None:
        """Everything so far was so long ago."""
        first, *rows = self.file.read_text().splitlines()
        older = [f"{int(row.split()[0]) - round(hours * 3600)} {row.split()[1]}" for row in rows]
        self.file.write_text("\n".join([first, *older, ""]))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_the_third_drain_in_a_day_is_the_last(node: Node) -> None:
    assert node.drains("drain", "drain", "drain", "drain") == ["resumes", "resumes", "out", "out"]


def test_a_reboot_forgets_nothing(node: Node) -> None:
    """Each process reads the disk anew."""
    assert [node.drains("drain") for _ in range(3)] == [["resumes"], ["resumes"], ["out"]]


def test_the_window_passes(node: Node) -> None:
    node.drains("drain", "drain")
    node.age(23.9)
    assert node.drains("drain") == ["out"]
    node.age(0.2)
    assert node.drains("drain") == ["resumes"], "one of the last hours and this one"
    assert len(node.file.read_text().splitlines()) == 3, "what is older is forgotten"


@pytest.mark.parametrize(("most", "expected"), [(0, ["resumes"] * 4), (1, ["out"] * 4), (2, ["resumes", *["out"] * 3])])
def test_the_definition_says_how_many(most: int, expected: list[str], node: Node) -> None:
    assert node.drains(*["drain"] * 4, most=most) == expected


@pytest.mark.parametrize(
    ("vm", "uuid", "expected"),
    [("vm-1", "uuid-1", "out"), ("vm-2", "uuid-2", "resumes"), ("vm-2", "uuid-1", "resumes"), ("", "uuid-2", "resumes"),
     ("", "uuid-1", "out"), ("vm-1", "", "out"), ("", "", "out")],
)  # fmt: skip
def test_another_vm_starts_clean_and_an_unknown_one_does_not(vm: str, uuid: str, expected: str, node: Node) -> None:
    node.drains("drain", "drain")
    assert node.drains("drain", vm=vm, uuid=uuid) == [expected]


def test_a_person_who_says_repaired_clears_it(node: Node) -> None:
    node.drains("drain", "drain", "drain")
    node.age(0.1)
    since = int(node.file.read_text().split()[-2]) + 10
    assert node.drains("drain", "drain", repaired=since) == ["resumes", "resumes"]


def test_drains_with_a_shared_cause_are_not_counted_and_each_is_forgiven_once(node: Node) -> None:
    assert node.drains("drain", "shared", "shared", "drain", "shared", "drain", "drain", "drain") == [
        *["resumes"] * 4,
        "out",
    ]


def test_the_reason_says_how_often_and_how_it_ends(node: Node) -> None:
    environment = {"PATH": os.environ["PATH"], "CYCLEFORGE_ROOT": str(node.folder), "MOST": "2", "HOURS": "12",
                   "VM": "", "UUID": "", "LC_ALL": "C"}  # fmt: skip
    done = subprocess.run(["bash", "-c", HARNESS], input="drain\ndrain\n", env=environment, capture_output=True,
                          text=True, check=True, timeout=60)  # fmt: skip
    action, _, text = done.stdout.splitlines()[1].partition(": ")
    assert text == "2 drains in 12 h, stays out until a person types 'health.sh repaired'"
    assert "another VM" in action


@pytest.mark.parametrize(
    "content", ["", "garbage\n", "vm\n", "vm uuid-1 vm-1\n12 own extra\nx own\n99999999999999 own\n"]
)
def test_a_damaged_file_is_no_strike(content: str, node: Node) -> None:
    node.file.write_text(content)
    assert node.drains("drain", "drain") == ["resumes", "resumes"]
