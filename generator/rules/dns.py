"""DNS servers of the owner in a new network, and the zones that they must know."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import NewDatabase, Slurm
from ..problems.problem import Problem
from .base import ClusterRule, DefinitionRule, Path, Site
from .routes import address_fault
from .wording import given, quoted

AZURE_DNS = "168.63.129.16"
"""Azure's own resolver: https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
_SERVERS: Path = ("network", "dns_servers")
_OWN_SERVERS = (
    "https://learn.microsoft.com/azure/virtual-network/virtual-networks-name-resolution-for-vms-and-role-instances"
)


def _own_servers(site: Site) -> list[str]:
    """DNS servers of a new network that are not Azure's."""
    network = site.definition.network
    return [] if network.existing is not None or AZURE_DNS in network.dns_servers else network.dns_servers


class DnsServer(DefinitionRule):
    id = "E0328"
    summary = "A DNS server is not the address of a host outside of the network."
    why = "Every VM asks these servers for every name; one that does not answer delays or fails each look-up."
    fix = "Write the IPv4 addresses of your DNS servers, each once."
    source = _OWN_SERVERS

    def check(self, site: Site) -> Iterator[Problem]:
        servers = site.definition.network.dns_servers
        for index, text in enumerate(servers):
            fault = None if text == AZURE_DNS else address_fault(site, text)
            if text in servers[:index]:
                fault = "is in the list already"
            if fault:
                yield self.problem((*_SERVERS, index), f"the DNS server {quoted(text)} {fault}")


class OneDnsServer(DefinitionRule):
    id = "W0329"
    summary = "There is one DNS server only."
    why = "While it is restarted, no name of the cluster resolves: mounts, jobs and the portal fail."
    fix = "Name a second server in network.dns_servers."
    source = "https://azure.github.io/PSRule.Rules.Azure/en/rules/Azure.VNET.SingleDNS/"

    def check(self, site: Site) -> Iterator[Problem]:
        if len(_own_servers(site)) == 1:
            yield self.problem(_SERVERS, f"{_own_servers(site)[0]} is the only DNS server of the network", on_key=True)


class ZoneThatNobodyAsks(DefinitionRule):
    id = "E0330"
    summary = "A new private DNS zone would not be asked by the DNS servers of the network."
    why = (
        "A zone answers in networks that it is linked to, through Azure's own resolver. Your servers are elsewhere, so "
        "the locker or the database would have no private address, and the deployment fails after its slowest parts."
    )
    fix = "Name the zone that your servers resolve; for the locker, `none` where a policy registers the endpoint."
    source = "https://learn.microsoft.com/azure/private-link/private-endpoint-dns-integration"

    def check(self, site: Site) -> Iterator[Problem]:
        network, slurm = site.definition.network, site.definition.slurm
        if not _own_servers(site):
            return
        zones = [("blob_dns_zone", "the locker's endpoint", site.definition.server.existing is None)]
        zones += [("mysql_dns_zone", "the database", slurm is not None and isinstance(slurm.accounting, NewDatabase))]
        for key, what, is_used in zones:
            if is_used and getattr(network, key) == "new":
                text = f"network.{key} is new, but the servers of network.dns_servers do not ask a new zone for {what}"
                path: Path = ("network", key) if given(site, ("network", key)) else _SERVERS
                yield self.problem(path, text, f"{key}: /subscriptions/…/privateDnsZones/…", on_key=True)


class DatabaseZoneNotLinked(ClusterRule):
    id = "E0370"
    summary = "Nothing links the private DNS zone of the database to the new network."
    why = (
        "Azure creates a database server in a subnet only if the network is linked to the server's zone, whichever DNS "
        "servers the network asks; else it refuses the server (VnetNotLinkedToPrivateDnsZone)."
    )
    fix = (
        "Leave link_dns_zones out, so that the deployment links the zone, or set mysql_dns_zone: new. Silence this "
        "rule where the network already exists from an earlier deployment and the owner of the zone has linked it."
    )
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-networking-vnet"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        network, path = site.definition.network, ("network", "link_dns_zones")
        is_linked = network.existing is not None or network.link_dns_zones or network.mysql_dns_zone == "new"
        if isinstance(slurm.accounting, NewDatabase) and not is_linked:
            text = "Azure refuses the database server, because link_dns_zones is false and nothing else links its zone"
            hint = "link_dns_zones: true" if _own_servers(site) else "link_dns_zones: true, or mysql_dns_zone: new"
            yield self.problem(path, text, hint)


class NodeNames(ClusterRule):
    id = "W0350"
    summary = "The names of the nodes are those of someone else's DNS servers to resolve."
    why = (
        "Azure resolves the names of VMs in their own network only, not through DNS servers of others. Scheduler, "
        "login nodes and MPI jobs find each other by name."
    )
    fix = (
        "Let the nodes register themselves with these servers, or in a private DNS zone that is linked to the network "
        "with registration and that the servers forward to; then silence this rule with how it is done."
    )
    source = _OWN_SERVERS

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if _own_servers(site):
            text = "the nodes' own names must be resolved by network.dns_servers"
            yield self.problem(_SERVERS, text, on_key=True)
