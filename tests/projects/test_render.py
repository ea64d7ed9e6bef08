"""`projects/` of the output folder."""

from __future__ import annotations

import gzip
from pathlib import Path, PurePosixPath

import pytest
from msgspec import structs

from generator.errors import CannotRead
from generator.plan.deployment import Plan
from generator.plan.projects import ProjectPlan
from generator.render import projects
from tests.bed import parts

NAMES = ("misc_ubuntu", "misc_ndv4", "pyxis_enroot", "slurm_nhc", "slurm_policy")


def shipped(*names: str) -> Plan:
    source = PurePosixPath("projects")
    return structs.replace(
        parts.minimal(),
        projects=tuple(
            ProjectPlan(name, "1.0.0", source / name, False, ("default",), ("htc",), "0" * 64) for name in names
        ),
    )


def test_every_project_of_the_plan_and_no_other() -> None:
    files = projects.render(shipped("misc_ubuntu", "slurm_nhc"))
    assert {path.parts[:2] for path in files} == {("projects", "misc_ubuntu"), ("projects", "slurm_nhc")}
    assert PurePosixPath("projects/misc_ubuntu/project.ini") in files


def test_scripts_are_executable_and_data_is_not() -> None:
    for path, file in projects.render(shipped(*NAMES)).items():
        assert file.executable == (path.suffix == ".sh"), path


def test_rendering_twice_gives_the_same_bytes_whatever_the_definition() -> None:
    one = projects.render(shipped(*NAMES))
    other = structs.replace(shipped(*NAMES), name="other", location="westeurope")
    assert projects.render(other) == one
    assert list(projects.render(other)) == list(one)


def test_all_five_fit_the_deployment_with_room_to_spare() -> None:
    """The channel carries 1.25 MiB compressed; the projects without blobs stay below a sixth of it."""
    content = b"".join(file.content for file in projects.render(shipped(*NAMES)).values())
    assert len(gzip.compress(content)) < 1280 * 1024 / 6


def test_a_local_project_is_read_beside_the_definition(tmp_path: Path) -> None:
    scripts = tmp_path / "mine/specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (tmp_path / "mine/project.ini").write_text("[project]\nname = mine\nversion = 0.1.0\n")
    (scripts / "10-x.sh").write_text("#!/bin/sh\n")
    local = ProjectPlan("mine", "0.1.0", PurePosixPath("mine"), True, ("default",), ("htc",), "0" * 64)
    plan = structs.replace(parts.minimal(), projects=(local,))
    assert [path.as_posix() for path in projects.render(plan, tmp_path)] == [
        "projects/mine/project.ini", "projects/mine/specs/default/cluster-init/scripts/10-x.sh",
    ]  # fmt: skip
    with pytest.raises(CannotRead, match="'mine' is relative to the definition"):
        projects.render(plan)
