"""What a template would create, without creating it: for validation and for what-if.

`reference()` and the outputs of nested deployments are not known then. A nested deployment whose names, conditions or
loops depend on them is left out as a whole, with a diagnostic; a resource whose own id does is "Unsupported".
Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-what-if (limits, short circuit)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.bed.bicep.values import EvaluationError, Late, UndecidedError, is_late

from .exchange import RefusedError
from .live import DEPLOYMENT, Live, Piece, body_of, invalid
from .rights import allowed
from .state import Caller, State


@dataclass
class Static(Live):
    """A template that is only looked at."""

    def _call_reference(self, target: str, *options: str) -> Any:
        return Late(f"reference('{target.rpartition('/')[2]}')")  # a name may have no slash


@dataclass
class Expanded:
    """One resource of the template or of a nested one."""

    id: str
    kind: str
    symbol: str
    deployment: str
    """Id of the deployment in which it is."""
    body: dict[str, Any] | None
    """None when it cannot be told."""
    unsupported: str | None = None


@dataclass
class Expansion:
    """All of it."""

    resources: list[Expanded] = field(default_factory=list)
    deployments: list[Expanded] = field(default_factory=list)
    diagnostics: list[dict[str, Any]] = field(default_factory=list)


_UNKNOWN = (
    "Changes to the resource declared at '{0}' cannot be analyzed because its resource ID or API version cannot be "
    "calculated until the deployment is under way. Please see https://aka.ms/WhatIfUnidentifiableResource for help."
)


def expand(static: Static, deployment: str) -> Expansion:
    """The resources of a deployment with this id."""
    found = Expansion()
    try:
        _into(found, static, deployment)
    except EvaluationError as error:
        raise invalid(str(error)) from None
    return found


def _into(found: Expansion, static: Static, deployment: str) -> None:
    for piece in static.pieces():
        if piece.kind == DEPLOYMENT:
            found.deployments.append(Expanded(piece.id, piece.kind, piece.symbol, deployment, None))
            _nested(found, static, piece)
        elif is_late(piece.id):
            place = _UNKNOWN.format(f"resources.{piece.symbol}")
            found.resources.append(Expanded(piece.id, piece.kind, piece.symbol, deployment, None, place))
        else:
            found.resources.append(Expanded(piece.id, piece.kind, piece.symbol, deployment, _body(piece)))


def _body(piece: Piece) -> dict[str, Any] | None:
    try:
        return body_of(piece)
    except UndecidedError:
        return None


def _nested(found: Expansion, static: Static, piece: Piece) -> None:
    inner = Expansion()
    given = static.nested(piece)
    assert isinstance(given, Static)
    late = is_late(dict(given.given))
    try:
        _into(inner, given, piece.id)
    except UndecidedError:
        cut = True
    else:
        cut = late and any(is_late(each.id) for each in inner.resources)
    if cut:
        found.diagnostics.append({
            "level": "Warning", "code": "NestedDeploymentShortCircuited", "target": piece.id,
            "message": f"A nested deployment got short-circuited and all its resources got skipped from validation. "
                       f"This is due to a nested template having a parameter that was not fully evaluated: "
                       f"'{piece.name}'.",
        })  # fmt: skip
        return
    found.resources += inner.resources
    found.deployments += inner.deployments
    found.diagnostics += inner.diagnostics


# ---- what validation refuses


def refused(state: State, caller: Caller, name: str, found: Expansion) -> RefusedError | None:
    """The error of a template that may not be deployed.

    Forms: Azure-Samples/azure-search-openai-demo#242 (rights), and `details` of
    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-template-deployment
    """
    forbidden = list(_forbidden(state, caller, found))
    if forbidden:
        text = (
            "Deployment failed with multiple errors"
            if len(forbidden) > 1
            else "The template deployment failed with error"
        )
        return RefusedError(400, "InvalidTemplateDeployment", f"{text}: '{':'.join(forbidden)}'.")
    details = [refusal.error | {"target": each.id} for each in found.resources
               for pattern, refusal in state.refusals if _matches(each.id, pattern)]  # fmt: skip
    if not details:
        return None
    text = (
        f"The template deployment '{name}' is not valid according to the validation procedure. The tracking id is "
        "'00000000-0000-0000-0000-000000000000'. See inner errors for details."
    )
    return RefusedError(400, "InvalidTemplateDeployment", text, details)


def _matches(resource_id: str, pattern: str) -> bool:
    return fnmatchcase(resource_id.lower(), pattern.lower())


def _forbidden(state: State, caller: Caller, found: Expansion) -> Iterator[str]:
    who = f"The client '{caller.client_id}' with object id '{caller.object_id}'"
    for each in [*found.deployments, *found.resources]:
        if is_late(each.id):
            continue
        is_group = each.kind == "Microsoft.Resources/resourceGroups"
        kind = "Microsoft.Resources/subscriptions/resourceGroups" if is_group else each.kind
        if not allowed(state, caller, f"{kind}/write", each.id):
            name = each.id.rpartition("/")[2]
            yield (
                f"Authorization failed for template resource '{name}' of type '{each.kind}'. {who} does not have "
                f"permission to perform action '{kind}/write' at scope '{each.id}'."
            )
