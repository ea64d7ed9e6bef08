"""What an existing network and its subnets must be, as far as the definition says what they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ..plan.addresses import needed_addresses, smallest_subnet
from ..plan.network import existing_subnets, prefix_lengths
from ..plan.subnet_kinds import SubnetRole
from ..plan.subnets import compute_name, kind_of_role
from ..problems.problem import Problem
from ..words.counts import counted
from .addresses import usable_addresses
from .base import DefinitionRule, Path, Site
from .prefixes import prefix
from .resource_ids import resource_id_fault
from .wording import quoted

_EXISTING: Path = ("network", "existing")
_SUBNETS: Path = (*_EXISTING, "subnets")
NO_DELEGATION = "none"


def _path(site: Site, role: SubnetRole) -> Path:
    """Where the subnet of a role is named."""
    existing, name = site.definition.network.existing, compute_name(role)
    if existing is None or name is None:
        return (*_SUBNETS, role)
    return (*_EXISTING, "compute_subnets", [each.name for each in existing.compute_subnets].index(name))


class NetworkElsewhere(DefinitionRule):
    id = "E0349"
    summary = "The existing network is in another subscription or region."
    why = (
        "Network cards and private endpoints, and with them server, nodes and file systems, must be in the "
        "subscription and the region of their network. Only a peering may cross both."
    )
    fix = "Deploy into the network's subscription and region, or peer a new network with it: access hub."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-network-interface"

    def check(self, site: Site) -> Iterator[Problem]:
        network, own = site.definition.network.existing, site.definition.azure.subscription_id
        if network is None:
            return
        malformed = resource_id_fault(network.vnet_id, "Microsoft.Network", "virtualNetworks")
        if not malformed and own is not None and network.vnet_id.split("/")[2].lower() != own.lower():
            text = f"the network is in subscription {network.vnet_id.split('/')[2]}, the deployment in {own}"
            yield self.problem((*_EXISTING, "vnet_id"), text)
        place = "".join((network.location or site.definition.location).lower().split())
        if place != site.definition.location.lower():
            text = f"the network is in {network.location}, the deployment in {site.definition.location}"
            yield self.problem((*_EXISTING, "location"), text)


class _AboutSubnets(DefinitionRule):
    def _is_named(self, site: Site, role: str) -> bool:
        """False for the endpoint in the server's subnet, which is reported as the server's."""
        existing = site.definition.network.existing
        if existing is None or compute_name(role) is not None:
            return existing is not None
        return getattr(existing.subnets, role) is not None


class Delegation(_AboutSubnets):
    id = "E0359"
    summary = "An existing subnet has not the delegation that its use needs."
    why = "NetApp Files and MySQL take a subnet that is delegated to them, and nothing else can be in such a subnet."
    fix = "Have the subnet delegated as the message says, or use another one."
    source = "https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        subnets = existing_subnets(site.definition)
        for role, subnet in subnets.items():
            wanted, said = kind_of_role(role).delegation, subnet.delegation
            if said is not None and said.lower() != (wanted or NO_DELEGATION).lower() and self._is_named(site, role):
                need = f"must be delegated to {wanted}" if wanted else "must not be delegated"
                text = f"the {role} subnet {quoted(subnet.name)} {need}; the definition says {quoted(said)}"
                yield self.problem((*_path(site, role), "delegation"), text)
        for (one, first), (two, second) in combinations(subnets.items(), 2):
            own = next((role for role in (two, one) if kind_of_role(role).delegation), None)
            if first.name.lower() == second.name.lower() and own is not None and one != two:
                other = one if own == two else two
                text = (
                    f"{quoted(first.name)} cannot be the {own} and the {other} subnet: it is delegated to one service"
                )
                yield self.problem(_path(site, own), text, on_key=True)


class ExistingTooSmall(DefinitionRule):
    id = "E0360"
    summary = "An existing subnet has too few free addresses."
    why = "A node, a file system or an endpoint that gets no address is not created; the deployment fails late."
    fix = "Use a larger subnet, or lower max_nodes."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"

    def check(self, site: Site) -> Iterator[Problem]:
        lengths, needs = prefix_lengths(site.definition), needed_addresses(site.definition)
        subnets = existing_subnets(site.definition)
        shares = "endpoints" in subnets and subnets.get("server") == subnets["endpoints"]
        for role, subnet in subnets.items():
            known = prefix(subnet.prefix) if subnet.prefix is not None else None
            if known is None or (role == "endpoints" and shares):
                continue
            path: Path = (*_path(site, role), "prefix")
            need = needs.get(role)
            if need is None:
                longest = smallest_subnet(site.definition, role, lengths.get(role))
                if known.prefixlen > longest:
                    yield self.problem(
                        path, f"the {role} subnet {known} is smaller than /{longest}, which it must have"
                    )
                continue
            need += 1 if role == "server" and shares else 0
            free = max(0, usable_addresses(known) - subnet.addresses_in_use)
            if free < need:
                used = f", {subnet.addresses_in_use} of them in use" if subnet.addresses_in_use else ""
                has = f"{counted(usable_addresses(known), 'address')}{used}"
                text = f"the {role} subnet {known} has {has}; the deployment may need {need}"
                yield self.problem(path, text)


class ExistingOverlap(_AboutSubnets):
    id = "E0369"
    summary = "Two existing subnets are said to have overlapping prefixes."
    why = "Azure has no such subnets, so at least one prefix is wrong, and with it what was checked by it."
    fix = "Copy the prefixes from `az network vnet subnet list`."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"

    def check(self, site: Site) -> Iterator[Problem]:
        known = {
            role: (subnet.name, place)
            for role, subnet in existing_subnets(site.definition).items()
            if subnet.prefix is not None and (place := prefix(subnet.prefix)) is not None
        }
        for (one, (first_name, first)), (two, (name, place)) in combinations(known.items(), 2):
            if first_name != name and first.overlaps(place) and self._is_named(site, one):
                text = f"the {two} subnet {place} overlaps the {one} subnet {first}"
                yield self.problem((*_path(site, two), "prefix"), text)
