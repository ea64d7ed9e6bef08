"""Secrets for a deployment, from the environment or typed without echo: never stored, never an argument."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from ..errors import CannotRead
from ..operate.secrets import Secrets
from ..plan.parameters import SecretPlan

_TRIES = 3


class Typed(Secrets):
    """From the environment, or typed."""

    def must_be_there(self, wanted: Iterable[SecretPlan], otherwise: str = "") -> None:
        """Raise CannotRead before anything is asked of Azure, where nobody could be asked later."""
        if not sys.stdin.isatty():
            super().must_be_there(wanted, otherwise or ", and there is no terminal on which to ask")

    def values(self, wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
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
