"""The JSON Schema for editors says what the model says; what is written from the model is up to date."""

from __future__ import annotations

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from generator.definition.pages.schema import cost_of, json_schema
from generator.definition.pages.starter import presets, starter
from generator.files import assets
from generator.references import documents
from tests.bed.yaml_data import yaml_data

DEFINITIONS = sorted(assets.folder("cluster_defs").glob("*.yaml"))


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(json_schema())
    return Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.stem)
def test_shipped_definitions_fit_the_schema_and_name_it(path: Path, validator: Draft202012Validator) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# yaml-language-server: $schema=definition.schema.json\n")
    assert [error.message for error in validator.iter_errors(yaml_data(text))] == []


@pytest.mark.parametrize("preset", presets())
def test_starters_fit_the_schema(preset: str, validator: Draft202012Validator) -> None:
    text = starter("team-a", preset)
    assert yaml_data(text)["name"] == "team-a"
    assert [error.message for error in validator.iter_errors(yaml_data(text))] == []


def test_editors_accept_variables_where_numbers_stand(validator: Draft202012Validator) -> None:
    partition = {"name": "a", "vm_size": "b", "max_nodes": "${NODES:-2}"}
    assert list(validator.iter_errors({"name": "x", "location": "eastus", "slurm": {"partitions": [partition]}})) == []


@pytest.mark.parametrize("name", documents())
def test_what_is_written_from_the_model_is_up_to_date(name: str) -> None:
    assert (assets.root() / name).read_text(encoding="utf-8") == documents()[name](), "run: make accept"


@pytest.mark.parametrize(
    ("path", "cost"),
    [
        (("definition", "name"), "recreate"),
        (("definition", "slurm", "partitions", 0, "max_nodes"), "in place"),
        (("definition", "slurm", "partitions", 0, "vm_size"), "node restart"),
        (("definition", "storage", "home", "service_level"), "recreate"),
        (("definition", "storage", "mounts", 0, "tier"), "recreate"),
        (("definition", "tags", "owner"), "in place"),
        (("derived", "projects", 0, "version"), "node restart"),
        (("derived", "projects", 0, "roles"), "in place"),
        (("derived", "network", "subnets", 2), "in place"),
        (("derived", "network", "subnets", 2, "prefix"), "recreate"),
        (("derived", "slurm", "version"), "recreate"),
        (("derived", "slurm", "node_arrays", 0, "attributes", "cycleforge.vm_size.quick"), "node restart"),
        (("derived", "home", "size_gib"), "in place"),
    ],
    ids=str,
)
def test_the_cost_of_a_change(path: tuple[str | int, ...], cost: str) -> None:
    assert cost_of(path) == cost


@pytest.mark.parametrize(("kind", "cost"), [("anf", "in place"), ("amlfs", "recreate")])
def test_the_kind_of_a_mount_decides_what_its_size_costs(kind: str, cost: str) -> None:
    effective = {"definition": {"storage": {"mounts": [{"path": "/data", "type": kind, "size_tib": 8}]}}}
    assert cost_of(("definition", "storage", "mounts", 0, "size_tib"), effective) == cost


@pytest.mark.parametrize("preset", ["reference", "hpc-lab"])
def test_a_copy_shares_no_resource_name_with_its_preset(preset: str) -> None:
    content = yaml_data(starter("team-a", preset))
    assert content["azure"]["prefix"] in ("team-a", "${LAB_PREFIX:-team-a}")
    assert "reference" not in str(content["azure"])
    if preset == "reference":
        assert content["azure"]["resource_group"] == "team-a-rg"
        assert content["slurm"]["cluster_name"] == "team-a"
        # Its name would be a host name of Azure, so it is derived.
        assert "server_name" not in content["slurm"]["accounting"]
