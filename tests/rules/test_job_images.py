"""Images and mounts in the settings of jobs: all that name one are looked at, in each way that reaches a job."""

from __future__ import annotations

import pytest

from generator.recipes import recipe, recipe_names
from generator.rules.containers import IMAGES, MOUNTS
from tests.prove.test_partitions import checked

SLURM = "slurm: {partitions: [{name: hpc, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4, default: true}]}\n"
NO_IMAGE = ("_BINARY", "_DIGEST", "_MOUNTS")


def test_every_setting_of_a_recipe_that_names_an_image_is_known() -> None:
    for name in recipe_names():
        found = recipe(name)
        assert found is not None
        for setting, value in found.default_settings:
            if "CONTAINER" in setting or "IMAGE" in setting:
                assert setting in (*IMAGES, MOUNTS) or setting.endswith(NO_IMAGE), (name, setting)
            elif "docker://" in str(value) or str(value).lower().endswith((".sqsh", ".squashfs")):
                pytest.fail(f"{name}: {setting} names an image")


@pytest.mark.parametrize(
    ("value", "is_right"),
    [
        ("nccl.sqsh", False),
        ("NCCL.SQSH", False),
        ("images/nccl.squashfs", False),
        ("./nccl.sqsh", False),
        ("../nccl.sqsh", False),
        ("~/nccl.sqsh", False),
        ("$HOME/nccl.sqsh", False),
        ("file:///data/nccl.sqsh", False),
        (" nccl.sqsh ", False),
        ("/data/images/nccl.sqsh", True),
        ("/data/images/NCCL.SQSH", True),
        ("nvcr.io#nvidia/pytorch:25.03-py3", True),
        ("docker://ubuntu:24.04", True),
        ("docker://registry.example#team/tool.sqsh", True),
        ("sqsh", True),
    ],
)
def test_a_squash_file_has_its_whole_path(value: str, is_right: bool) -> None:
    for jobs in (
        f"validation: [{{recipe: nccl-allreduce, settings: {{CONTAINER: '{value}'}}}}]",
        f"add_validation: [{{recipe: start-times, settings: {{IMAGE: '{value}'}}}}]",
        f"training: [{{recipe: own, settings: {{CONTAINER: '{value}', SCRIPT: /data/train.py}}}}]",
    ):
        assert ("E1612" not in checked(SLURM, f"jobs: {{{jobs}}}")) is is_right, jobs
