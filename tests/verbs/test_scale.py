"""`cycleforge scale`: through Slurm, never a node with a job."""

from __future__ import annotations

import pytest

from tests.verbs.place import Living

DOWN = "IDLE+CLOUD+POWERED_DOWN"
NODES = {
    "m-htc-1": ("htc", "MIXED+CLOUD", ""),
    "m-htc-2": ("htc", "IDLE+CLOUD", ""),
    "m-htc-3": ("htc", "IDLE+CLOUD+DRAIN", "CycleForge health: gpu_count"),
    "m-htc-4": ("htc", "IDLE+CLOUD", ""),
    "m-htc-9": ("htc", DOWN + "+DRAIN", "ada looks"),
    "m-htc-10": ("htc", DOWN, ""),
    "m-htc-11": ("htc", DOWN, ""),
    "m-gpu-1": ("gpu", "IDLE+CLOUD", ""),
}


@pytest.fixture
def slurm(living: Living) -> Living:
    living.runs()
    living.slurm.nodes = dict(NODES)
    return living


def scale(number: int, *more: str, partition: str = "htc") -> tuple[str, ...]:
    """The command."""
    return ("scale", "minimal.yaml", partition, str(number), *more)


def test_up_starts_the_first_ones_that_may_start(slurm: Living) -> None:
    code, out, err = slurm(*scale(5, "--yes"))
    assert (code, slurm.changes) == (0, ["scontrol update nodename=m-htc-10 state=POWER_UP"]), err
    assert "htc: 4 -> 5 nodes" in out
    assert "are drained, and cost money: m-htc-3 (CycleForge health: gpu_count)" in err
    assert "stays idle for 300 sec" in err
    assert slurm(*scale(5, "--yes"))[0] == 0
    assert len(slurm.changes) == 1


def test_down_names_idle_nodes_and_asks(slurm: Living) -> None:
    slurm.types("n\n")
    code, _, err = slurm(*scale(3))
    assert (code, slurm.changes) == (1, [])
    assert "would stop, idle: m-htc-4" in err
    assert "stop m-htc-4?" in err
    slurm.types("y\n")
    assert slurm(*scale(3))[0] == 0
    assert slurm.changes == ["scontrol update nodename=m-htc-4 state=POWER_DOWN"]


def test_neither_a_job_nor_a_drain_is_ended(slurm: Living) -> None:
    """0 is wanted, two stay: the exit code says that it is not as wanted."""
    code, out, err = slurm(*scale(0, "--yes"))
    assert (code, "htc: 4 -> 2 nodes" in out) == (1, True)
    assert slurm.changes == ["scontrol update nodename=m-htc-[2,4] state=POWER_DOWN"]
    assert "have jobs: m-htc-1" in err
    slurm.slurm.nodes["m-htc-1"] = ("htc", "MIXED+CLOUD", "")
    code, out, _ = slurm(*scale(0, "--yes"))
    assert (code, "nothing was done" in out, len(slurm.changes)) == (1, True, 1)


def test_a_node_that_is_kept_stays(slurm: Living) -> None:
    slurm.slurm.config["SuspendExcNodes"] = "m-htc-[2,4]:2"
    code, _, err = slurm(*scale(1, "--yes"))
    assert (code, slurm.changes, "are kept" in err) == (1, [], True)


def test_without_power_saving_the_programs_of_azslurm_are_called(slurm: Living) -> None:
    slurm.slurm.config["SuspendTime"] = "INFINITE"
    code, out, _ = slurm(*scale(5, "--print"))
    assert (code, slurm.changes) == (0, [])
    assert out.endswith("scheduler 'sudo -n /opt/azurehpc/slurm/resume_program.sh m-htc-10'\n")


@pytest.mark.parametrize(
    ("number", "partition", "code", "text"),
    [(9, "htc", 1, "7 nodes at most"), (1, "ht", 2, "did you mean 'htc'"), (1, "zzz", 2, "partitions: gpu, htc")],
)
def test_what_cannot_be(slurm: Living, number: int, partition: str, code: int, text: str) -> None:
    found, _, err = slurm(*scale(number, "--yes", partition=partition))
    assert (found, text in err, slurm.changes) == (code, True, []), err


def test_words_that_are_no_number(slurm: Living) -> None:
    assert slurm("scale", "minimal.yaml", "htc", "many")[0] == 2
    slurm.slurm.answers = False
    code, _, err = slurm(*scale(1))
    assert (code, "Slurm does not answer" in err) == (4, True)
