"""What the template says to cyclecloud-slurm is what the version that the server brings reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator import catalog
from generator.plan.deployment import Plan
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read

KEYS = json.loads(Path(__file__).with_name("configuration_keys.json").read_text(encoding="utf-8"))
ROWS = [row for row in catalog.releases() if row.slurm_projects[0].startswith("4.0.") and row.slurm.startswith("25.")]
"""The releases whose cyclecloud-slurm the template is written for."""
FIRST_WITH_PEM = (4, 0, 8)
PARTITIONS = """
slurm:
  healthagent: false
  partitions:
    - {name: htc, vm_size: Standard_NC24ads_A100_v4, max_nodes: 2, mig_profile: 1g.10gb, default: true}
    - {name: two, vm_sizes: [Standard_D64ds_v5, Standard_D32ds_v5], max_nodes: 2}
    - {name: hpc, vm_size: Standard_HB120rs_v3, max_nodes: 2, dampen_memory_percent: 4}
"""
DATABASES = {
    "none": "{}",
    "new": "slurm: {accounting: {type: new}}",
    "existing": "slurm: {accounting: {type: existing, host: db.example.org, user: slurm}}",
}


def plan_of(row: catalog.Release, *changes: str) -> Plan:
    build = row.image_version or f"{row.cyclecloud}20260901"
    return plan_from(PARTITIONS, f"server: {{image_version: {build}}}", *changes)


def read_keys(project: str) -> set[str]:
    is_newer = tuple(map(int, project.split("."))) >= FIRST_WITH_PEM
    return {*KEYS["always"], *KEYS["from_4_0_8" if is_newer else "below_4_0_8"]}


@pytest.mark.parametrize("database", DATABASES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cyclecloud)
def test_each_project_reads_every_key_that_it_is_given(row: catalog.Release, database: str) -> None:
    plan = plan_of(row, DATABASES[database])
    rendered = read(plan)
    assert rendered.findings == ()
    given = {
        key for node in rendered.nodes.values() for key in node.configuration if key.startswith(("slurm.", "munge."))
    }
    assert given == read_keys(slurm_of(plan).project_version)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.cyclecloud)
def test_the_certificate_of_azures_authority_is_there_with_every_project(row: catalog.Release) -> None:
    """Up to 4.0.7 slurmdbd gets one only from an address; later ones bring it."""
    plan = plan_of(row, DATABASES["new"])
    rendered = read(plan)
    url = rendered.configuration("scheduler", "slurm.accounting.certificate_url")
    downloads = "slurm.accounting.certificate_url" in read_keys(slurm_of(plan).project_version)
    assert url == (catalog.mysql().authority.url if downloads else None)
    assert rendered.configuration("scheduler", "slurm.accounting.certificate") is None
    assert ("database-certificate" in [rule.name for rule in plan.egress.rules]) is downloads


def test_the_table_says_of_each_version_what_it_reads() -> None:
    assert len(ROWS) > 5
    for project in catalog.slurm_projects():
        keys = read_keys(project.version)
        assert project.certificate_key in keys, project.version


def test_nothing_is_downloaded_without_accounting() -> None:
    plan = plan_of(next(row for row in ROWS if row.cyclecloud == "8.8.3"))
    assert "database-certificate" not in [rule.name for rule in plan.egress.rules]
