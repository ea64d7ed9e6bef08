"""A definition turns off healthagent, slurm_nhc, or none of them."""

from __future__ import annotations

import pytest

from tests.bed.plans import plan_from
from tests.cluster_template.rendered import read

GPU = "slurm: {{partitions: [{{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2}}]{keys}}}"
HEALTHAGENT, OURS = "slurm.enable_healthchecks", "cycleforge.health.enabled"


@pytest.mark.parametrize(
    ("keys", "healthagent", "ours"),
    [
        ("", True, None),
        (", healthagent: false", False, None),
        (", health_checks: false", False, None),
        (", slurm_nhc: false", True, False),
        (", slurm_nhc: false, healthagent: false", False, False),
    ],
)
def test_each_has_a_key_of_its_own(keys: str, healthagent: bool, ours: bool | None) -> None:
    template = read(plan_from(GPU.format(keys=keys)))
    assert template.configuration("gpu", HEALTHAGENT) is healthagent
    for role in ("gpu", "scheduler"):
        assert template.configuration(role, OURS) is ours


def test_without_slurm_nhc_nothing_keeps_drained_nodes() -> None:
    slurm = plan_from(GPU.format(keys=", slurm_nhc: false")).slurm
    assert slurm is not None
    assert slurm.hand_back_h is None
    assert not any("SuspendExcStates" in line for line in slurm.additional_config)


def test_what_a_role_writes_itself_wins() -> None:
    text = GPU.format(keys=", slurm_nhc: false").replace(
        "max_nodes: 2", "max_nodes: 2, configuration: {" + OURS + ": true}"
    )
    assert read(plan_from(text)).configuration("gpu", OURS) is True
