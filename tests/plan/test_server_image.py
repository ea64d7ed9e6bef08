"""Which marketplace image the server gets, and which CycleCloud is said to be in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator import catalog
from generator.files.file import Files
from generator.render import deployment
from tests.bed.plans import plan_from, server_of, slurm_of


def test_every_build_of_the_table_names_its_own_release() -> None:
    """The form of builds is read from what public sources name; one that breaks it must not pass unseen."""
    builds = {row.cyclecloud: row.image_version for row in catalog.releases() if row.image_version}
    assert len(builds) > 5
    assert {release: catalog.release_of_build(build) for release, build in builds.items()} == {
        release: release for release in builds
    }


@pytest.mark.parametrize(
    ("server", "release", "build"),
    [
        ("{}", "8.9.1", "8.9.120260630"),
        ("{release: 8.9.0}", "8.9.0", "8.9.020260513"),
        # A build that the table does not have, of a release that it has without one.
        ("{image_version: 8.9.320260901}", "8.9.3", "8.9.320260901"),
        ("{image_version: 8.9.320260901, release: 8.9.3}", "8.9.3", "8.9.320260901"),
        # A later build of a release of which the table has an earlier one.
        ("{image_version: 8.9.120260715}", "8.9.1", "8.9.120260715"),
        # Newer than the table; ten minor releases are not fewer than nine.
        ("{image_version: 8.10.020261101}", "8.10.0", "8.10.020261101"),
    ],
)
def test_one_line_chooses_any_published_build(server: str, release: str, build: str) -> None:
    plan = plan_from(f"server: {server}")
    server_plan = server_of(plan)
    assert server_plan.release == release
    assert server_plan.image is not None
    assert server_plan.image.version == build
    files: Files = deployment.deployment_files(plan, Path())
    texts = {str(path): file.content.decode() for path, file in files.items() if path.suffix in (".bicep", ".md")}
    assert f"version: '{build}'" in texts["main.bicep"]
    assert f":cyclecloud8-gen2:{build}" in texts["README.md"]
    assert f"CycleCloud {release}" in texts["README.md"]


def test_a_newer_release_keeps_the_versions_that_the_definition_names() -> None:
    plan = plan_from(
        """
        server: {image_version: 8.10.020261101}
        slurm: {project_version: 4.0.12, version: 26.05.1}
        """
    )
    assert (slurm_of(plan).project_version, slurm_of(plan).version) == ("4.0.12", "26.05.1")


@pytest.mark.parametrize(
    ("release", "is_newer"), [("8.10.0", True), ("8.9.30", True), ("8.9.3", False), ("7.99.9", False)]
)
def test_releases_are_compared_as_numbers(release: str, is_newer: bool) -> None:
    assert catalog.is_newer_than_table(release) is is_newer
