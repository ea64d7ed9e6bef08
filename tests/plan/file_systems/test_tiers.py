"""The tiers of Managed Lustre side by side, as `cycleforge plan` prints them."""

from __future__ import annotations

from generator.cli.plan import plan_text
from generator.plan.file_systems.base import Tier
from tests.bed.parts import lustre, netapp_home
from tests.bed.plans import plan_from

TRAINING = """
network: {address_space: 10.50.0.0/20}
storage: {mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]}
slurm:
  partitions:
    - {name: hpc, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16}
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
jobs: {training: [{recipe: gpt3-175b, nodes: 16}, {recipe: opt-175b, nodes: 8, settings: {MODEL: opt-30b}}]}
"""


def test_each_tier_has_the_size_that_holds_what_was_asked_for() -> None:
    assert lustre(size_gib=100 * 1024, tier=125).tiers == (
        Tier(40, 48, 144, 5.76, is_chosen=False),
        Tier(125, 16, 112, 14.0, is_chosen=True),
        Tier(250, 8, 104, 26.0, is_chosen=False),
        Tier(500, 4, 100, 50.0, is_chosen=False),
    )


def test_a_tier_that_ends_below_has_no_size() -> None:
    sizes = {tier.mb_per_s_per_tib: tier.size_tib for tier in lustre(size_gib=2056 * 1024, tier=125).tiers}
    assert sizes == {40: 2064, 125: 2064, 250: None, 500: None}
    assert netapp_home().tiers == ()


def test_the_plan_says_how_long_a_checkpoint_takes_in_each() -> None:
    plan = plan_from(TRAINING)
    text = plan_text(plan)
    table = text[text.index("tiers of Managed Lustre for /data\n") :].split("\n\n")[0].splitlines()
    writers = [job for job in plan.jobs if job.checkpoint is not None and job.checkpoint.is_written]
    assert writers
    for job in writers:
        assert f"one checkpoint of {job.name}" in table[1]
    assert len(table) == 2 + 4
    (chosen,) = (line for line in table if line.startswith("  chosen"))
    assert chosen.split()[1:6] == ["250", "8", "TiB", "128", "TiB"]
    first = writers[0].checkpoint
    assert first is not None
    minutes = first.checkpoint_bytes / 32.0 / 1e9 / 60
    assert f"{minutes:.1f} min" in chosen
    assert "tiers of" not in plan_text(plan_from())
