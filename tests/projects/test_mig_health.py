"""Health checks of a node whose GPUs are divided into MIG slices."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.plan.mig import MigPlan
from generator.plan.size_facts import check_attributes
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import A100
from tests.projects.conftest import MakeNode

SLICES = MigPlan(profile="1g.10gb", per_gpu=7, slices=56, devices="/dev/cycleforge/mig[0-55]")


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    made = healthy(make_node("slurm_nhc"))
    for key, value in check_attributes((catalog.vm_size(A100),), SLICES).items():
        made.attribute(key, value)
    made.ok("20-health.sh")
    return made


def divided(node: Healthy, *profiles: str, code: int = 0) -> None:
    """nvidia-smi lists these slices on every GPU."""
    lines = "\\n".join(
        f"GPU {gpu}: NVIDIA A100-SXM4-80GB (UUID: GPU-{gpu})\\n"
        + "\\n".join(
            f"  MIG {name}     Device  {place}: (UUID: MIG-{gpu}{place})" for place, name in enumerate(profiles)
        )
        for gpu in range(8)
    )
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    node.fake("nvidia-smi", f"if [[ \"$*\" == -L ]]; then printf '{lines}\\n'; exit {code}; fi\n{answers}", light=True)


@pytest.mark.parametrize(
    ("profiles", "code", "verdict"),
    [
        (["1g.10gb"] * 7, 0, "pass"),
        (["1g.10gb"] * 6, 0, "fail"),
        (["1g.10gb"] * 5 + ["2g.20gb"], 0, "fail"),
        ([], 0, "fail"),
        (["1g.10gb"] * 7, 9, "fail"),
        (["1g.10gb"] * 7, 3, "not_measured"),
    ],
)
def test_every_slice_is_expected(node: Healthy, profiles: list[str], code: int, verdict: str) -> None:
    node.only("mig_slices")
    divided(node, *profiles, code=code)
    node.quick()
    assert node.verdict("mig_slices") == verdict
    assert ("mig_slices" in node.reason()) == (verdict == "fail")


def test_whole_gpus_are_counted_as_before(node: Healthy) -> None:
    node.only("gpu_count")
    divided(node, *["1g.10gb"] * 7)
    node.set_gpus(node.rows[:7])
    node.quick()
    assert node.verdict("gpu_count") == "fail"


def test_a_deep_run_makes_no_check_that_needs_whole_gpus(node: Healthy) -> None:
    """It would never be measured, and `unmeasured: drain` would take every such node out for good."""
    divided(node, *["1g.10gb"] * 7)
    node.attribute("cycleforge.health.unmeasured", "drain")
    node.attribute("cycleforge.health.deep_s", "600")
    node.ok("20-health.sh")
    checks = [
        line.split()[3] for line in node.read("etc/cycleforge/nhc/deep.conf").splitlines() if " cycleforge " in line
    ]
    assert checks == ["boot_services", "image_nhc"], "the second is off unless the definition asks for it"
    code, output = node.health("deep", "now")
    assert code == 0, output
    assert (node.result("deep")["verdict"], node.reason()) == ("pass", "")
