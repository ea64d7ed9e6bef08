"""Which nodes get public addresses, once CycleCloud has filled in the template."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from generator.azure.checks.quota import public_addresses
from generator.cctemplate.check_nodes import check_arrays
from generator.cctemplate.checks import check, variables
from generator.cctemplate.resolve import resolve
from generator.cctemplate.values import value_of
from tests.bed.plans import plan_from
from tests.bicep.variants import VARIANTS
from tests.cluster_template.rendered import Rendered, parse, read
from tests.definitions import build

PUBLIC = """
network: {access: public, allowed_sources: [203.0.113.0/24]}
server: {image_version: 8.9.220260810}
slurm: {login: {count: 1, max_count: 3}}
"""
COUPLED = "{name: hpc, vm_size: Standard_HB120rs_v3, max_nodes: 2}"
BOTH = f"slurm: {{partitions: [{COUPLED}, {{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}}]}}"
SWITCHES = ("UsePublicNetwork", "ExecuteNodesPublic")


def has_address(rendered: Rendered, node: str) -> bool:
    found = rendered.nodes[node].interfaces["eth0"]["associatepublicipaddress"]
    return value_of(found.value, rendered.known) is True


@pytest.mark.parametrize(
    ("value", "having", "count"),
    [("none", (), 0), ("scheduler", ("scheduler", "login"), 4), ("all", ("scheduler", "login", "htc"), 6)],
)
def test_every_role_that_the_key_names_gets_an_address(value: str, having: tuple[str, ...], count: int) -> None:
    plan = plan_from(PUBLIC, f"slurm: {{public_addresses: {value}}}")
    rendered = read(plan)
    assert rendered.findings == ()
    assert tuple(node for node in ("scheduler", "login", "htc") if has_address(rendered, node)) == having
    for array in ("login", "htc"):
        assert rendered.attribute(array, "Azure.AllocationMethod") == ("StandAlone" if array in having else None)
    assert tuple(rendered.values[name] for name in SWITCHES) == ("scheduler" in having, "htc" in having)
    assert public_addresses(plan) - public_addresses(plan_from(PUBLIC)) == count
    assert plan.network.has_flow("users-nodes") is bool(having)
    compute = plan.network.subnet("compute")
    assert compute is not None
    assert ("AllowUsersNodesInbound" in [rule.name for rule in compute.rules]) is bool(having)


def test_a_second_scheduler_gets_one_as_well() -> None:
    """It is the node of an array."""
    text = "slurm: {public_addresses: scheduler, scheduler: {high_availability: true}}"
    shared = "storage: {sched: {type: anf, size_tib: 1}, home: {type: anf, size_tib: 4}}"
    rendered = read(plan_from(PUBLIC, text, shared, "network: {address_space: 10.50.0.0/20}"))
    assert rendered.findings == ()
    assert has_address(rendered, "scheduler-ha")
    assert rendered.attribute("scheduler-ha", "Azure.AllocationMethod") == "StandAlone"


def test_what_the_definition_says_of_the_vms_is_said_once() -> None:
    own = "{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, node_attributes: {azure.allocationmethod: StandAlone}}"
    rendered = read(plan_from(f"slurm: {{partitions: [{own}]}}"))
    assert rendered.findings == ()
    assert rendered.attribute("htc", "Azure.AllocationMethod") == "StandAlone"


def templates() -> dict[str, str]:
    """Every template that is rendered: of the shipped definitions, of the variants, and of those with addresses."""
    found: dict[str, str] = {}
    for name in build.NAMES:
        folder = {str(path): file for path, file in build.rendered(name).items()}
        found |= {f"{name} {path}": file.content.decode() for path, file in folder.items() if _is_template(path)}
    plans = {name: make() for name, make in VARIANTS.items()}
    plans |= {"both": plan_from(BOTH), "addresses": plan_from(PUBLIC, "slurm: {public_addresses: all}")}
    return found | {name: read(plan).text for name, plan in plans.items() if plan.slurm is not None}


def _is_template(path: str) -> bool:
    return PurePosixPath(path).parent.name == "cluster" and path.endswith(".txt")


TEMPLATES = templates()


@pytest.mark.parametrize("switched_on", [(), SWITCHES[:1], SWITCHES], ids=["as built", "scheduler", "all"])
@pytest.mark.parametrize("name", TEMPLATES)
def test_no_array_gets_what_only_single_nodes_may_have(name: str, switched_on: tuple[str, ...]) -> None:
    """Also once somebody has switched addresses on in CycleCloud's form."""
    template = parse(TEMPLATES[name])
    known = variables(template) | dict.fromkeys(switched_on, True)
    nodes = resolve(template.clusters[0])
    assert list(check_arrays(nodes.values(), known)) == []
    interfaces = [node for node in nodes.values() if node.interfaces and not node.is_abstract]
    assert {"scheduler", "scheduler-ha", "login"} < {node.name for node in interfaces}


HIGH_AVAILABILITY = """
[cluster Two]
    [[node defaults]]
    Credentials = azure
    SubnetId = rg/net/subnet
    ImageName = cycle.image.ubuntu24
    MachineType = Standard_D4as_v5
    [[node scheduler]]
        [[[network-interface eth0]]]
        AssociatePublicIpAddress = true
    [[nodearray scheduler-ha]]
    Extends = scheduler
    InitialCount = 0
        [[[configuration]]]
        autoscale.enabled = false
"""


@pytest.mark.parametrize(("count", "found"), [("0", []), ("1", ["E2311"])])
def test_an_array_that_stays_empty_is_fine(count: str, found: list[str]) -> None:
    """The second scheduler of https://github.com/Azure/cyclecloud-slurm/blob/3.0.12/templates/slurm.txt, by default."""
    text = HIGH_AVAILABILITY.replace("InitialCount = 0", f"InitialCount = {count}")
    assert [problem.rule_id for problem in check(parse(text))] == found


def test_public_templates_that_give_arrays_addresses_the_right_way_are_fine() -> None:
    """As in https://github.com/vanzod/ccslurm_public_ip/blob/main/slurm.txt."""
    text = """
[cluster Public]
    [[node defaults]]
    Credentials = azure
    SubnetId = rg/net/subnet
    ImageName = cycle.image.ubuntu24
    MachineType = Standard_D4as_v5
    [[node base]]
    Abstract = true
        [[[network-interface eth0]]]
        AssociatePublicIpAddress = true
    [[nodearray d16d]]
    Extends = base
    Azure.AllocationMethod = standalone
    [[nodearray inside]]
    Extends = base
        [[[network-interface eth0]]]
        AssociatePublicIpAddress = false
"""
    assert check(parse(text)) == ()
    (problem,) = check(parse(text.replace("    Azure.AllocationMethod = standalone\n", "")))
    assert (problem.rule_id, problem.place and problem.place.line) == ("E2311", 11)
