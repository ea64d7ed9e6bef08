"""Containers that the deployment creates: account, role and endpoint, and what jobs keep in them."""

from __future__ import annotations

from msgspec import structs

from generator.plan.deployment import Plan
from generator.plan.file_systems.blob_container import BlobContainer
from generator.plan.ledger import ledgers
from tests.bed.plans import plan_from
from tests.bicep.variants import (
    CONTAINERS,
    EXISTING_NETWORK,
    ZONE_ID,
    containers,
    existing_server_with_containers,
    main_bicep,
)
from tests.plan.definitions import mounted

OTHERS = "{type: blob, path: /sets, storage_account: datasets0001, container: data}"
JOB = """
slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16}]}
jobs: {training: [{recipe: mpt, settings: {DATA_REMOTE: /sets/c4, CHECKPOINT_DIR: /checkpoints}}]}
"""


def parameters(plan: Plan, symbol: str) -> dict[str, object]:
    (module,) = [module for module in plan.modules if module.symbol == symbol]
    return {
        name: value if isinstance(value, str | int) else value.text  # as it is printed
        for name, value in module.parameters
    }


def test_an_account_is_created_once_with_all_its_containers_and_one_endpoint() -> None:
    plan = containers()
    assert [module.symbol for module in plan.modules] == [
        "containers0", "containers0Role0", "containers0Role1", "containers0Endpoint", "containers1", "containers1Role0",
    ]  # fmt: skip
    assert parameters(plan, "containers0")["containerNames"] == "['c4-sets', 'checkpoints']"
    assert parameters(plan, "containers0")["isPrivate"] == "true"
    assert parameters(plan, "containers0")["infrastructureEncryption"] == "true"
    assert parameters(plan, "containers1")["isPrivate"] == "false"
    assert parameters(plan, "containers0Endpoint")["subnetId"] == "network.outputs.subnetIds.endpoints"


def test_nodes_may_use_what_is_created_and_ask_for_what_is_not() -> None:
    assert containers().grants == ()
    assert parameters(containers(), "containers0Role1") == {
        "accountName": "labdata0001",
        "containerName": "checkpoints",
        "nodePrincipalId": "nodeIdentity.outputs.principalId",
    }
    assert [grant.storage_account for grant in mounted(OTHERS).grants] == ["datasets0001"]


def test_the_endpoint_is_in_the_zone_of_the_lockers() -> None:
    assert "resourceGroupName" in str(parameters(containers(), "containers0Endpoint")["dnsZoneId"])
    central = plan_from(EXISTING_NETWORK, CONTAINERS.replace("network: {address_space: 10.50.0.0/20}", ""))
    assert "'network-rg'" in str(parameters(central, "containers0Endpoint")["dnsZoneId"])
    none = plan_from(CONTAINERS, "network: {blob_dns_zone: none}")
    assert "dnsZoneId" not in parameters(none, "containers0Endpoint")
    text = main_bicep(containers())
    assert "dependsOn: [blobZone]" in text[text.index("module containers0Endpoint") :].split("\n}\n")[0]


def test_nodes_reach_a_private_account_by_its_endpoint_alone() -> None:
    flows = {mount.path: [flow.destination for flow in mount.flows] for mount in containers().mounts}
    assert flows == {"/sets": ["endpoints"], "/checkpoints": ["endpoints"], "/open": ["peers"]}


def test_an_endpoint_has_a_subnet_where_the_server_is_someone_elses() -> None:
    plan = existing_server_with_containers()
    assert plan.network.subnet("endpoints") is not None
    assert ZONE_ID.split("/")[4] in str(parameters(plan, "containers0Endpoint")["dnsZoneId"])


def test_addresses_of_endpoints_are_counted() -> None:
    plan = plan_from(EXISTING_NETWORK, CONTAINERS.replace("network: {address_space: 10.50.0.0/20}", ""))
    endpoints = plan.network.subnet("endpoints")
    assert endpoints is not None
    assert endpoints.addresses == 2


def test_what_is_created_is_deleted_with_its_data() -> None:
    data = containers().cleanup.data
    assert [line for line in data if "labdata0001" in line or "labopen0001" in line] == [
        "`/sets` (blob container `c4-sets` of the new account `labdata0001` by blobfuse)",
        "`/checkpoints` (blob container `checkpoints` of the new account `labdata0001` by blobfuse)",
        "`/open` (blob container `open` of the new account `labopen0001` by blobfuse)",
    ]


def test_mounts_differ_from_each_other_and_not_from_someone_elses_on_the_nodes() -> None:
    """The node mounts a container the same way, whoever has created it."""
    created = mounted(OTHERS.replace("}", ", create: true}"))
    assert isinstance(created, BlobContainer)
    others = structs.replace(created, created=None)
    assert BlobContainer.node_settings([created]) == BlobContainer.node_settings([others])


def test_checkpoints_in_a_container_are_counted_there() -> None:
    lustre = "    - {path: /data, type: amlfs, tier: 500, size_tib: 16}\n"
    plan = plan_from(CONTAINERS.replace("  mounts:\n", f"  mounts:\n{lustre}"), JOB)
    found = {ledger.path: {row.what for row in ledger.rows} for ledger in ledgers(plan.jobs, plan.mounts)}
    assert found == {"/checkpoints": {"checkpoints"}, "/data": {"image", "data: tokens"}}
    checkpoint = next(job.checkpoint for job in plan.jobs if job.name == "mpt")
    assert checkpoint is not None
    assert checkpoint.bandwidth_gb_per_s == 3.125
