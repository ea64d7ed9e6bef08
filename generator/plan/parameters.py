"""What `main.bicep` asks for: secrets, and values that a definition leaves open."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from .asked import HUB_VNET, SSH_KEY, Asked
from .network import NetworkPlan
from .passwords import AZ, MYSQL, SITE, SLURMDBD, WINDOWS, PasswordRule, Reader, limits, rules
from .server import AdminPlan

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


class SecretPlan(Struct, frozen=True):
    """A secure parameter of `main.bicep`; its value is never in any file."""

    parameter: str
    variable: str
    description: str
    prompt: str
    """What the server asks for when it has to repeat its first boot."""
    min_length: int
    max_length: int
    """In characters."""
    needs: tuple[PasswordRule, ...]

    def broken_by(self, value: str) -> tuple[str, ...]:
        """Return the texts of the rules that the value breaks; none of them has any of it."""
        return tuple(rule.text for rule in self.needs if not re.fullmatch(rule.pattern, value, re.DOTALL))

    @property
    def title(self) -> str:
        """The description without its end: what is asked for, in the middle of a sentence."""
        return self.description.split(":")[0].rstrip(".")


class Variable(Struct, frozen=True):
    """An environment variable that the definition names, or that a secret parameter is read from."""

    name: str
    description: str
    secret: bool
    default: str | None
    example: str


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
