"""The two ways in which Azure takes a deployment: by itself, or as a deployment stack, which knows what it made.

A stack detaches what its template no longer names, so that nothing is deleted by accident. Azure chooses the name of
its deployment. Sources: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deployment-stacks and
DeploymentStackProperties of the file that generator/azure/requests/stacks.py names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

from ..plan.types import Plan
from ..records import record
from . import az_lines
from .operation_tree import State, state_of
from .reader import Reader
from .refusals import Cause, NotAsked, causes
from .request import Call
from .requests import deletion, deployments, stacks
from .what_if_request import body_of

CONTENT_TAG = "cycleforge-content"
_NO_DENIAL = {"mode": "none"}
"""CycleCloud changes what the deployment made, and so does whoever deletes it."""
_DETACH = {"resources": "detach", "resourceGroups": "detach", "managementGroups": "detach"}
_BEFORE = frozenset({"creating", "validating", "initializing", "waiting"})
"""States of a stack whose own deployment has not begun; it may still name that of an earlier time."""


@record
class Seen:
    """A deployment as Azure has it."""

    id: str
    """Of the deployment whose operations are its parts; empty where there is none yet."""
    state: State
    began: str
    """When it began, as Azure writes it."""
    content: str
    """Digest of the folder that was sent; empty where nobody wrote it."""
    correlation: str
    """Tells two deployments of one name apart."""
    outputs: Mapping[str, Any]
    causes: tuple[Cause, ...]
    denials: Mapping[str, Any] | None = None
    """Deny settings of a stack."""
    managed: tuple[str, ...] = ()
    """Ids of what a stack made."""

    @property
    def denies(self) -> bool:
        """Whether a stack denies anything."""
        return str((self.denials or {}).get("mode") or "none").casefold() != "none"


class Kind(Protocol):
    """One of the ways."""

    name: str
    active: frozenset[str]
    """Codes, in lower case, with which Azure refuses a second one of the same name."""

    def record(self, plan: Plan, reader: Reader) -> Call:
        """The question for it."""

    def seen(self, plan: Plan, reader: Reader, body: Mapping[str, Any]) -> Seen:
        """What the answer says."""

    def beginning(self, plan: Plan, body: dict[str, Any], before: Seen | None) -> Call:
        """What begins it; `body` is that of a plain deployment."""

    def judging(self, plan: Plan, reader: Reader, body: dict[str, Any]) -> Call:
        """The question whether Azure would accept that."""


class _Plain:
    name = "deployment"
    active = frozenset({"deploymentactive"})

    def record(self, plan: Plan, reader: Reader) -> Call:
        del reader
        return deployments.DEPLOYMENT(name=plan.deployment_name)

    def seen(self, plan: Plan, reader: Reader, body: Mapping[str, Any]) -> Seen:
        properties = _properties(body)
        scope = f"/subscriptions/{reader.subscription}"
        began = str(properties.get("timestamp") or "an unknown time")
        return _seen(f"{scope}/providers/Microsoft.Resources/deployments/{plan.deployment_name}", began, body)

    def beginning(self, plan: Plan, body: dict[str, Any], before: Seen | None) -> Call:
        del before
        return replace(deployments.BEGIN(name=plan.deployment_name, body=body), az=az_lines.deployment(plan, "create"))

    def judging(self, plan: Plan, reader: Reader, body: dict[str, Any]) -> Call:
        del reader
        call = deployments.VALIDATE(name=plan.deployment_name, body=body)
        return replace(call, az=az_lines.deployment(plan, "validate"))


class _Stack:
    name = "deployment stack"
    active = frozenset({"deploymentstackinnonterminalstate"})

    def record(self, plan: Plan, reader: Reader) -> Call:
        return deletion.STACK(scope=f"/subscriptions/{reader.subscription}", stack=plan.deployment_name)

    def seen(self, plan: Plan, reader: Reader, body: Mapping[str, Any]) -> Seen:
        del plan, reader
        properties, data = _properties(body), body.get("systemData")
        began = str((data if isinstance(data, Mapping) else {}).get("lastModifiedAt") or "an unknown time")
        own = (
            "" if str(properties["provisioningState"]).lower() in _BEFORE else str(properties.get("deploymentId") or "")
        )
        denials, listed = properties.get("denySettings"), properties.get("resources")
        made = [each.get("id") for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
        return replace(
            _seen(own, began, body),
            denials=denials if isinstance(denials, Mapping) else None,
            managed=tuple(each for each in made if isinstance(each, str)),
        )

    def beginning(self, plan: Plan, body: dict[str, Any], before: Seen | None) -> Call:
        """Deny settings that somebody has made stay."""
        call = stacks.BEGIN(name=plan.deployment_name, body=_of_stack(body, before))
        return replace(call, az=az_lines.stack(plan))

    def judging(self, plan: Plan, reader: Reader, body: dict[str, Any]) -> Call:
        found = reader.find(self.record(plan, reader))
        before = None if found is None else self.seen(plan, reader, found)
        call = stacks.VALIDATE(name=plan.deployment_name, body=_of_stack(body, before))
        return replace(call, az=az_lines.stack(plan, "validate"))


def _of_stack(body: dict[str, Any], before: Seen | None) -> dict[str, Any]:
    """The body of a plain deployment, made that of a stack."""
    sent = {key: value for key, value in body["properties"].items() if key != "mode"}
    denials = dict(before.denials) if before is not None and before.denials else _NO_DENIAL
    return body | {"properties": sent | {"actionOnUnmanage": _DETACH, "denySettings": denials}}


PLAIN: Kind = _Plain()
STACK: Kind = _Stack()


def tagged(plan: Plan, template: Mapping[str, Any], parameters: Mapping[str, Any], content: str) -> dict[str, Any]:
    """What is sent: the template and its parameters, and tags that say whose and which content it is."""
    return body_of(plan, template, parameters) | {"tags": {plan.cleanup.tag: plan.name, CONTENT_TAG: content}}


def _properties(body: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = body.get("properties")
    if not isinstance(properties, Mapping) or not properties.get("provisioningState"):
        raise NotAsked("Azure's answer does not say how the deployment is")
    return properties


def _seen(own: str, began: str, body: Mapping[str, Any]) -> Seen:
    properties = _properties(body)
    outputs = properties.get("outputs")
    return Seen(
        id=own,
        state=state_of(properties["provisioningState"]),
        began=began,
        content=str((body.get("tags") or {}).get(CONTENT_TAG, "")),
        correlation=str(properties.get("correlationId", "")),
        outputs=outputs if isinstance(outputs, Mapping) else {},
        causes=causes(properties.get("error")),
    )
