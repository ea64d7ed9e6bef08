"""Whether an existing network has a Bastion through which `connect`, ssh and the portal reach the server.

Source: https://learn.microsoft.com/azure/bastion/configuration-settings (SKUs and native client support)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

from ...plan.resources import resource_id
from .answers import Found, Item, below, listed_below, same

_PATH = ("network", "access")
_TUNNELLING = ("Standard", "Premium")
_OTHER_WAY = "for a VPN that leads into the network write access: private"


def missing(vnet_id: str, hosts: Iterable[Item]) -> Iterator[Found]:
    """What is wrong with the Bastions of the network; nothing if one of them opens tunnels."""
    ours = [host for host in hosts if _is_of(host, vnet_id)]
    if any(_opens_tunnels(host) for host in ours):
        return
    if not ours:
        text = (
            f"access is bastion, but the existing network {resource_id(vnet_id).name} has no Azure Bastion, and this "
            "deployment creates none there: nothing leads to the server"
        )
        hint = f"let its owner create one of the SKU Standard with native client support; {_OTHER_WAY}"
        yield Found(_PATH, text, hint)
    for host in ours:
        yield Found(_PATH, *_lacking(host))


def _is_of(host: Item, vnet_id: str) -> bool:
    """By its subnet; one of the SKU Developer has none and names the network."""
    subnets = (
        below(each, "properties", "subnet", "id") for each in listed_below(host, "properties", "ipConfigurations")
    )
    networks = [str(each or "").rpartition("/subnets/")[0] for each in subnets]
    return any(same(each, vnet_id) for each in [*networks, below(host, "properties", "virtualNetwork", "id")])


def _opens_tunnels(host: Item) -> bool:
    sku = below(host, "sku", "name")
    return any(same(sku, each) for each in _TUNNELLING) and below(host, "properties", "enableTunneling") is True


def _lacking(host: Item) -> tuple[str, str]:
    name, sku = str(host["name"]), str(below(host, "sku", "name") or "of an unknown kind")
    where = f"--name {quote(name)} --resource-group {quote(resource_id(str(host['id'])).resource_group)}"
    if any(same(sku, each) for each in _TUNNELLING):
        text = f"the Bastion {name} of the existing network opens no tunnels: its native client support is off"
        return text, f"az network bastion update {where} --enable-tunneling true; {_OTHER_WAY}"
    text = f"the Bastion {name} of the existing network has the SKU {sku}, which opens no tunnels"
    return text, f"az network bastion update {where} --sku Standard --enable-tunneling true; {_OTHER_WAY}"
