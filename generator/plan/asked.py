"""What a deployment asks for where the definition leaves it open."""

from __future__ import annotations

from msgspec import Struct

from ..definition.text.values import MissingVariable


class Asked(Struct, frozen=True):
    """A value that the definition left to an unset environment variable and that is asked for at deployment.

    It becomes the parameter `parameter` of `main.bicep` without a default; `main.bicepparam` reads it from the
    environment variable `variable`.
    """

    variable: str
    parameter: str
    description: str

    @property
    def title(self) -> str:
        """The description without its end: what is asked for, in the middle of a sentence."""
        return self.description.split(":")[0].rstrip(".")


SSH_KEY = Asked("CYCLECLOUD_SSH_PUBLIC_KEY", "sshPublicKey", "SSH public key of the administrator.")


HUB_VNET = Asked("HUB_VNET_ID", "hubVnetId", "Resource id of the hub virtual network that owns the gateway.")


def asked_or(value: str | MissingVariable | None, asked: Asked) -> str | Asked:
    """The value, or what asks for it: under the name of the unset variable that the definition reads."""
    if isinstance(value, MissingVariable):
        return Asked(value.name, asked.parameter, asked.description)
    return asked if value is None else value
