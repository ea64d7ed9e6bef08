"""What training keeps on a file system, against figures that someone published.

AI: Azure/ai-infrastructure-on-azure @ a01b073; LF: mosaicml/llm-foundry @ 8c8dd48. Where a published table takes GiB
for GB, the test holds both values, and ours is the one with real units.
"""

from __future__ import annotations

import pytest

from generator.cli.plan import plan_text
from generator.files import assets
from generator.recipes import models
from generator.recipes.checkpoints import CheckpointPlan, checkpoint
from tests.bed.parts import lustre
from tests.bed.plans import plan_from

TRAINING = """
storage:
  mounts:
    - {path: /data, type: amlfs, tier: 500, size_tib: 16}
slurm:
  partitions:
    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16}
jobs:
  training:
    - {recipe: mpt, name: mpt-30b, nodes: 16}
    - {recipe: gpt3-175b, name: checks, nodes: 2, settings: {MODEL: gpt3-857m, DATA: mock}}
    - {recipe: opt-175b, nodes: 16}
"""
GPT3, MPT_30B, MPT_70B = "gpt3-175b", "mpt-30b", "mpt-70b"


def checkpoint_of(name: str, kept: int = 1, gb_per_s: float | None = None) -> CheckpointPlan:
    shape = models.model(name)
    assert shape is not None
    return checkpoint(shape, kept, None, gb_per_s)


@pytest.mark.parametrize(
    ("name", "published_gib"),
    [(MPT_30B, 336), (MPT_70B, 725), (GPT3, 2.3 * 1024)],  # AI, READMEs of LLM Foundry and Megatron-LM
)
def test_checkpoints_have_their_published_sizes(name: str, published_gib: float) -> None:
    assert checkpoint_of(name).checkpoint_bytes / 2**30 == pytest.approx(published_gib, rel=0.04)


@pytest.mark.parametrize(
    ("tier", "size_tib", "gb_per_s", "published_minutes", "minutes"),
    # AI, README of Megatron-LM: minutes of a checkpoint of 2.3 TiB; it divides GiB by GB/s.
    [(40, 480, 19.2, 2.04, 2.20), (125, 512, 64, 0.61, 0.66), (250, 512, 128, 0.31, 0.33), (500, 512, 256, 0.15, 0.16)],
)
def test_the_published_table_of_tiers(
    tier: int, size_tib: int, gb_per_s: float, published_minutes: float, minutes: float
) -> None:
    found = lustre(size_gib=size_tib * 1024, tier=tier)
    assert found.bandwidth_gb_per_s == pytest.approx(gb_per_s)
    assert 2.3 * 1024 / gb_per_s / 60 == pytest.approx(published_minutes, abs=0.01)
    assert 2.3 * 1024**4 / 1e9 / gb_per_s / 60 == pytest.approx(minutes, abs=0.01)
    seconds = checkpoint_of(GPT3, 1, gb_per_s).seconds_per_checkpoint
    # 14 bytes a parameter are 2.22 TiB, which the README rounds up.
    assert seconds is not None
    assert seconds / 60 == pytest.approx(minutes * 2.2233 / 2.3, abs=0.01)


@pytest.mark.parametrize(("name", "tib"), [(MPT_30B, 3.3), (MPT_70B, 7.1)])
def test_ten_checkpoints_of_mpt_and_the_one_being_written(name: str, tib: float) -> None:
    """LF keeps 10; AI: 3.3 and 7.1 TiB."""
    found = checkpoint_of(name, 10)
    assert found.needed_bytes / 2**40 == pytest.approx(tib, abs=0.05)
    assert found.peak_bytes == 11 * found.checkpoint_bytes


def test_one_file_is_slower_than_the_file_system() -> None:
    """AI: one file reaches about 10 GB/s."""
    shape = models.model(MPT_70B)
    assert shape is not None
    seconds = [checkpoint(shape, 1, None, 128, file_gb_per_s=rate).seconds_per_checkpoint for rate in (None, 10)]
    assert seconds == [pytest.approx(778.3 / 128, rel=1e-3), pytest.approx(77.83, rel=1e-3)]


def test_the_ledger_of_a_file_system() -> None:
    plan = plan_from(TRAINING)
    (ledger,) = plan.ledgers
    rows = {(entry.job, entry.what): entry.needed_bytes for entry in ledger.rows}
    assert (ledger.path, ledger.capacity_bytes) == ("/data", 16 * 2**40)
    # AI: images of 21 and 23 GiB.
    assert rows["mpt-30b", "image"] == 21 * 2**30
    assert rows["checks", "image"] == 23 * 2**30
    # LF: C4, 364,868,892 documents x 2163 characters / 4 x 4 bytes.
    assert rows["mpt-30b", "data: tokens"] == pytest.approx(364868892 * 2163, rel=1e-3)
    jobs = {job.name: job for job in plan.jobs if job.kind == "training"}
    written = jobs["mpt-30b"].checkpoint
    assert written is not None
    assert rows["mpt-30b", "checkpoints"] == 11 * written.checkpoint_bytes
    assert {entry.how for entry in ledger.rows if (entry.job, entry.what) == ("mpt-30b", "checkpoints")} == {
        "(10 kept + 1 being written) x 360 GB"
    }
    # The image is there once for all jobs, synthetic data takes nothing, and this job writes no checkpoint.
    assert {what for job, what in rows if job == "opt-175b"} == set()
    assert {what for job, what in rows if job == "checks"} == {"image", "checkpoints: gpt3-375m", "checkpoints"}
    assert ledger.needed_bytes == sum(rows.values())
    text = plan_text(plan)
    table = text[text.index("what training keeps on /data\n") :].split("\n\n")[0]
    assert f"{ledger.needed_bytes / 1e9:,.1f}" in table
    assert f"of 17,592 GB, {ledger.needed_bytes / (16 * 2**40):.0%}" in table


def test_what_nobody_has_measured_is_a_row_without_a_size() -> None:
    (ledger,) = plan_from(TRAINING.replace("DATA: mock", "DATA: files, DATA_FILES: /data/own")).ledgers
    (row,) = (entry for entry in ledger.rows if (entry.job, entry.what) == ("checks", "data"))
    assert (row.needed_bytes, row.how) == (0, "files: its size is not known, and not counted")


def test_the_stages_of_slimpajama() -> None:
    """The card: 895 GB compressed; a sample of it grew from 1.5 GB to 4.2 in chunks and 2.0 of tokens."""
    plan = plan_from(TRAINING.replace(", DATA: mock", ""))
    entries = [entry for entry in plan.ledgers[0].rows if entry.job == "checks" and entry.what.startswith("data: ")]
    stages = {entry.what.removeprefix("data: "): entry.needed_bytes for entry in entries}
    grown = {"compressed": 1.5, "concatenated": 4.2, "tokens": 2.0}
    assert stages == {stage: pytest.approx(895e9 * size / 1.5, rel=1e-3) for stage, size in grown.items()}
    assert sum(stages.values()) / 1e12 == pytest.approx(4.6, abs=0.01)
    assert sum(stages.values()) / 2**40 == pytest.approx(4.18, abs=0.01)
    readme = (assets.folder("recipes") / "gpt3-175b/README.md").read_text(encoding="utf-8")
    assert "all stages together need about 4.6 TB (4.2 TiB)" in readme
