"""Secrets for a deployment, from the environment or typed without echo: never stored, never an argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from ..azure.bicep import parameter
from ..errors import CannotRead
from ..plan.types import SecretPlan

_TRIES = 3


_IN_VAULT = "/subscriptions/…/resourceGroups/…/providers/Microsoft.KeyVault/vaults/VAULT/secrets/NAME"


def must_be_right(known: Iterable[SecretPlan]) -> None:
    """Raises CannotRead for a value of the environment that breaks the rules, before anything is asked of Azure.

    What stands in a Key Vault is read by Azure alone.
    """
    for secret in known:
        value = os.environ.get(secret.variable, "")
        if not value or "reference" in parameter(value):
            continue
        if value.startswith("/subscriptions/"):
            raise CannotRead(
                f"{secret.variable} is not the id of a secret in a Key Vault", f"it has the form {_IN_VAULT}"
            )
        broken = secret.broken_by(value)
        if broken:
            raise CannotRead(
                f"{secret.variable} is not a password that everything takes: it must have {'; '.join(broken)}",
                "export another one; the README of the built folder has a line that prints a new one",
            )


def must_be_there(wanted: Iterable[SecretPlan]) -> None:
    """Raises CannotRead before anything is asked of Azure, where nobody could be asked later."""
    missing = [secret.variable for secret in wanted if not os.environ.get(secret.variable)]
    if missing and not sys.stdin.isatty():
        raise CannotRead(
            f"{missing[0]} is not set, and there is no terminal on which to ask",
            f"export it (from a vault, not from a file), or set it to the id of a secret in a Key Vault: {_IN_VAULT}",
        )


def values(wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
    """Variable → value."""
    return {secret.variable: os.environ.get(secret.variable) or _asked(secret) for secret in wanted}


def _asked(secret: SecretPlan) -> str:
    from getpass import getpass

    for _ in range(_TRIES):
        print(secret.description, file=sys.stderr)
        typed = getpass(f"{secret.title}: ")
        broken = secret.broken_by(typed)
        if broken:
            print(f"  it must have {'; '.join(broken)}", file=sys.stderr)
        elif getpass("once more: ") != typed:
            print("  these are two different ones", file=sys.stderr)
        else:
            return typed
    raise CannotRead(f"no {secret.variable} was given", "run the command again; nothing was changed")
