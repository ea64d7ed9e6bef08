"""Every figure of the catalogue is read: what changes nothing anywhere does not belong there."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from dataclasses import fields
from functools import cache
from typing import Any

import pytest

from generator.blobs.pins import Blob
from generator.catalog.files import FOLDER
from tests.catalog.reads import CLASSES, is_leaf, leaves

PROVENANCE = re.compile(r"(?:\w+_)?(?:source|note)|unit|meaning")
"""Where a figure comes from and what it means are beside it for readers; `cycleforge list sources` has the keys.

The figures of VM sizes reach nodes and jobs with their sources; elsewhere a source need not be read.
"""
TABLES = (
    "clouds.json/clouds",
    "egress.json/recipe_hosts/rows",
    "egress.json/rules",
    "egress.json/rules/*/by_cloud",
    "file_systems.json/amlfs/tiers",
    "file_systems.json/amlfs_subnet_prefix/rows",
    "file_systems.json/netapp/service_levels",
    "file_systems.json/nfs/disk/rows",
    "health_tests.json/environments",
    "health_tests.json/environments/*/variables",
    "images.json/hpc_marketplace",
    "images.json/node_images",
    "limits.json/owned_slurm_keys/keys",
    "limits.json/reserved_mount_points/paths",
    "mig.json/gpus",
    "mig.json/gpus/*/profiles",
    "models.json/models",
    "meters.json/disk_tiers/rows",
    "mpi.json/latency",
    "nccl.json/environments/*/variables",
    "nccl.json/environments",
    "nccl.json/typical",
    "node_attributes.json/attributes",
    "node_attributes.json/set_by_template/keys",
    "node_attributes.json/volume_attributes",
    "node_attributes.json/volume_set_by_template/keys",
    "node_benchmarks.json/floors",
    "node_benchmarks.json/typical/sizes",
    "other_vm_sizes.json/guest_memory",
    "other_vm_sizes.json/series",
    "other_vm_sizes.json/series/*/sizes",
    "regions.json/regions",
    "resource_names.json/names",
    "rule_figures.json/blob_dns_suffix/values",
    "rule_figures.json/built_in_projects/values",
    "rule_figures.json/health_values/keys",
    "rule_figures.json/monitoring_hosts/values",
    "rule_figures.json/owned_attributes/keys",
    "rule_figures.json/reserved_partition_names/values",
    "rule_figures.json/slurm_keys_with_own_setting/keys",
    "slurm_conf.json/lists/keys",
    "mysql.json/compute_sizes/sizes",
    "mysql.json/storage/max_by_tier",
    "streams.json",
    "support.json/mysql/versions",
    "support.json/windows_11/releases",
    "throughput.json/peak_tflops/by_gpu",
    "throughput.json/published",
    "training.json/data_sets",
    "training.json/data_sets/*/stages",
    "training.json/images",
    "training.json/storage",
    "training_versions.json/containers",
    "training_versions.json/cuda_drivers/rows",
    "training_versions.json/frameworks",
    "training_versions.json/image_drivers/rows",
    "vm_sizes",
    "vm_sizes/*/nccl",
    "vm_sizes/*/nccl_env/vars",
    "xids.json/generations/models",
    "xids.json/recovery_actions",
    "xids.json/xids",
)
"""Mappings of rows that are looked up by name: a column counts as read when it is read of one row."""


@cache
def rows_of(start: str) -> list[re.Pattern[str]]:
    """Of each table of a file, or of the files of a folder, the paths of its rows."""
    tables = [table for table in TABLES if table.partition("/")[0] == start]
    return [re.compile(rf"^({table.replace('*', '[^/]+').replace('.', r'[.]')})/(?:/?[^/]+)") for table in tables]


def column(path: str) -> str:
    """The path with `*` for the row of a table."""
    for row in rows_of(path.partition("/")[0]):
        path = row.sub(r"\1/*", path)
    return path


@cache
def reads(*changed: str) -> dict[str, Any]:
    """What `tests.catalog.reads` prints; with changes it ends as soon as one of them shows."""
    command = [sys.executable, "-m", "tests.catalog.reads", *changed]
    usual = json.dumps(reads()["digests"] if changed else [])
    found = subprocess.run(
        command, input=usual, capture_output=True, text=True, check=True, cwd=FOLDER.parent.parent, timeout=300
    )
    result: dict[str, Any] = json.loads(found.stdout)
    return result


def test_every_leaf_is_read() -> None:
    seen = {column(path) for path in reads()["leaves"]}
    unread = []
    for file in sorted(FOLDER.rglob("*.json")):
        name = file.relative_to(FOLDER).as_posix()
        for path, _ in leaves(json.loads(file.read_text(encoding="utf-8")), name):
            if column(path) not in seen and not PROVENANCE.fullmatch(path.rsplit("/", 1)[1]):
                unread.append(path)
    assert unread == []


def test_every_field_is_asked_for() -> None:
    asked, sources = set(reads()["fields"]), FOLDER.parent.rglob("*.py")
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sources if path.name != "pins.py"]
    anywhere = {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    # Downloading blobs is not part of what runs here; its own tests have what it does with each field.
    unread = [
        f"{each.__name__}.{field.name}"
        for each in CLASSES
        for field in fields(each)
        if (field.name not in anywhere if each is Blob else f"{each.__name__}.{field.name}" not in asked)
    ]
    assert unread == []


@pytest.mark.parametrize(
    "path",
    [
        "limits.json/scale_set_with_infiniband/value",
        "mount_options.json/lustre/value",
        "releases.json/operating_systems/since-4.0.7/8/slurm_override",
        "mig.json/gpus/A100 80 GB/profiles/1g.10gb",
        "vm_sizes/Standard_ND96amsr_A100_v4.json/health/memory/expected_kib",
    ],
)
def test_what_is_read_shows(path: str) -> None:
    assert reads(path)["digests"] != reads()["digests"]


def test_results_are_the_same_twice() -> None:
    assert reads("no.json/such/figure")["digests"] == reads()["digests"]
    assert len(reads()["digests"]) > 100


def test_an_unread_leaf_would_be_found() -> None:
    assert column("regions.json/regions/westus/zones") == "regions.json/regions/*/zones"
    assert column("limits.json/reserved_mount_points/paths//bin") == "limits.json/reserved_mount_points/paths/*"
    assert "regions.json/regions/*/display_name" not in {column(path) for path in reads()["leaves"]}
    assert is_leaf(["a", 1])
    assert not is_leaf([{"a": 1}])
