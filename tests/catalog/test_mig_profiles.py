"""MIG profiles of the catalogue: what a GPU cannot hold is a slip, and a GPU is found by its model and memory."""

from __future__ import annotations

import re

import pytest

from generator import catalog

GPUS = [("A100", 40), ("A100", 80), ("A30", 24), ("H100", 80), ("H100 NVL", 94), ("H200", 141)]


@pytest.mark.parametrize(("model", "memory_gb"), GPUS)
def test_the_instances_of_a_profile_fit_into_the_gpu(model: str, memory_gb: int) -> None:
    profiles = catalog.mig_profiles(model, memory_gb)
    parts = 4 if model == "A30" else 7
    for name, count in profiles.items():
        match = re.fullmatch(r"([1-7])g\.(\d+)gb", name)
        assert match is not None
        computing, memory = int(match[1]), int(match[2])
        assert computing * count <= parts
        # names round the memory up
        assert memory * count <= memory_gb * 1.05, name
    assert profiles[f"{parts}g.{memory_gb}gb"] == 1
    assert max(profiles.values()) == parts


@pytest.mark.parametrize(
    ("model", "memory_gb", "found"),
    [
        ("A100 SXM4", 80, True),
        ("a100", 40, True),
        ("A100X", 80, False),
        ("A100", 48, False),
        # the GPU of confidential VMs has as much memory as the NVL, and no MIG there
        ("H100", 94, False),
        ("V100", 32, False),
        (None, 80, False),
        ("A100", None, False),
    ],
)
def test_a_gpu_is_found_by_model_and_memory(model: str | None, memory_gb: int | None, found: bool) -> None:
    assert bool(catalog.mig_profiles(model, memory_gb)) == found
