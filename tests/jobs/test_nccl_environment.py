"""Which variables of NCCL a job exports: CollNet and SHARP reach training only where it asks for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from generator import catalog
from tests.bed import parts
from tests.jobs.running import JobFolder, job, job_folder, plan_with

SHOW = ". ./library.sh; load_settings; load_nccl_env; env; echo names=${nccl_names[*]}"


def exported(folder: JobFolder, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", SHOW],
        cwd=folder.path,
        env=folder.environment | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def variables(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)


@pytest.mark.parametrize("recipe", ["mpt", "opt-175b", "gpt3-175b"])
def test_training_has_sharp_only_if_it_asks(recipe: str, tmp_path: Path) -> None:
    array = parts.node_array("hpc", catalog.vm_size("Standard_ND96isr_H100_v5"), max_nodes=16)
    folder = job_folder(tmp_path, plan_with(job(recipe, 16), array))
    usual, asked = (variables(exported(folder, SET_USE_SHARP=value)) for value in ("0", "1"))
    assert usual["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
    assert usual["NCCL_P2P_NET_CHUNKSIZE"] == "524288"
    assert not {name for name in usual if name.startswith("SHARP_") or "COLLNET" in name}
    assert (asked["NCCL_COLLNET_ENABLE"], asked["SHARP_COLL_ENABLE_SAT"]) == ("1", "1")
    assert asked["NCCL_P2P_NET_CHUNKSIZE"] == "524288"
    assert set(asked["names"].split()) - set(usual["names"].split()) == {
        name for name in asked if name.startswith("SHARP_") or "COLLNET" in name
    }


def test_a_size_without_sharp_refuses_it(tmp_path: Path) -> None:
    folder = job_folder(tmp_path, plan_with(job("mpt")))
    assert exported(folder).returncode == 0
    done = exported(folder, SET_USE_SHARP="1")
    assert done.returncode == 2
    assert "no SHARP variables are known for Standard_ND96amsr_A100_v4" in done.stderr
