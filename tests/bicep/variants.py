"""Plans that together use every module, and the folder that each becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from generator.plan.types import (
    Asked,
    HubPlan,
    JumpboxPlan,
    MarketplaceImage,
    MonitoringPlan,
    NetworkPlan,
    Plan,
    SubnetPlan,
)
from generator.render import bicep
from tests import plans
from tests.plan.definitions import with_every_kind

PAYLOAD = ("bootstrap/payload/payload-00.bin", "bootstrap/payload/payload-01.bin")
HASH = "0123456789abcdef" * 4
DIGEST = "fedcba9876543210" * 4
SUBSCRIPTION = "/subscriptions/11111111-2222-3333-4444-555555555555"
NETWORK_GROUP = f"{SUBSCRIPTION}/resourceGroups/network-rg/providers/Microsoft.Network"
HUB_ID = f"{NETWORK_GROUP}/virtualNetworks/hub"
VNET_ID = f"{NETWORK_GROUP}/virtualNetworks/shared-vnet"
ZONE_ID = f"{NETWORK_GROUP}/privateDnsZones/privatelink.blob.core.windows.net"
RULE_ID = f"{SUBSCRIPTION}/resourceGroups/metrics-rg/providers/Microsoft.Insights/dataCollectionRules/cluster"
ASKED_KEY = Asked("CYCLECLOUD_SSH_PUBLIC_KEY", "sshPublicKey", "SSH public key of the administrator.")
ASKED_HUB = Asked("HUB_VNET_ID", "hubVnetId", "Resource id of the hub network.")


def _network(plan: Plan, **changes: object) -> Plan:
    return replace(plan, network=replace(plan.network, **changes))  # type: ignore[arg-type]


def _without_bastion(network: NetworkPlan) -> tuple[SubnetPlan, ...]:
    return tuple(subnet for subnet in network.subnets if subnet.role != "bastion")


def minimal() -> Plan:
    """Bastion, built-in NFS."""
    return plans.minimal()


def asked_hub() -> Plan:
    """A hub and a key that are asked for at deployment."""
    plan = plans.minimal()
    hub = HubPlan(ASKED_HUB, use_remote_gateway=True, address_spaces=("10.0.0.0/16", "172.16.0.0/24"))
    plan = _network(plan, access="hub", hub=hub, subnets=_without_bastion(plan.network))
    return replace(plan, admin=replace(plan.admin, ssh_public_key=ASKED_KEY), asked=(ASKED_KEY, ASKED_HUB))


def known_hub() -> Plan:
    """A hub by id, without declared prefixes and without a gateway; an existing DNS zone."""
    plan = plans.minimal()
    hub = HubPlan(HUB_ID, use_remote_gateway=False, address_spaces=())
    return _network(plan, access="hub", hub=hub, subnets=_without_bastion(plan.network), blob_dns_zone=ZONE_ID)


def public() -> Plan:
    """A public address for listed sources; no NAT gateway."""
    plan = plans.minimal()
    subnets = tuple(replace(subnet, uses_nat=False) for subnet in _without_bastion(plan.network))
    sources = ("198.51.100.7/32", "203.0.113.0/24")
    return _network(plan, access="public", allowed_sources=sources, subnets=subnets, nat_gateway=False)


def existing_network() -> Plan:
    """A network of somebody else in another resource group, with its own DNS."""
    plan = plans.minimal()
    names = (("server", "servers"), ("endpoints", "servers"), ("compute", "nodes"))
    return _network(
        plan,
        is_new=False,
        vnet_name="shared-vnet",
        vnet_resource_group="network-rg",
        vnet_id=VNET_ID,
        address_space=None,
        subnets=tuple(SubnetPlan(role, name, None, None, uses_nat=False) for role, name in names),
        nat_gateway=False,
        blob_dns_zone=ZONE_ID,
    )


def everything() -> Plan:
    """NetApp Files for home and a numbered mount, Managed Lustre, MySQL, monitoring, jumpbox."""
    plan = plans.minimal()
    more = (
        SubnetPlan("netapp", "netapp", "10.50.3.0/28", "Microsoft.Netapp/volumes", uses_nat=False),
        SubnetPlan("lustre", "lustre", "10.50.2.128/25", None, uses_nat=True),
        SubnetPlan("database", "database", "10.50.3.16/28", "Microsoft.DBforMySQL/flexibleServers", uses_nat=False),
    )
    flexible = replace(
        plans.netapp_home(), name="2024", path="/2024", size_gib=1500, address_fact="x2024Address",
        export_path="/y2024", service_level="Flexible", throughput_mibps=256, zone="2",
        resource_name="m-2024",
    )  # fmt: skip
    image = MarketplaceImage("MicrosoftWindowsDesktop", "windows-11", "win11-24h2-pro", "26100.1742.240906")
    return replace(
        _network(plan, subnets=plan.network.subnets + more),
        home=plans.netapp_home(),
        mounts=(plans.lustre(size_gib=16 * 1024, tier=125), flexible),
        slurm=replace(plan.slurm, accounting=plans.new_accounting()),
        monitoring=MonitoringPlan("/workspace", "https://metrics.example", RULE_ID),
        server=replace(plan.server, jumpbox=JumpboxPlan("minimal-jumpbox", "minimal-jb", "Standard_D2as_v5", image)),
    )


def own_image() -> Plan:
    """An own server image with disks of given sizes, a given storage account, awkward tags."""
    plan = plans.minimal()
    image = f"{SUBSCRIPTION}/resourceGroups/images/providers/Microsoft.Compute/galleries/g/images/cc/versions/1.0.0"
    return replace(
        plan,
        server=replace(plan.server, image=None, image_id=image, os_disk_gb=128, data_disk_gb=256),
        locker=replace(plan.locker, account_name="minimallocker", redundancy="Standard_ZRS"),
        tags=(("cost center", "it's ${not} code\\"), ("owner", "ops")),
    )


VARIANTS = {
    build.__name__: build
    for build in (
        minimal,
        asked_hub,
        known_hub,
        public,
        existing_network,
        everything,
        own_image,
        with_every_kind,
    )
}


def main_bicep(plan: Plan) -> str:
    """Text of main.bicep."""
    files = bicep.render(plans.settled(plan), PAYLOAD, HASH, DIGEST)
    return next(file.content.decode() for path, file in files.items() if path.name == "main.bicep")


def write_folder(plan: Plan, folder: Path, payload: tuple[str, ...] = PAYLOAD) -> Path:
    """The rendered files and stand-ins for what other renderers put beside them; returns main.bicep."""
    for path, file in bicep.render(plans.settled(plan), payload, HASH, DIGEST).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
    for piece in payload:
        (folder / piece).parent.mkdir(parents=True, exist_ok=True)
        (folder / piece).write_bytes(b"\x1f\x8b" * 32)
    (folder / "bootstrap" / "cloud-init.yaml").write_text("#cloud-config\n")
    (folder / "bootstrap" / "start.sh").write_text("#!/bin/sh\nexit 0\n")
    return folder / "main.bicep"
