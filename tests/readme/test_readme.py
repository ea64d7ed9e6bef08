"""The README of a deployment: right for its access, pasteable, and complete."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath

import pytest
from msgspec import structs
from syrupy.assertion import SnapshotAssertion

from generator.plan.deployment import Plan
from generator.plan.names import deployment_name
from generator.plan.projects import BlobPlan
from generator.render import readme
from tests.bed import parts
from tests.bed.difference import shown
from tests.bed.plans import plan_from, slurm_of
from tests.bicep.variants import HUB_ID, ZONE_ID

SHELLCHECK = Path(sys.executable).parent / "shellcheck"
BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)


JUMPBOX = "server: {jumpbox: {vm_size: Standard_D4as_v5}}"
EXISTING_NETWORK = """
network:
  address_space: null
  existing:
    vnet_id: GROUP/net-rg/providers/Microsoft.Network/virtualNetworks/corp
    subnets: {server: server, compute: compute}
  access: bastion
""".replace("GROUP", "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups")
# A100 nodes behind a hub that is asked for, Lustre, NetApp Files, accounting, OPT.
HUB_TRAINING = """
location: ${LAB_LOCATION:-southcentralus}
network:
  address_space: 10.50.0.0/20
  access: hub
  hub: {vnet_id: "${HUB_VNET_ID}", use_remote_gateway: true, address_spaces: [10.0.0.0/16]}
storage:
  home: {type: anf, size_tib: 4}
  mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]
slurm:
  start_cluster: true
  accounting: {type: new}
  partitions:
    - {name: hpc, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
jobs:
  validation: [node-health]
  training: [{recipe: opt-175b, nodes: 2, settings: {MODEL: opt-30b}}]
"""
PUBLIC_STATIC_SPOT = """
location: usgovvirginia
azure: {cloud: usgov, subscription_id: 11111111-2222-3333-4444-555555555555}
network: {access: public, allowed_sources: [203.0.113.0/24, 198.51.100.7/32]}
server:
  image_id: /subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/r/providers/Microsoft.Compute/images/own
slurm:
  autoscale: false
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, spot: true, default: true}
    - {name: one, vm_size: Standard_D64ds_v5, max_nodes: 1}
jobs: null
"""


HUB = f"""
network:
  access: hub
  hub: {{vnet_id: {HUB_ID}, use_remote_gateway: GATEWAY}}
