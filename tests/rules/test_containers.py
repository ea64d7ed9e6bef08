"""Containers on EL 9, which the Slurm project leaves half set up: our project makes them run."""

from __future__ import annotations

import pytest

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
