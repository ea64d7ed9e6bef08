"""What a deployment of a plan makes in Azure, beside what others have there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from generator.plan.deployment import Plan
from generator.plan.server import ServerPlan
from generator.render.bootstrap import CLOUD_INIT
from tests.lifecycle.azure import SUBSCRIPTION, Azure, identifier_of, sub_record, virtual_machine
from tests.lifecycle.server import NODES

OURS = "deployment"
IMPLICIT = "azure"
"""Made by Azure with something of ours: disks, network interfaces of endpoints."""
OTHERS = "someone else"

SERVER_PRINCIPAL, NODE_PRINCIPAL, OTHER_PRINCIPAL = "principal-server", "principal-nodes", "principal-other"
STAGES = ("group", "network", "storage", "server", "all")
"""After which a deployment may have failed; `all` has succeeded."""

KEY, IMAGE = "ssh-ed25519 AAAAFIRST first@example", "8.9.120260101"


def build(plan: Plan, stage: str = "all", *, disks_have_tags: bool = False) -> Azure:
    """The state after a deployment that came as far as a stage."""
    azure = Azure()
    _Deployment(azure, plan, disks_have_tags=disks_have_tags).run(stage)
    return azure


class _Deployment:
    def __init__(self, azure: Azure, plan: Plan, *, disks_have_tags: bool) -> None:
        self.azure, self.plan, self.disks_have_tags = azure, plan, disks_have_tags
        self.group = plan.resource_group
        self.names = plan.names.node_identity.removesuffix("-nodes")
        self.tags = dict(plan.tags)
        self.vnet = plan.network.vnet_id or self.id("Microsoft.Network/virtualNetworks", plan.network.vnet_name)

    def id(self, kind: str, name: str, group: str | None = None) -> str:
        return identifier_of(kind, group or self.group, name)

    def made(self, kind: str, name: str, *uses: str, by: str = OURS, **values: object) -> str:
        tags = self.tags if by in (OURS, NODES) else None
        return self.azure.add(self.id(kind, name), kind, by, **({"uses": list(uses), "tags": tags} | values))

    def run(self, stage: str) -> None:
        self._others()
        steps: tuple[Callable[[], None], ...] = (self._group, self._network, self._storage, self._server, self._rest)
        for step in steps[: STAGES.index(stage) + 1]:
            step()

    # ------------------------------------------------------------ what was there

    def _others(self) -> None:
        """Neighbours whose names and tags come close to ours."""
        azure, plan = self.azure, self.plan
        for group in {"network-rg", "dns-rg", "metrics-rg", "other-rg"}:
            azure.groups[group] = {"location": plan.location, "tags": {"cost": "4711"}}
        if not plan.creates_resource_group:
            azure.groups[self.group] = {"location": "westeurope", "tags": {"cost": "4711"}}
            self._in_their_group()
        hub = self._hub()
        azure.add(hub, "Microsoft.Network/virtualNetworks", OTHERS)
        vnet = plan.network.vnet_name
        for name, remote in (
            ("other-1", self.id("Microsoft.Network/virtualNetworks", vnet, "other-rg")),
            (f"{vnet}-2", self.id("Microsoft.Network/virtualNetworks", f"{vnet}2")),
        ):
            peering = f"{hub}/virtualNetworkPeerings/{name}"
            azure.add(peering, "peering", OTHERS, is_part=True, remoteVirtualNetwork={"id": remote})
        if plan.network.vnet_id:
            azure.add(plan.network.vnet_id, "Microsoft.Network/virtualNetworks", OTHERS)
        for zone in self._linked_zones():
            azure.add(zone, "Microsoft.Network/privateDnsZones", OTHERS)
            other = self.id("Microsoft.Network/virtualNetworks", vnet, "other-rg")
            self._link(f"{zone}/virtualNetworkLinks/other", other, OTHERS)
        if plan.existing_server:
            # It answers, as ours does once its first boot has begun.
            azure.add(plan.existing_server.vm_id, "Microsoft.Compute/virtualMachines", OTHERS)
            azure.add(f"{plan.existing_server.vm_id}/cycleforge-bootstrap", "extension", OTHERS, is_part=True)
        azure.assignments["other"] = self._role(OTHER_PRINCIPAL, f"/subscriptions/{SUBSCRIPTION}", OTHERS)
        azure.deployments[sub_record("other")] = {"operations": [], "by": OTHERS}

    def _in_their_group(self) -> None:
        vm = self.made("Microsoft.Compute/virtualMachines", "team-vm", by=OTHERS)
        self.made("Microsoft.Compute/disks", f"{self.names}-server-archive", by=OTHERS)
        self.azure.resources[vm]["tags"] = {"deployment": self.plan.name, "created-by": "cycleforge"}
        other = self.made("Microsoft.Network/virtualNetworks", "team-vnet", by=OTHERS)
        self.azure.resources[other]["tags"] = {"cycleforge": f"{self.plan.name}-2"}

    def _hub(self) -> str:
        hub = self.plan.network.hub
        if hub is not None and isinstance(hub.vnet_id, str):
            return hub.vnet_id
        return self.id("Microsoft.Network/virtualNetworks", "hub", "network-rg")

    def _role(self, principal: str, scope: str, by: str = OURS) -> dict[str, str]:
        return {"principalId": principal, "scope": scope, "by": by, "roleDefinitionName": "Contributor"}

    def _link(self, identifier: str, vnet: str, by: str = OURS) -> None:
        tags = self.tags if by == OURS else None
        kind = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
        self.azure.add(identifier, kind, by, uses=[vnet], tags=tags, is_link=True)

    # ------------------------------------------------------------ what main.bicep makes, in its order

    def _group(self) -> None:
        nested = f"/subscriptions/{SUBSCRIPTION}/resourceGroups"
        roles = sub_record("cycleforge-roles-unique-location")
        records = [f"{nested}/{self.group}/providers/Microsoft.Resources/deployments/cycleforge-network", roles]
        records.append(f"{nested}/network-rg/providers/Microsoft.Resources/deployments/cycleforge-peering-unique")
        targets = [("Microsoft.Resources/deployments", each) for each in records]
        targets.append(("Microsoft.Resources/resourceGroups", f"{nested}/{self.group}"))
        operations = [{"properties": {"targetResource": {"id": each, "resourceType": kind}}} for kind, each in targets]
        for each in records:
            self.azure.deployments[each] = {"operations": [], "by": OURS}
        self.azure.deployments[sub_record(self.plan.deployment_name)] = {"operations": operations, "by": OURS}
        if self.plan.creates_resource_group:
            self.azure.groups[self.group] = {"location": self.plan.location, "tags": self.tags}

    def _network(self) -> None:
        network = self.plan.network
        if not network.is_new:
            return
        uses = [
            self.made("Microsoft.Network/networkSecurityGroups", f"{network.vnet_name}-{subnet.role}-nsg")
            for subnet in network.subnets
        ]
        if network.nat_gateway:
            address = self.made("Microsoft.Network/publicIPAddresses", f"{network.vnet_name}-nat-ip")
            uses.append(self.made("Microsoft.Network/natGateways", f"{network.vnet_name}-nat", address))
        if network.route and network.route.next_hop:
            uses.append(self.made("Microsoft.Network/routeTables", f"{network.vnet_name}-routes"))
        self.made("Microsoft.Network/virtualNetworks", network.vnet_name, *uses)
        if network.hub:
            remote = {"remoteVirtualNetwork": {"id": self.vnet.replace("resourceGroups", "resourcegroups")}}
            peering = f"{self._hub()}/virtualNetworkPeerings/{self.plan.names.hub_peering_stem}unique"
            self.azure.add(peering, "peering", OURS, is_part=True, **remote)
            own = f"{self.vnet}/virtualNetworkPeerings/to-hub"
            self.azure.add(own, "peering", OURS, is_part=True, remoteVirtualNetwork={"id": self._hub()})

    def _storage(self) -> None:
        plan = self.plan
        if plan.locker.is_new:
            self._locker()
        for module in plan.modules:
            self._module(module.source, dict(module.parameters))
        if plan.slurm and plan.slurm.accounting and plan.slurm.accounting.is_new:
            own = plan.network.mysql_dns_zone == "new"
            zone = self._zone(plan.names.database_zone) if own else plan.network.mysql_dns_zone
            storage = {"storageSizeGb": plan.slurm.accounting.storage_gib}
            self.made("Microsoft.DBforMySQL/flexibleServers", "cf-db", self.vnet, zone, storage=storage)

    def _locker(self) -> None:
        plan = self.plan
        account = self.made("Microsoft.Storage/storageAccounts", "cflocker")
        if plan.network.blob_dns_zone == "new":
            self._zone("privatelink.blob.core.windows.net")
        for zone in self._linked_zones():
            self._link(f"{zone}/virtualNetworkLinks/{plan.name}-unique", self.vnet)
        endpoint = self.made("Microsoft.Network/privateEndpoints", plan.names.locker_endpoint, self.vnet, account)
        nic = f"{plan.names.locker_endpoint}-nic"
        self.made("Microsoft.Network/networkInterfaces", nic, self.vnet, by=IMPLICIT, goes_with=endpoint)

    def _linked_zones(self) -> list[str]:
        network = self.plan.network
        zones = (
            (network.blob_dns_zone, network.links_dns_zone),
            (network.mysql_dns_zone, network.links_mysql_dns_zone),
        )
        return [zone for zone, is_linked in zones if is_linked]

    def _zone(self, name: str) -> str:
        zone = self.made("Microsoft.Network/privateDnsZones", name)
        self._link(f"{zone}/virtualNetworkLinks/{self.plan.names.dns_link}", self.vnet)
        return zone

    def _module(self, source: str, values: dict[str, Any]) -> None:
        account, pools = "Microsoft.NetApp/netAppAccounts", "Microsoft.NetApp/netAppAccounts/capacityPools"
        netapp = f"{self.names}-netapp"
        match source:
            case "modules/netapp-account.bicep":
                self.made(account, netapp)
            case "modules/netapp-volume.bicep":
                self.made(pools, f"{netapp}/{values['name']}")
                self.made(f"{pools}/volumes", f"{netapp}/{values['name']}/{values['name']}", self.vnet)
            case "modules/lustre.bicep":
                self.made("Microsoft.StorageCache/amlFilesystems", str(values["name"]), self.vnet)
            case _:
                raise AssertionError(f"say here what {source} makes")

    def _server(self) -> None:
        plan = self.plan
        if plan.access.creates_bastion:
            address = self.made("Microsoft.Network/publicIPAddresses", f"{plan.names.bastion}-ip")
            self.made("Microsoft.Network/bastionHosts", plan.names.bastion, self.vnet, address)
        identities = "Microsoft.ManagedIdentity/userAssignedIdentities"
        self.made(identities, plan.names.node_identity, principalId=NODE_PRINCIPAL)
        scope = f"/subscriptions/{SUBSCRIPTION}"
        group = f"{scope}/resourceGroups/{self.group}"
        self._give("nodes", NODE_PRINCIPAL, group, f"{scope}/resourceGroups/metrics-rg/x")
        if plan.server:
            self._own_server(plan.server)
            self._give("server", SERVER_PRINCIPAL, scope, group, self.vnet)
        elif plan.existing_server and plan.existing_server.principal_id:
            principal = plan.existing_server.principal_id
            self._give("theirs", principal, group)
            self.azure.assignments["before"] = self._role(principal, scope, OTHERS)
            self.azure.assignments["beside"] = self._role(principal, group, OTHERS) | {"roleDefinitionName": "Reader"}

    def _give(self, name: str, principal: str, *scopes: str) -> None:
        for number, scope in enumerate(scopes):
            self.azure.assignments[f"{name}-{number}"] = self._role(principal, scope)

    def _own_server(self, server: ServerPlan) -> None:
        uses = [self.vnet]
        if self.plan.network.access == "public":
            uses.append(self.made("Microsoft.Network/publicIPAddresses", f"{server.vm_name}-ip"))
            uses.append(self.made("Microsoft.Network/networkSecurityGroups", f"{server.vm_name}-nsg"))
        disk = f"{server.vm_name}_disk2_0123456789abcdef0123456789abcdef"
        data = self.id("Microsoft.Compute/disks", disk)
        vm = virtual_machine(KEY, IMAGE) | {"identity": {"principalId": SERVER_PRINCIPAL}, "customData": custom_data()}
        vm["storageProfile"]["dataDisks"] = [{"managedDisk": {"id": data}}]
        self._machine(server.vm_name, uses, vm)
        tags = self.tags if self.disks_have_tags else None
        self.made("Microsoft.Compute/disks", disk, by=IMPLICIT, tags=tags)
        if server.jumpbox:
            self._machine(server.jumpbox.vm_name, [self.vnet], virtual_machine(KEY, "latest"))

    def _machine(self, name: str, uses: list[str], values: dict[str, object]) -> None:
        machines, interfaces = "Microsoft.Compute/virtualMachines", "Microsoft.Network/networkInterfaces"
        vm = self.id(machines, name)
        nic = self.made(interfaces, f"{name}-nic", *uses, goes_with=vm)
        self.azure.add(vm, machines, OURS, uses=[nic], tags=self.tags, **values)
        self.made("Microsoft.Compute/disks", f"{name}_OsDisk_1_0123456789abcdef", by=IMPLICIT, goes_with=vm)

    def _rest(self) -> None:
        """The first boot has run, and the cluster has a scheduler and a scale set."""
        if self.plan.server:
            vm = f"{self.plan.server.vm_name}/cycleforge-bootstrap"
            self.made("Microsoft.Compute/virtualMachines/extensions", vm, is_part=True)
        node = self.id("Microsoft.Compute/virtualMachines", "scheduler-1")
        nic = self.made("Microsoft.Network/networkInterfaces", "scheduler-1-nic", self.vnet, by=NODES, goes_with=node)
        self.made("Microsoft.Compute/virtualMachines", "scheduler-1", nic, by=NODES)
        self.made("Microsoft.Compute/virtualMachineScaleSets", "htc-abc", self.vnet, by=NODES)


def custom_data() -> str:
    """The text that every server was created with."""
    from generator.files import assets

    return (assets.root() / CLOUD_INIT).read_text()
