"""The versions of training: complete pins, and what is known of a driver and a container."""

from __future__ import annotations

import re

import pytest

from generator import catalog
from generator.recipes import recipe, recipe_names
from generator.recipes.versions import compatibility, container, driver_of

HPC = "microsoft-dsvm:ubuntu-hpc:2204"
PYTORCH = "docker://nvcr.io#nvidia/pytorch:25.03-py3"


def test_a_framework_is_a_commit_and_a_container_names_frameworks_that_are_there() -> None:
    found = catalog.training_versions()
    assert all(re.fullmatch(r"[0-9a-f]{40}", row.commit) for row in found.frameworks.values())
    assert all(set(row.frameworks) <= set(found.frameworks) for row in found.containers.values())
    assert all(row.cuda.split(".")[0] in found.cuda_drivers.rows for row in found.containers.values())
    for rows in found.image_drivers.rows.values():
        assert [row.since for row in rows] == sorted({row.since for row in rows})


@pytest.mark.parametrize("name", recipe_names("training"))
def test_a_recipe_has_an_image_of_the_catalogue(name: str) -> None:
    found = recipe(name)
    assert found is not None
    assert container(dict(found.default_settings)["CONTAINER"]) is not None


@pytest.mark.parametrize(
    ("image", "arch", "driver"),
    [
        (f"{HPC}:22.04.2024102301", "x86_64", "560.35.03"),
        (f"{HPC}:22.04.2024102201", "x86_64", "550.90.07"),
        (f"{HPC}:22.04.2024010101", "x86_64", None),
        (f"{HPC}:22.04.2030010101", "x86_64", "580.126.16"),
        (f"{HPC}:latest", "x86_64", "580.126.16"),
        (f"{HPC}:22.04.1", "x86_64", None),
        ("cycle.image.ubuntu24", "x86_64", "580.173.02"),
        ("cycle.image.ubuntu24", "aarch64", "580.126.20"),
        ("cycle.image.ubuntu20", "x86_64", None),
        ("microsoft-dsvm:ubuntu-hpc:2204-rocm:latest", "x86_64", None),
        ("/subscriptions/s/images/mine", "x86_64", None),
    ],
)
def test_the_driver_of_an_image_is_that_of_its_day(image: str, arch: str, driver: str | None) -> None:
    assert driver_of(image, arch) == driver


def test_both_ways_to_write_an_image_and_a_digest_are_the_same_image() -> None:
    digest = "@sha256:" + "a" * 64
    for reference in (PYTORCH, PYTORCH.replace("#", "/"), PYTORCH + digest):
        assert compatibility(reference, f"{HPC}:latest", "x86_64").verdict == "fits"
    assert container(PYTORCH.replace("25.03", "25.02")) is None


def test_forward_compatibility_counts_the_branches_that_nvidia_names() -> None:
    newer = PYTORCH.replace("25.03", "25.12")
    verdicts = {
        day: compatibility(newer, f"{HPC}:22.04.{day}01", "x86_64").verdict
        for day in ("20240917", "20241023", "20250515", "20251027")
    }
    assert list(verdicts.values()) == ["fits", "too old", "fits", "fits"]