"""
hub_training = partial(plan_from, HUB_TRAINING)
public_static_spot = partial(plan_from, PUBLIC_STATIC_SPOT)
bastion_existing_network = partial(plan_from, EXISTING_NETWORK)


PLANS: dict[str, Callable[[], Plan]] = {
    "bastion": plan_from,
    "bastion-jumpbox": partial(plan_from, JUMPBOX),
    "bastion-existing-network": bastion_existing_network,
    "hub-training": hub_training,
    "public-static-spot": public_static_spot,
}


def rendered(plan: Plan, name: str = "README.md") -> str:
    return readme.render(plan)[PurePosixPath(name)].content.decode()


def both(plan: Plan) -> str:
    return rendered(plan) + rendered(plan, "operations.md")


@pytest.mark.parametrize("name", PLANS)
def test_snapshot(name: str, snapshot: SnapshotAssertion) -> None:
    """The one of the smallest definition whole, the others as what differs from it."""
    for file, suffix in (("README.md", "md"), ("operations.md", "operations.md"), (".envrc.template", "envrc")):
        text, base = (rendered(plan, file) for plan in (PLANS[name](), plan_from()))
        assert shown(text, base) == snapshot(name=f"{name}.{suffix}")


@pytest.mark.parametrize("name", PLANS)
def test_every_block_is_valid_shell(name: str) -> None:
    blocks = BLOCK.findall(both(PLANS[name]()))
    assert blocks
    for block in blocks:
        result = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{block}\n{result.stderr}"


@pytest.mark.parametrize("name", PLANS)
def test_the_environment_template_is_valid_shell_without_a_secret(name: str) -> None:
    text = rendered(PLANS[name](), ".envrc.template")
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    assert re.search(r"^export CYCLECLOUD_ADMIN_PASSWORD=''", text, re.MULTILINE)


@pytest.mark.parametrize("name", PLANS)
def test_commands_are_complete(name: str) -> None:
    """No placeholder is in a command, and every section is there."""
    text = rendered(PLANS[name]())
    for block in BLOCK.findall(text):
        assert not re.search(r"<[a-z-]+>|\.\.\.|…|\bTODO\b", block), block
    for section in (
        "Prerequisites",
        "Deploy",
        "Watch",
        "Connect",
        "Validate",
        "Train",
        "Update",
        "Delete",
        "Troubleshooting",
    ):
        assert f"\n## {section}\n" in text
    assert "None" not in both(PLANS[name]())


@pytest.mark.parametrize("name", PLANS)
def test_every_link_leads_somewhere(name: str) -> None:
    """Within a page and between the two, by the anchors that a heading gets."""
    pages = {file: rendered(PLANS[name](), file) for file in ("README.md", "operations.md")}
    titles = {file: re.findall(r"(?m)^#+ (.*)$", text.lower()) for file, text in pages.items()}
    anchors = {
        file: {re.sub(r"[^a-z0-9 -]", "", title).replace(" ", "-") for title in found} for file, found in titles.items()
    }
    for file, text in pages.items():
        for page, anchor in re.findall(r"\]\(([\w.]*?)(?:#([\w-]+))?\)", text):
            assert page in ("", *pages), page
            assert not anchor or anchor in anchors[page or file], f"{file}: {page}#{anchor}"


def test_access_decides_the_way_in() -> None:
    bastion, hub, public = (rendered(PLANS[name]()) for name in ("bastion", "hub-training", "public-static-spot"))
    assert "az network bastion tunnel" in bastion
    assert "az network bastion" not in hub + public
    assert "--query privateIps" in hub
    assert "--query publicIps" in public
    assert "VPN or ExpressRoute" in hub


def test_an_existing_network_finds_its_own_bastion() -> None:
    text = rendered(bastion_existing_network())
    assert "virtualNetworks/corp/')" in text
    assert "this deployment creates none there" in text
    assert "Not deleted, because the deployment did not create them" in text


def test_quota_counts_every_partition_at_its_limit() -> None:
    plan = hub_training()
    vcpus = {use.name: use.vcpus for use in plan.quota.uses}
    assert vcpus["partition hpc"] == slurm_of(plan).node_arrays[0].max_nodes * (parts.A100.vcpus or 0)
    assert f"| standardNDAMSv4_A100Family | {vcpus['partition hpc']} |" in rendered(plan)


def test_spot_counts_against_the_spot_limit_only() -> None:
    text = rendered(public_static_spot())
    assert "| spot vCPUs of the region (lowPriorityCores) | 128 |" in text
    assert "lowPriorityCores" in next(line for line in text.splitlines() if "list-usage" in line)


def test_providers_follow_the_plan() -> None:
    assert set(hub_training().providers) >= {
        "Microsoft.NetApp",
        "Microsoft.StorageCache",
        "Microsoft.DBforMySQL",
    }
    assert "Microsoft.NetApp" not in parts.minimal().providers


def test_an_own_image_has_no_terms_to_accept() -> None:
    assert "az vm image terms accept" not in rendered(public_static_spot())
    assert (
        "az vm image terms accept --publisher azurecyclecloud --offer azure-cyclecloud --plan cyclecloud8-gen2"
        in rendered(parts.minimal())
    )


def test_a_static_pool_says_how_to_start_and_stop_nodes() -> None:
    text = rendered(public_static_spot())
    assert "sudo scontrol update 'nodename=minimal-htc-[1-2]' state=power_up\n" in text
    assert "sudo scontrol update nodename=minimal-one-1 state=power_up\n" in text
    assert "state=power_down_asap" in text
    assert "power_up" not in rendered(parts.minimal())


def test_training_steps_are_chained_and_the_checkpoint_is_counted() -> None:
    text = rendered(hub_training())
    assert "setup=$(sbatch --parsable 10-setup.sbatch)" in text
    assert 'sbatch --dependency=afterok:"${setup}" job.sbatch' in text
    assert "The job trains `opt-30b`." in text
    assert "TB per checkpoint; 3 kept" in text


def test_only_a_hub_leaves_a_peering() -> None:
    assert 'hub="${HUB_VNET_ID:?}"' in rendered(hub_training())
    assert "peering delete" not in rendered(parts.minimal())


def test_other_clouds_are_set_before_the_login() -> None:
    text = rendered(public_static_spot())
    assert text.index("az cloud set --name AzureUSGovernment") < text.index("az login")
    assert "az account set --subscription 11111111-2222-3333-4444-555555555555" in text


def test_a_long_name_still_makes_a_deployment_name() -> None:
    plan = plan_from(f"name: {'x' * 40}")
    assert set(re.findall(r"--name (x+-southcentralus)", rendered(plan))) == {plan.deployment_name}
    assert len(deployment_name("x" * 80, "southcentralus")) <= 64


@pytest.mark.skipif(not SHELLCHECK.is_file(), reason="shellcheck is not beside the interpreter")
@pytest.mark.parametrize("name", PLANS)
def test_shellcheck_reads_the_blocks(name: str) -> None:
    """One script of all blocks, because later blocks use names that earlier ones set."""
    script = "#!/usr/bin/env bash\n" + "\n".join(BLOCK.findall(both(PLANS[name]())))
    # A pasted line needs no test after cd, reads a file that is not here, and expands on purpose.
    ignored = "SC2164,SC1091,SC2103"
    result = subprocess.run(
        [str(SHELLCHECK), "-e", ignored, "-"], input=script, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout


def test_a_container_needs_a_role_that_the_deployment_does_not_give() -> None:
    mount = "{path: /c4, type: blob, storage_account: mptdatasets, container: c4-dataset}"
    text = rendered(plan_from(f"storage: {{mounts: [{mount}]}}"))
    assert "az storage account show --name mptdatasets --query id" in text
    assert '--scope "${account:?}/blobServices/default/containers/c4-dataset"' in text
    assert text.count("properties.outputs.nodePrincipalId.value") == 1
    assert "nodePrincipalId" not in rendered(parts.minimal())


def test_the_link_in_an_existing_zone_is_deleted_too() -> None:
    plan = plan_from(f"network: {{blob_dns_zone: {ZONE_ID}}}")
    _, _, subscription, _, group, *_ = ZONE_ID.split("/")
    here = f"--subscription {subscription} --resource-group {group} --zone-name privatelink.blob.core.windows.net"
    assert f"az network private-dns link vnet list {here} --query" in rendered(plan)
    assert f"az network private-dns link vnet delete {here} --yes --name" in rendered(plan)
    assert "private-dns" not in rendered(parts.minimal())


def test_whose_task_the_name_of_the_locker_is() -> None:
    plan = plan_from("network: {blob_dns_zone: none}")
    assert "`blob_dns_zone: none`" in rendered(plan)
    assert "waits up to 30 minutes" in rendered(plan)


def test_a_hub_must_have_the_gateway_that_is_used() -> None:
    """RemoteVnetHasNoGateways: https://github.com/Azure/bicep/issues/12191"""
    texts = [rendered(plan_from(HUB.replace("GATEWAY", gateway))) for gateway in ("true", "false")]
    for part in ("| `RemoteVnetHasNoGateways` |", "`use_remote_gateway: true`", "GatewaySubnet"):
        assert [part in text for text in texts] == [True, False]
    for text in texts:
        assert "Network Contributor on the hub" in text
    assert "hub network" not in rendered(parts.minimal())


