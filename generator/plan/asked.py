"""Values that a definition may leave open: they become parameters of `main.bicep`."""

from __future__ import annotations

from ..definition.text.source import MissingVariable
from .types import Asked, SecretPlan

SSH_KEY = Asked("CYCLECLOUD_SSH_PUBLIC_KEY", "sshPublicKey", "SSH public key of the administrator.")
HUB_VNET = Asked("HUB_VNET_ID", "hubVnetId", "Resource id of the hub virtual network that owns the gateway.")
EXAMPLES = {
    SSH_KEY.parameter: "ssh-ed25519 AAAA… user@host",
    HUB_VNET.parameter: "/subscriptions/…/resourceGroups/…/providers/Microsoft.Network/virtualNetworks/hub",
}
"""Parameter → what such a value looks like."""
ADMIN_PASSWORD = SecretPlan(
    "adminPassword",
    "CYCLECLOUD_ADMIN_PASSWORD",
    "Password of the CycleCloud administrator: lower case, upper case, digits and symbols.",
)
DATABASE_PASSWORD = SecretPlan(
    "databasePassword", "SLURM_DATABASE_PASSWORD", "Password of the accounting database's user."
)


def asked_or(value: str | MissingVariable | None, asked: Asked) -> str | Asked:
    """The value, or what asks for it: under the name of the unset variable that the definition reads."""
    if isinstance(value, MissingVariable):
        return Asked(value.name, asked.parameter, asked.description)
    return asked if value is None else value
