"""What a verb decides between its steps, as where no user can be asked; whoever can ask, overrides a method.

Secrets come from the environment: they are never stored, and never an argument.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from ..errors import CannotRead
from ..plan.parameters import SecretPlan

if TYPE_CHECKING:
    from ..azure.deployment import Seen
    from ..azure.preflight import Report
    from ..azure.what_if import WhatIf
    from .locker import Locker

IN_VAULT = "/subscriptions/…/resourceGroups/…/providers/Microsoft.KeyVault/vaults/VAULT/secrets/NAME"


def must_be_right(known: Iterable[SecretPlan]) -> None:
    """Raise CannotRead for a value of the environment that breaks the rules, before anything is asked of Azure.

    A value in a Key Vault is read by Azure alone.
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
    def must_be_there(self, wanted: Iterable[SecretPlan], otherwise: str = "") -> None:
        """Raise CannotRead for the first that could not be given later."""
        for secret in wanted:
            if not os.environ.get(secret.variable):
                hint = "export it (from a vault, not from a file), or set it to the id of a secret in a Key Vault"
                raise CannotRead(f"{secret.variable} is not set{otherwise}", f"{hint}: {IN_VAULT}")

    def values(self, wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
        """Return them by variable."""
        return {secret.variable: os.environ[secret.variable] for secret in wanted}


def reference_of(value: str) -> dict[str, Any] | None:
    """What a deployment is told of a secret in a Key Vault; None for a value that is the secret itself."""
    from ..azure.bicep import parameter

    reference: dict[str, Any] | None = parameter(value).get("reference")
    return reference


class Deploying:
    def __init__(self, accept: Collection[str] = ()) -> None:
        """Let preflight's findings with the ids in `accept` stop nothing."""
        self.accept, self.secrets = accept, Secrets()

    def attaches(self, running: Seen, *, is_same: bool) -> bool:
        """Whether to watch what is being deployed already; `is_same`: it is what the folder holds."""
        del running, is_same
        return True

    def goes_on(self, report: Report) -> bool:
        left = self.left(report)
        return left.is_known and not left.fails and not any(each.asks for each in left.findings)

    def left(self, report: Report) -> Report:
        """Leave out the findings that are accepted."""
        return replace(report, findings=tuple(each for each in report.findings if each.rule_id not in self.accept))

    def agrees(self, answer: WhatIf, subscription: str) -> bool:
        """Whether to do what Azure says it would do; data is not deleted without a question."""
        del subscription
        return not any(row.holds_data for row in answer.of("delete"))


class Updating:
    asks = False

    def __init__(
        self, name: str, upload: Callable[[Locker], object], *, now: bool = False, end_jobs: bool = False
    ) -> None:
        """`name` is of the definition, whose projects `upload` sends. `now`: old nodes end at once."""
        self.name, self.upload, self.now, self.end_jobs = name, upload, now, end_jobs
        self.secrets = Secrets()
        self.done: Callable[[str], object] = lambda _: None

    def agrees(self, question: str) -> bool:
        del question
        return True
