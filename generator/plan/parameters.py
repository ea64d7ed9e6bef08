"""What `main.bicep` asks for: secrets, and values that a definition leaves open."""

from __future__ import annotations

from collections.abc import Sequence

from ..definition.text.source import MissingVariable
from .passwords import AZ, MYSQL, SITE, SLURMDBD, WINDOWS, Reader, limits, rules
from .types import AdminPlan, Asked, NetworkPlan, SecretPlan, Variable

SSH_KEY = Asked("CYCLECLOUD_SSH_PUBLIC_KEY", "sshPublicKey", "SSH public key of the administrator.")
HUB_VNET = Asked("HUB_VNET_ID", "hubVnetId", "Resource id of the hub virtual network that owns the gateway.")
SECRETS = ("CYCLECLOUD_ADMIN_PASSWORD", "SLURM_DATABASE_PASSWORD")
"""Variables with secrets, which no other program gets."""
EXAMPLES = {
    SSH_KEY.parameter: "ssh-ed25519 AAAA… user@host",
    HUB_VNET.parameter: "/subscriptions/…/resourceGroups/…/providers/Microsoft.Network/virtualNetworks/hub",
}
"""Parameter → what such a value looks like."""
RANDOM_TEXT = "printf '%sA-a-1\\n' \"$(openssl rand -hex 16 | sed 's/../&-/g')\""
"""Prints a password that every service here takes: pairs of hexadecimal digits between hyphens have no three letters or
digits in a row, so no part of a name, and the end brings what chance may leave out. Its length is 53 characters."""


def asked_or(value: str | MissingVariable | None, asked: Asked) -> str | Asked:
    """The value, or what asks for it: under the name of the unset variable that the definition reads."""
    if isinstance(value, MissingVariable):
        return Asked(value.name, asked.parameter, asked.description)
    return asked if value is None else value


def secret_plans(
    username: str,
    *,
    has_server: bool,
    has_jumpbox: bool,
    has_accounting: bool,
    database_user: str = "",
    has_new_database: bool = True,
) -> tuple[SecretPlan, ...]:
    """The administrator's password, which the jumpbox shares, and that of the accounting database's user.

    `has_server`: the deployment creates a server; `has_accounting`: it, or the server, needs the database's password.
    That of a database which exists is as its owner chose it.
    """
    admin = _secret(
        "adminPassword",
        SECRETS[0],
        "Password of the CycleCloud administrator",
        f"Password of the CycleCloud administrator '{username}'",
        (SITE, WINDOWS, AZ) if has_jumpbox else (SITE,),
        username,
    )
    database = _secret(
        "databasePassword",
        SECRETS[1],
        "Password of the accounting database's user",
        "Password of the Slurm accounting database",
        (MYSQL, SLURMDBD) if has_new_database else (SLURMDBD,),
        database_user or username,
    )
    wanted = ((admin, has_server), (database, has_accounting))
    return tuple(secret for secret, is_wanted in wanted if is_wanted)


def _secret(
    parameter: str, variable: str, title: str, prompt: str, readers: tuple[Reader, ...], name: str
) -> SecretPlan:
    needed = rules(readers, name)
    least, most = limits(readers)
    description = f"{title}: {'; '.join(rule.text for rule in needed)}."
    return SecretPlan(parameter, variable, description, prompt, least, most, needed)


def asked_values(admin: AdminPlan, network: NetworkPlan) -> tuple[Asked, ...]:
    """The values that the definition left open."""
    candidates = (admin.ssh_public_key, network.hub.vnet_id if network.hub else None)
    return tuple(value for value in candidates if isinstance(value, Asked))


def variables_read(
    named: Sequence[tuple[str, str | None]], asked: tuple[Asked, ...], secrets: tuple[SecretPlan, ...]
) -> tuple[Variable, ...]:
    """What the environment template lists: variables of the definition, then the secrets."""
    result = {
        value.variable: Variable(
            value.variable, value.description, secret=False, default=None, example=EXAMPLES.get(value.parameter, "")
        )
        for value in asked
    }
    for name, default in named:
        text = "Read by cycleforge build, not by the deployment."
        result.setdefault(name, Variable(name, text, secret=False, default=default, example=""))
    for secret in secrets:
        result.setdefault(
            secret.variable, Variable(secret.variable, secret.description, secret=True, default=None, example="")
        )
    return tuple(result.values())
