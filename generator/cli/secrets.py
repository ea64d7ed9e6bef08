"""Secrets for a deployment, from the environment or typed without echo: never stored, never an argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from ..errors import CannotRead
from ..plan.types import SecretPlan

_TRIES = 3


def must_be_there(wanted: Iterable[SecretPlan]) -> None:
    """Raises CannotRead before anything is asked of Azure, where nobody could be asked later."""
    missing = [secret.variable for secret in wanted if not os.environ.get(secret.variable)]
    if missing and not sys.stdin.isatty():
        raise CannotRead(
            f"{missing[0]} is not set, and there is no terminal on which to ask",
            "export it (from a vault, not from a file), or set it to the id of a secret in a Key Vault: "
            "/subscriptions/…/vaults/VAULT/secrets/NAME",
        )


def values(wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
    """Variable → value."""
    return {secret.variable: os.environ.get(secret.variable) or _asked(secret) for secret in wanted}


def _asked(secret: SecretPlan) -> str:
    from getpass import getpass

    for _ in range(_TRIES):
        print(secret.description, file=sys.stderr)
        typed = getpass(f"{secret.title}: ")
        if not secret.min_length <= len(typed) <= secret.max_length:
            print(f"  it must have {secret.min_length} to {secret.max_length} characters", file=sys.stderr)
        elif getpass("once more: ") != typed:
            print("  these are two different ones", file=sys.stderr)
        else:
            return typed
    raise CannotRead(f"no {secret.variable} was given", "run the command again; nothing was changed")
