"""Containers: EL 9, on which our project makes them run, and images and mounts in every setting that reaches a job."""

from __future__ import annotations

import pytest

from generator.recipes import recipe, recipe_names
from generator.rules.containers import IMAGES, MOUNTS
from tests.prove.test_partitions import checked
from tests.rules.annotations import findings_of

TEXT = """
name: case
location: southcentralus
jobs:
  training: [{{recipe: mpt, partition: gpu}}]
slurm:
  partitions:
    - {{name: gpu, vm_size: Standard_ND96asr_v4, max_nodes: 2, image: almalinux9{projects}}}
"""


@pytest.mark.parametrize(
    ("projects", "rules"),
    [
        ("", set()),
        (", extra_projects: [pyxis_enroot]", set()),
        (", projects: [misc_ubuntu, 'pyxis_enroot:default']", set()),
        (", projects: [misc_ubuntu]", {"E1608", "W0802"}),
        (", projects: []", {"E1608", "W0802"}),
    ],
)
def test_el9_runs_containers_where_the_project_is(projects: str, rules: set[str]) -> None:
    found = {finding.rule_id for finding in findings_of(TEXT.format(projects=projects))}
    assert found & {"E0801", "W0802", "E1608"} == rules


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
