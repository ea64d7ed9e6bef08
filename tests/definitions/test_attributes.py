"""Node attributes: what the cluster template writes is what the scripts of the projects read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from generator import catalog, pipeline
from generator.files import assets
from generator.plan.deployment import Plan
from tests.cluster_template.rendered import read
from tests.definitions.build import NAMES, checked

PER_CONTAINER = "cycleforge.blobfuse.<name>"
POLICY = "cycleforge.policy.<n>"


def keys_read() -> set[str]:
    """Attributes that scripts ask for; `<name>` stands for the name of a blob mount, `<n>` for 1, 2 and so on."""
    text = "\n".join(path.read_text() for path in sorted(assets.folder("projects").rglob("*.sh")))
    keys = set(
        re.findall(r"\b(?:cf_attribute(?:_[a-z]+)?|cf_size_[a-z]+|checks_of_size|one_of) (cycleforge\.[a-z_.]+)", text)
    )
    counted = {f"{key}.<n>" for key in re.findall(r'cf_attribute "(cycleforge\.[a-z]+)\.\$\{place\}"', text)}
    return (
        keys | counted | {f"{PER_CONTAINER}.{key}" for key in re.findall(r'attribute_of "\$\{name\}" ([a-z_]+) ', text)}
    )


def keys_written(plan: Plan) -> set[str]:
    """Attributes of ours that some node of the rendered cluster has."""
    keys = {key for node in read(plan).nodes.values() for key in node.configuration if key.startswith("cycleforge.")}
    keys = {re.sub(r"^cycleforge\.policy\.[0-9]+$", POLICY, key) for key in keys}
    return {re.sub(r"^cycleforge\.blobfuse\.[^.]+\.", f"{PER_CONTAINER}.", key) for key in keys}


def keys_documented() -> set[str]:
    text = (assets.folder("projects") / "README.md").read_text()
    return set(re.findall(r"^\| `(cycleforge\.[^`]+)` \|", text, re.MULTILINE))


def test_what_is_documented_is_read_and_what_is_read_is_documented() -> None:
    assert keys_documented() == keys_read()


def test_the_rule_against_misspelt_attributes_knows_them_all() -> None:
    assert catalog.rule_figures().project_attributes.keys == tuple(sorted(keys_read()))


@pytest.mark.parametrize("name", NAMES)
def test_what_a_shipped_definition_writes_is_read(name: str) -> None:
    plan = checked(name).plan
    assert plan is not None
    written = keys_written(plan)
    assert "cycleforge.mounts" in written
    assert written <= keys_read()


@pytest.mark.parametrize(("cloud", "location"), [("public", "southcentralus"), ("usgov", "usgovvirginia")])
def test_what_describes_a_container_is_read(cloud: str, location: str) -> None:
    text = f"""
name: lab
location: {location}
azure: {{cloud: {cloud}}}
storage:
  mounts: [{{path: /blob, type: blob, storage_account: datasets0001, container: data}}]
slurm:
  partitions: [{{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4}}]
"""
    plan = pipeline.check(text.encode(), "lab.yaml", {}, Path()).plan
    assert plan is not None
    written = keys_written(plan)
    assert f"{PER_CONTAINER}.identity_client_id" in written
    assert (f"{PER_CONTAINER}.endpoint" in written) is (cloud == "usgov")
    assert written <= keys_read()
    if cloud == "usgov":
        endpoint = read(plan).configuration("htc", "cycleforge.blobfuse.blob.endpoint")
        assert endpoint == "https://datasets0001.blob.core.usgovcloudapi.net"


def test_health_checks_expect_what_is_writable() -> None:
    """Blob containers come up late, and a read-only mount is none that a check may call a fault."""
    text = b"""
name: lab
location: southcentralus
storage:
  mounts:
    - {path: /data, type: existing, address: 10.0.0.5}
    - {path: /apps, type: existing, address: 10.0.0.5, mount_options: "ro,hard"}
    - {path: /blob, type: blob, storage_account: datasets0001, container: data}
slurm:
  partitions: [{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4}]
"""
    plan = pipeline.check(text, "lab.yaml", {}, Path()).plan
    assert plan is not None
    assert read(plan).configuration("htc", "cycleforge.mounts") == "/sched /shared /data"
