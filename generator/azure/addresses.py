"""Where a deployment's machines are reached, as Azure knows it without anyone's login on the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from ..plan.deployment import Plan
from ..plan.resources import resource_id
from .answers import Item, below, listed_below
from .reader import Reader
from .requests import compute, network
from .requests.resource_manager import by_id
from .resource_ids import network_id, server_id


def of_server(plan: Plan, reader: Reader) -> str | None:
    """Return the first address of the kind that users reach; None if the server is missing or has none."""
    machine = reader.find(by_id(server_id(plan, reader.subscription))) or {}
    for interface in listed_below(machine, "properties", "networkProfile", "networkInterfaces"):
        found = reader.get(by_id(str(interface.get("id"))))
        for address in _of_interface(found, plan.access.address_field, reader):
            return address
    return None


def _of_interface(interface: Item, kind: Literal["privateIps", "publicIps"], reader: Reader) -> Iterator[str]:
    for each in listed_below(interface, "properties", "ipConfigurations"):
        address = below(each, "properties", "privateIPAddress")
        if kind == "publicIps":
            public = below(each, "properties", "publicIPAddress", "id")
            address = below(reader.get(by_id(public)), "properties", "ipAddress") if public else None
        if address:
            yield str(address)


def bastion(vnet_id: str, reader: Reader) -> tuple[str, str] | None:
    """Name and resource group of the Bastion in someone else's network; None where there is none."""
    for host in reader.pages(network.BASTIONS(owner=resource_id(vnet_id).subscription)):
        if _is_in(host, vnet_id):
            return str(host["name"]), resource_id(str(host["id"])).resource_group
    return None


def of_login_node(plan: Plan, cluster: str, reader: Reader) -> str | None:
    """Return the address of a login node; None if Azure knows none.

    CycleCloud tags what it creates with the name of the cluster and with the node array's, but no node of an array with
    its own name: https://learn.microsoft.com/azure/cyclecloud/how-to/tag-nodes. Machines of a flexible scale set have
    network interfaces like others, those of a uniform one only below it: https://learn.microsoft.com/cli/azure/vmss/nic
    """
    # A cluster of the same name may be of another server, in another network.
    vnet_id = network_id(plan, reader.subscription)
    found = _private(_of_login(reader.pages(network.INTERFACES()), cluster), vnet_id)
    for scale_set in _of_login(reader.pages(compute.ALL_SCALE_SETS()), cluster) if not found else ():
        at = resource_id(str(scale_set["id"]))
        call = compute.SCALE_SET_INTERFACES(group=at.resource_group, name=at.name)
        found = found or _private(reader.find_pages(call), vnet_id)
    return min(found, default=None)


def _of_login(resources: Iterable[Item], cluster: str) -> Iterator[Item]:
    for each in resources:
        array = str(below(each, "tags", "CycleCloudNodeArray") or "")
        if below(each, "tags", "ClusterName") == cluster and array.endswith("/login"):
            yield each


def _private(interfaces: Iterable[Item], vnet_id: str) -> list[str]:
    found = []
    for each in interfaces:
        first = next(iter(listed_below(each, "properties", "ipConfigurations")), {})
        if _is_in(each, vnet_id) and (address := below(first, "properties", "privateIPAddress")):
            found.append(str(address))
    return found


def _is_in(item: Item, vnet_id: str) -> bool:
    first = next(iter(listed_below(item, "properties", "ipConfigurations")), {})
    subnet = str(below(first, "properties", "subnet", "id") or "")
    return subnet.casefold().startswith(f"{vnet_id.casefold().rstrip('/')}/")
