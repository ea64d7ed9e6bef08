"""Secrets of a deployment, from the environment: never stored, never an argument."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import CannotRead
from ..plan.parameters import SecretPlan

IN_VAULT = "/subscriptions/…/resourceGroups/…/providers/Microsoft.KeyVault/vaults/VAULT/secrets/NAME"


def must_be_right(known: Iterable[SecretPlan]) -> None:
    """Raise CannotRead for a value of the environment that breaks the rules, before anything is asked of Azure.

    What stands in a Key Vault is read by Azure alone.
    """
    for secret in known:
        value = os.environ.get(secret.variable, "")
        if not value or reference_of(value):
            continue
        if value.startswith("/subscriptions/"):
            raise CannotRead(
                f"{secret.variable} is not the id of a secret in a Key Vault", f"it has the form {IN_VAULT}"
            )
        broken = secret.broken_by(value)
        if broken:
            raise CannotRead(
                f"{secret.variable} is not a password that everything takes: it must have {'; '.join(broken)}",
                "export another one; the README of the built folder has a line that prints a new one",
            )


class Secrets:
    """Secrets as the environment has them; whoever can ask for them, overrides it."""

    def must_be_there(self, wanted: Iterable[SecretPlan], otherwise: str = "") -> None:
        """Raise CannotRead for the first that could not be given later."""
        for secret in wanted:
            if not os.environ.get(secret.variable):
                hint = "export it (from a vault, not from a file), or set it to the id of a secret in a Key Vault"
                raise CannotRead(f"{secret.variable} is not set{otherwise}", f"{hint}: {IN_VAULT}")

    def values(self, wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
        """Variable → value."""
        return {secret.variable: os.environ[secret.variable] for secret in wanted}


def reference_of(value: str) -> dict[str, Any] | None:
    """What a deployment is told of a secret in a Key Vault; None for a value that is the secret itself."""
    from ..azure.bicep import parameter

    reference: dict[str, Any] | None = parameter(value).get("reference")
    return reference
