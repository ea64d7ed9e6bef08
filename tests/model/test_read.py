"""Schema problems: every kind once, with its place, all in one run, and a repaired definition for the rules."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from generator.definition.model.fields import plain_values
from generator.definition.model.storage import BlobMount, BuiltinNfs
from generator.definition.pages.schema import json_schema
from generator.definition.read import Reading, read_model
from generator.definition.text.source import load
from tests.bed.yaml_data import yaml_data
from tests.rules.test_good import EVERYTHING, EXISTING, PUBLIC

GOOD = """\
name: x
location: eastus
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D2as_v5, max_nodes: 2}
"""


def reading(text: str, **env: str) -> tuple[Reading, dict[str, tuple[str, str, str | None, int, int]]]:
    """The reading, and by rule id and written key: (message, hint, line, column)."""
    source = load(text, "x.yaml", env)
    assert source.data is not None
    result = read_model(source.data, source.written)
    found = {}
    for problem in result.problems:
        place = source.position(problem.path, on_key=problem.on_key)
        found[f"{problem.rule_id} {'.'.join(map(str, problem.path))}"] = (
            problem.rule_id,
            problem.message,
            problem.hint,
            place.line,
            place.column,
        )
    return result, found


def test_a_short_definition_is_enough() -> None:
    result, found = reading(GOOD)
    assert found == {}
    assert result.definition is not None
    assert result.definition.network.access == "bastion"
    assert result.replaced == ()


@pytest.mark.parametrize(
    ("written", "problem", "message"),
    [
        ("{exists: a}", "E0101 azure.resource_group.exists", "azure.resource_group has no key 'exists'"),
        ("{existing: 5}", "E0104 azure.resource_group.existing", "azure.resource_group.existing must be a text, not 5"),
        ("{}", "E0102 azure.resource_group.existing", "azure.resource_group needs the key 'existing'"),
        ("[a]", "E0104 azure.resource_group", "azure.resource_group must be a text or a mapping, not a list"),
    ],
)
def test_a_text_or_a_mapping_says_what_is_wrong_in_the_one_that_was_written(
    written: str, problem: str, message: str
) -> None:
    _, found = reading(GOOD + f"azure: {{resource_group: {written}}}\n")
    assert {key: value[1] for key, value in found.items()} == {problem: message}


@pytest.mark.parametrize("written", ["shared-rg", "{existing: shared-rg}"])
def test_a_resource_group_is_a_name_or_one_that_exists(written: str) -> None:
    result, found = reading(GOOD + f"azure: {{resource_group: {written}}}\n")
    assert found == {}
    assert result.definition is not None
    wanted = result.definition.azure.resource_group
    assert (wanted if isinstance(wanted, str) else getattr(wanted, "existing", None)) == "shared-rg"


CASES = [
    (
        "locaton: eastus\n" + GOOD,
        "E0101 locaton",
        "the definition has no key 'locaton'",
        "did you mean 'location'?",
        (1, 1),
    ),
    (
        GOOD.replace("vm_size", "vm_sise"),
        "E0101 slurm.partitions.0.vm_sise",
        "partition 'htc' has no key 'vm_sise'",
        "did you mean 'vm_size'?",
        (5, 19),
    ),
    (
        GOOD.replace("location: eastus\n", ""),
        "E0102 location",
        "the definition needs the key 'location'",
        "for example location: southcentralus",
        (1, 1),
    ),
    (
        GOOD + "storage: {home: {size_gb: 5}}\n",
        "E0102 storage.home.type",
        "storage.home needs the key 'type'",
        "type: nfs | anf | existing",
        (6, 11),
    ),
    (
        GOOD.replace("name: x", "name: ${NOT_SET}"),
        "E0103 name",
        "name reads the environment variable NOT_SET, which is not set",
        "export NOT_SET=…, or write ${NOT_SET:-default}",
        (1, 7),
    ),
    (
        GOOD.replace("2}", '"2"}'),
        "E0104 slurm.partitions.0.max_nodes",
        "max_nodes of partition 'htc' must be a whole number (nodes), not '2'",
        "remove the quotes: 2",
        (5, 57),
    ),
    (
        GOOD.replace("2}", "2.5}"),
        "E0104 slurm.partitions.0.max_nodes",
        "max_nodes of partition 'htc' must be a whole number (nodes), not 2.5",
        None,
        (5, 57),
    ),
    (
        GOOD.replace("name: x", "name: 8.10"),
        "E0104 name",
        "name must be a text, not 8.10",
        'put it in quotes: "8.10"',
        (1, 7),
    ),
    (
        GOOD + "  autoscale: yes\n",
        "E0104 slurm.autoscale",
        "slurm.autoscale must be true or false, not 'yes'",
        "write true",
        (6, 14),
    ),
    (GOOD + "network: bastion\n", "E0104 network", "network must be a mapping, not 'bastion'", None, (6, 10)),
    (
        GOOD + "network: {allowed_sources: 10.0.0.0/8}\n",
        "E0104 network.allowed_sources",
        "network.allowed_sources must be a list, not '10.0.0.0/8'",
        "write a list: [a, b], or one `- item` per line",
        (6, 28),
    ),
    (GOOD + "tags: {a: 1}\n", "E0104 tags.a", "tags.a must be a text, not 1", 'put it in quotes: "1"', (6, 11)),
    (
        GOOD + "network: {access: bastoin}\n",
        "E0105 network.access",
        "network.access cannot be 'bastoin'",
        "did you mean 'bastion'?",
        (6, 19),
    ),
    (
        GOOD + "storage: {home: {type: cifs}}\n",
        "E0105 storage.home.type",
        "storage.home.type cannot be 'cifs'",
        "allowed: nfs, anf, existing",
        (6, 24),
    ),
    (
        GOOD + 'storage: {mounts: [{path: /d, type: amlfs, tier: "250", size_tib: 8}]}\n',
        "E0105 storage.mounts.0.tier",
        "tier of mount '/d' cannot be '250'",
        "write 250 without quotes",
        (6, 50),
    ),
    (
        GOOD.replace("2}", "2, zone: 4}"),
        "E0105 slurm.partitions.0.zone",
        "zone of partition 'htc' cannot be 4",
        "allowed: 1, 2, 3",
        (5, 66),
    ),
    (
        GOOD.replace("2}", "0}"),
        "E0106 slurm.partitions.0.max_nodes",
        "max_nodes of partition 'htc' must be at least 1 (nodes), not 0",
        None,
        (5, 57),
    ),
    (
        GOOD.replace("2}", "2, os_disk_gb: 5000}"),
        "E0106 slurm.partitions.0.os_disk_gb",
        "os_disk_gb of partition 'htc' must be at most 4095 (GB), not 5000",
        None,
        (5, 72),
    ),
    (
        GOOD + "azure: {accept_marketplace_terms: true}\n",
        "E0101 azure.accept_marketplace_terms",
        "azure has no key 'accept_marketplace_terms' any more",
        "remove it, and accept the terms yourself, once per subscription: the README of the deployment has the "
        "commands under Prerequisites",
        (6, 9),
    ),
    (
        GOOD.replace("2}", "2, spot_max_price_usd_per_hour: 0}"),
        "E0106 slurm.partitions.0.spot_max_price_usd_per_hour",
        "spot_max_price_usd_per_hour of partition 'htc' must be more than 0 (USD/h), not 0",
        None,
        (5, 89),
    ),
    (
        GOOD.replace("2}", "2, spot_max_price_usd_per_hour: cheap}"),
        "E0104 slurm.partitions.0.spot_max_price_usd_per_hour",
        "spot_max_price_usd_per_hour of partition 'htc' must be a number (USD/h), not 'cheap'",
        None,
        (5, 89),
    ),
    (
        GOOD + "  settings: {Weight: 1.5}\n",
        "E0104 slurm.settings.Weight",
        "slurm.settings.Weight must be a text, a whole number, or true or false, not 1.5",
        'put it in quotes: "1.5"',
        (6, 22),
    ),
    (
        GOOD + "jobs: {training: [mpt, [opt-175b]]}\n",
        "E0104 jobs.training.1",
        "training job 2 must be a text or a mapping, not a list",
        None,
        (6, 24),
    ),
    (
        GOOD + "storage: {home: {type: '${KIND}'}}\n",
        "E0103 storage.home.type",
        "storage.home.type reads the environment variable KIND, which is not set",
        "export KIND=…, or write ${KIND:-default}",
        (6, 24),
    ),
    (
        GOOD + "storage: {mounts: ['${MOUNT}']}\n",
        "E0103 storage.mounts.0",
        "mount 1 reads the environment variable MOUNT, which is not set",
        "export MOUNT=…, or write ${MOUNT:-default}",
        (6, 20),
    ),
    (
        GOOD + "storage: {home: {type: ~}}\n",
        "E0105 storage.home.type",
        "storage.home.type cannot be empty",
        "allowed: nfs, anf, existing",
        (6, 24),
    ),
    (
        GOOD + "version: true\n",
        "E0105 version",
        "version cannot be true",
        "allowed: 1",
        (6, 10),
    ),
    (
        GOOD.replace("    - {name: htc, vm_size: Standard_D2as_v5, max_nodes: 2}", "    []"),
        "E0106 slurm.partitions",
        "slurm.partitions must not be empty",
        None,
        (5, 5),
    ),
]


@pytest.mark.parametrize(("text", "key", "message", "hint", "place"), CASES, ids=[case[1] for case in CASES])
def test_each_kind_of_problem(text: str, key: str, message: str, hint: str | None, place: tuple[int, int]) -> None:
    result, found = reading(text)
    assert key in found, found
    _, got_message, got_hint, line, column = found[key]
    assert (got_message, got_hint, (line, column)) == (message, hint, place)
    assert result.definition is not None, "what is left is repaired, so that the rules run too"


def test_a_misspelt_required_key_is_reported_once() -> None:
    _, found = reading(GOOD.replace("location", "locaton"))
    assert list(found) == ["E0101 locaton"]


def test_what_is_no_mapping_is_no_definition() -> None:
    """`load` says so itself; other callers of `read_model` need no check of their own."""
    (problem,) = read_model([GOOD]).problems
    assert (problem.rule_id, problem.message) == ("E0104", "the definition must be a mapping, not a list")
    assert read_model([GOOD]).definition is None


def test_a_stray_type_hides_nothing() -> None:
    """`type` chooses a section only where there are several."""
    _, found = reading(GOOD.replace("max_nodes: 2", "type: hpc"))
    assert sorted(found) == ["E0101 slurm.partitions.0.type", "E0102 slurm.partitions.0.max_nodes"]


@pytest.mark.parametrize("zone", ["1", "'1'"])
def test_a_zone_is_a_text_however_it_is_written(zone: str) -> None:
    result, found = reading(GOOD.replace("2}", f"2, zone: {zone}}}"))
    assert found == {}
    assert result.definition is not None
    assert result.definition.slurm is not None
    assert result.definition.slurm.partitions[0].zone == "1"


@pytest.mark.parametrize("zone", ["true", "1.0", "'01'", "0", "[1]"])
def test_what_only_looks_like_a_zone_is_none(zone: str) -> None:
    _, found = reading(GOOD.replace("2}", f"2, zone: {zone}}}"))
    assert [problem.split()[1] for problem in found] == ["slurm.partitions.0.zone"]


def test_what_is_invalid_is_replaced_and_the_rest_kept() -> None:
    result, _ = reading(
        GOOD.replace("2}", "two, zone: true, image: mine}")
        + "storage: {home: {type: cifs}, mounts: [{path: /d, type: blob, container: 3}]}\n"
        + "network: {access: public, allowed_sources: [10.0.0.0/8, 7]}\ntags: {a: 1, b: x}\n"
    )
    assert set(result.replaced) == {
        ("slurm", "partitions", 0, "max_nodes"),
        ("slurm", "partitions", 0, "zone"),
        ("storage", "home"),
        ("storage", "mounts", 0, "container"),
        ("storage", "mounts", 0, "storage_account"),
        ("network", "allowed_sources", 1),
        ("tags", "a"),
    }
    definition = result.definition
    assert definition is not None
    assert definition.slurm is not None
    (partition,) = definition.slurm.partitions
    assert (partition.name, partition.max_nodes, partition.zone, partition.image) == ("htc", 2, None, "mine")
    assert definition.storage.home == BuiltinNfs(type="nfs", size_gb=100)
    assert definition.storage.mounts == [
        BlobMount(type="blob", path="/d", container="data", storage_account="datasets0001")
    ]
    assert definition.network.allowed_sources == ["10.0.0.0/8", "example"]
    assert definition.tags == {"b": "x"}


def test_a_whole_number_is_a_price() -> None:
    result, found = reading(GOOD.replace("2}", "2, spot_max_price_usd_per_hour: 3}"))
    assert found == {}
    assert result.definition is not None
    assert result.definition.slurm is not None
    assert type(result.definition.slurm.partitions[0].spot_max_price_usd_per_hour) is float


def test_all_problems_of_a_file_in_one_go() -> None:
    _, found = reading(
        GOOD
        + "network: {access: vpn, addres_space: 10.0.0.0/16}\n"
        + "server: {os_disk_gb: big}\n"
        + "jobs: {training: [mpt, {recipe: mpt, nodez: 2}]}\n"
    )
    assert sorted(value[0] for value in found.values()) == ["E0101", "E0101", "E0104", "E0105"]


def test_values_of_the_environment_are_never_printed() -> None:
    _, found = reading(GOOD + "network: {access: '${SECRET}'}\n", SECRET="hunter2")
    (entry,) = found.values()
    assert "hunter2" not in str(entry)
    assert "the variable SECRET" in entry[1]


def test_an_empty_section_means_its_defaults() -> None:
    result, found = reading(GOOD + "network:\nstorage:\n  mounts:\n")
    assert found == {}
    assert result.definition is not None
    assert result.definition.storage.mounts == []


def test_what_may_be_asked_for_at_deployment_stays_open() -> None:
    result, found = reading(
        GOOD + "admin: {ssh_public_key: '${KEY}'}\nnetwork: {access: hub, hub: {vnet_id: '${HUB}'}}\n"
    )
    assert found == {}
    assert result.definition is not None


PLAIN: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "name",
                    "location",
                    "slurm",
                    "partitions",
                    "type",
                    "home",
                    "mounts",
                    "storage",
                    "path",
                    "tier",
                    "network",
                    "jobs",
                    "training",
                    "zz",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["name", "location", "slurm", "storage", "network", "jobs", "tags", "admin", "zz"]),
        PLAIN,
        max_size=6,
    )
)
@settings(max_examples=150, deadline=None)
def test_any_data_gives_problems_or_a_definition(data: dict[str, Any]) -> None:
    result = read_model(data)
    assert result.definition is not None
    again = read_model(json.loads(json.dumps(plain_values(result.definition))))
    assert (again.definition, again.problems) == (result.definition, ()), "what was repaired is valid"


WHOLE: tuple[dict[str, Any], ...] = tuple(yaml_data(text) for text in (EVERYTHING, PUBLIC, EXISTING))
ODD: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 2.5, 250, "250", "1", "", "true", "nfs", "anf", "existing", "public"),
    *([], {}, [1], ["a"], [[]], {"a": 1}, {"a": "b"}, {"a": [1]}, {"type": "nfs"}, {"type": 5}, {"recipe": "mpt"}),
)
VALIDATOR = Draft202012Validator(json_schema())


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every path below a value, in order."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in inner:
        yield (*path, step)
        yield from places(below, (*path, step))


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_the_reader_finds_something_wherever_the_schema_does(data: Any) -> None:
    """Two programs judge by the same declarations: ours, and jsonschema by the schema that is made from them."""
    definition = copy.deepcopy(data.draw(st.sampled_from(WHOLE)))
    assert read_model(definition).problems == ()
    *above, last = data.draw(st.sampled_from(list(places(definition))))
    parent: Any = definition
    for step in above:
        parent = parent[step]
    change = data.draw(st.sampled_from(["replace", "remove", "rename", "add"]))
    value = data.draw(st.sampled_from(ODD))
    if change == "replace":
        parent[last] = value
    elif isinstance(parent, list):
        parent.append(value)
    elif change == "add":
        parent[data.draw(st.sampled_from(["type", "zone", "name", "projects", "settings", "zz"]))] = value
    else:
        kept = parent.pop(last)
        if change == "rename":
            parent[f"{last}x"] = kept

    found = read_model(definition).problems

    assert bool(found) == (not VALIDATOR.is_valid(definition)), found
