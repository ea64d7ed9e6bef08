"""Whether an existing network has a Bastion through which `connect`, ssh and the portal reach the server.

Source: https://learn.microsoft.com/azure/bastion/configuration-settings (SKUs and native client support)
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from ...plan.deployment import Plan
from ...plan.resources import resource_id
from ..answers import Item, below, listed_below, same
from ..check import Check, Finding
from ..reader import Reader
from ..requests.network import BASTIONS

_TUNNELLING = ("Standard", "Premium")
_OTHER_WAY = "for a VPN that leads into the network write access: private"


class NoBastion(Check):
    id = "W4614"
    summary = "The existing network has no Bastion that opens tunnels, and access is bastion."
    why = (
        "Nothing is created in an existing network, so its own Bastion is the way in; `connect`, ssh and the portal "
        "need tunnels, which the SKUs Standard and Premium have, with native client support. Everything deploys "
        "without them, but no user reaches it."
    )
    fix = "Let the network's owner create or change the Bastion, or write `access: private` for a VPN in place."
    source = "https://learn.microsoft.com/azure/bastion/native-client"
    question = "whether the existing network has a Bastion that opens tunnels"
    path = ("network", "access")

    def needed(self, plan: Plan) -> bool:
        """Whether somebody else's Bastion is the way in."""
        return plan.network.vnet_id is not None and plan.access.tunnel is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Nothing if one Bastion of the network opens tunnels; all of the subscription are looked at."""
        vnet = resource_id(plan.network.vnet_id or "")
        hosts = reader.pages(BASTIONS(owner=vnet.subscription))
        ours = [host for host in hosts if _is_of(host, plan.network.vnet_id or "")]
        if any(_opens_tunnels(host) for host in ours):
            return
        if not ours:
            text = (
                f"access is bastion, but the existing network {vnet.name} has no Azure Bastion, and this "
                "deployment creates none there: nothing leads to the server"
            )
            hint = f"let its owner create one of the SKU Standard with native client support; {_OTHER_WAY}"
            yield self.finding(self.path, text, hint)
        for host in ours:
            yield self.finding(self.path, *_lacking(host))


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