def test_a_hub_beside_an_existing_network_is_left_alone() -> None:
    plan = plan_from(EXISTING_NETWORK, "network: {access: hub}")
    assert "Its peering with `corp` must exist" in rendered(plan)
    assert "peering delete" not in rendered(plan)


@pytest.mark.parametrize("name", PLANS)
def test_paragraphs_are_one_empty_line_apart(name: str) -> None:
    """Optional parts leave no gap, no trailing blank and no list that runs into the next paragraph."""
    for file in ("README.md", "operations.md"):
        text = rendered(PLANS[name](), file)
        assert "\n\n\n" not in text
        assert not re.search(r"[ \t]$", text, re.MULTILINE)
        assert not re.search(r"[^\n]\n## ", text)
        assert not re.search(r"```\n[^\n]", re.sub(BLOCK, "```\n", text))


def test_blobs_that_travel_and_blobs_that_do_not() -> None:
    """Carried ones are listed with their place, needed ones that are missing with the way to get them."""
    blobs = tuple(BlobPlan(f"{state}.tgz", "1.0", "0" * 64, 1, state) for state in ("present", "missing", "damaged"))
    unneeded = BlobPlan("unneeded.tgz", "1.0", "0" * 64, 1, "missing", is_needed=False)
    plan = parts.minimal()
    project = structs.replace(plan.projects[0], blobs=(*blobs, unneeded))
    text = rendered(structs.replace(plan, projects=(project,)))
    assert "sha256: `projects/misc_ubuntu/blobs/present.tgz`. Left out, because" in text
    assert "`missing.tgz` (project `misc_ubuntu`), `damaged.tgz` (project `misc_ubuntu`). To include them" in text
    assert "unneeded" not in text


def test_a_way_into_an_existing_network_is_not_called_a_hub() -> None:
    network = (
        "network: {address_space: null, access: private, existing: {vnet_id: /subscriptions/00000000-0000-0000-0000-"
        "000000000000/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/corp, subnets: {server: server, "
        "compute: compute}}}"
    )
    text = rendered(plan_from(network))
    assert "Connect to the VPN or ExpressRoute that leads into `corp` first." in text
    assert " hub" not in text
