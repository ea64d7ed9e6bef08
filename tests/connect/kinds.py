"""A deployment of each kind of access, and whether its tunnels are gone."""

from __future__ import annotations

import signal

from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.ssh.deployed import User

KINDS = {
    "byhub": "network: {access: hub, hub: {vnet_id: HUB}}".replace(
        "HUB",
        "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/h/providers/Microsoft.Network/virtualNetworks/h",
    ),
    "bypublic": "network: {access: public, allowed_sources: [203.0.113.0/24]}",
    "bybastion": "network: {access: bastion}",
}
EXISTING = """
network:
  address_space: null
  existing:
    vnet_id: GROUP/net-rg/providers/Microsoft.Network/virtualNetworks/corp
    subnets: {server: server, compute: compute}
  access: bastion
""".replace("GROUP", f"/subscriptions/{SUBSCRIPTION}/resourceGroups")
"""A network of someone else, with its own Bastion."""


def gone(user: User) -> bool:
    """Whether no tunnel is left; the last one may need a moment to end."""
    for _ in range(200):
        if not user.tunnels():
            return True
        signal.sigtimedwait([], 0.05)
    return False
