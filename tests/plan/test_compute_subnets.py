"""Nodes in several subnets: where they are, what CycleCloud is told, and who reaches whom."""

from __future__ import annotations

import pytest

from generator.plan.deployment import Plan
from generator.render import readme
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read
from tests.flows.worlds import BASE, EXISTING, SERVER_EXISTS, SUBNETS, world

IN_EXISTING = """
network: {existing: {compute_subnets: [{name: gpu, prefix: 10.20.8.0/24}]}}
slurm:
  login: {subnet: gpu}
  partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, subnet: gpu}]
"""


def subnets(plan: Plan) -> dict[str, object]:
    rendered = read(plan, SubnetId="of/the/cluster")
    assert rendered.findings == ()
    return {node: rendered.attribute(node, "SubnetId") for node in ("scheduler", "login", *arrays(plan))}


def arrays(plan: Plan) -> list[str]:
    return [array.name for array in slurm_of(plan).node_arrays]


def test_only_the_role_that_names_it_is_in_another_subnet() -> None:
    plan = plan_from("network: {address_space: 10.50.0.0/20}", SUBNETS)
    own = f"{plan.resource_group}/{plan.network.vnet_name}/compute-gpu"
    others = dict.fromkeys(("scheduler", "login", "htc"), "of/the/cluster")
    assert subnets(plan) == others | {"big": own}
    gpu = plan.network.subnet("compute-gpu")
    assert gpu is not None
    assert (gpu.name, gpu.prefix, gpu.uses_nat) == ("compute-gpu", "10.50.4.0/24", True)


def test_of_an_existing_network_the_names_are_those_of_azure() -> None:
    plan = plan_from(BASE, EXISTING, IN_EXISTING)
    assert subnets(plan) == {
        "scheduler": "of/the/cluster", "login": "shared/shared/gpu", "htc": "shared/shared/gpu",
    }  # fmt: skip
    needs = {subnet.role: subnet.addresses for subnet in plan.network.subnets}
    assert (needs["compute"], needs["compute-gpu"]) == (1, 3)


def test_the_server_of_others_needs_its_role_on_each_subnet() -> None:
    plan = plan_from(BASE, EXISTING.replace("server: servers, ", ""), SERVER_EXISTS, IN_EXISTING)
    page = next(file.content.decode() for path, file in readme.render(plan).items() if path.name == "README.md")
    lines = [line for line in page.splitlines() if line.startswith("az role assignment create --role 'Virtual Machine")]
    assert [line.rsplit("/", 1)[1].strip("'") for line in lines] == ["nodes", "gpu"]


@pytest.mark.parametrize(("one", "other"), [("compute", "compute-gpu"), ("compute-gpu", "compute")])
def test_nodes_of_both_subnets_reach_each_other_and_what_they_need(one: str, other: str) -> None:
    here = world("subnets")
    groups, hosts = here.groups(), here.hosts
    assert groups.allow(hosts[one], hosts[other], "Tcp", 6818)
    assert groups.allow(hosts[one], hosts[other], "Udp", 4791)
    for role, port in (("server", 9443), ("endpoints", 443), ("netapp", 2049), ("lustre", 988), ("database", 3306)):
        assert groups.allow(hosts[one], hosts[role], "Tcp", port)
    assert groups.allow(hosts["server"], hosts[one], "Tcp", 22)
    assert groups.allow(hosts["lustre"], hosts[one], "Tcp", 988)
    assert not groups.allow(hosts["stranger"], hosts[one], "Tcp", 6818)
    assert not groups.allow(hosts[one], hosts["stranger"], "Tcp", 6818)


def test_exports_are_open_to_the_nodes_of_both_subnets() -> None:
    """The module makes the list for the rules of NetApp's exports."""
    (volume,) = [each for each in world("subnets").resources if each.type.endswith("/volumes")]
    rules = volume.properties["exportPolicy"]["rules"]
    assert [rule["allowedClients"] for rule in rules] == ["10.50.0.0/22,10.50.4.0/24"]


def test_egress_names_both_subnets() -> None:
    of_nodes = [set(rule.prefixes) for rule in world("subnets").plan.egress.rules if "nodes" in rule.sources]
    assert of_nodes
    assert all({"10.50.0.0/22", "10.50.4.0/24"} <= each for each in of_nodes)
