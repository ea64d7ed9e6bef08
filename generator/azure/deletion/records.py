"""The deployment's records in Azure's history: they go last, for they also tell whose roles may be left."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ...plan.deployment import Plan
from ..answers import below, text_below
from ..reader import Reader
from ..refusals import Refused
from ..requests import resource_manager
from ..resource_ids import name_of
from .seen import NotSeen, Record

_TYPE = "microsoft.resources/deployments"


def records_of(plan: Plan, reader: Reader) -> tuple[tuple[Record, ...], tuple[str, ...], tuple[NotSeen, ...]]:
    """Return the records of the deployment's parts and its own, the identities in them, and what is out of sight.

    The deployment's own record is the last, because it leads to the others.
    """
    names = (*_names_in_stack(plan, reader), plan.deployment_name)
    asked = (reader.find(resource_manager.deployment(name)) for name in names)
    own = [found for found in asked if found is not None]
    fingerprints = tuple(_fingerprints(plan, reader))
    listed = (reader.pages(resource_manager.operations(text_below(each, "id"))) for each in own)
    parts = sorted({part for operations in listed for part in _parts(operations)})
    answers = reader.together([partial(_part, reader, each) for each in parts])
    found = [each for each in answers if isinstance(each, dict)]
    return (
        (*fingerprints, *map(_record, found), *map(_record, own)),
        tuple(principal for each in found for principal in _principals(plan, each)),
        tuple(each for each in answers if isinstance(each, NotSeen)),
    )


def _names_in_stack(plan: Plan, reader: Reader) -> list[str]:
    """The names that Azure gave to the deployments of the deployment stack: each update has one of its own.

    Source of their form: `deploymentId` in DeploymentStackSubscriptionGet.json of https://github.com/Azure/azure-rest-api-specs.
    """
    stack = reader.find(resource_manager.stack(reader.subscription, plan.deployment_name))
    if stack is None:
        return []
    last = name_of(str(below(stack, "properties", "deploymentId") or ""))
    form = re.compile(rf"{re.escape(plan.deployment_name)}-\d{{8}}-[0-9a-z]+")
    every = (text_below(each, "name") for each in reader.pages(resource_manager.deployments()))
    return sorted({*filter(form.fullmatch, every), *filter(None, [last])})


def _fingerprints(plan: Plan, reader: Reader) -> Iterator[Record]:
    """What the server records at the end of its first boot: no part of the deployment made it."""
    if plan.server is not None:
        group = f"/subscriptions/{reader.subscription}/resourceGroups/{plan.resource_group}"
        own = f"{group}/providers/Microsoft.Resources/deployments/{plan.nested_stem}-fingerprints"
        found = reader.find(resource_manager.by_id(own))
        if found is not None:
            yield _record(found)


def _parts(operations: Any) -> set[str]:
    """Ids of the deployments that it consists of."""
    targets = [below(each, "properties", "targetResource") for each in operations]
    return {
        text_below(each, "id")
        for each in targets
        if isinstance(each, dict) and str(each.get("resourceType")).casefold() == _TYPE
    }


def _part(reader: Reader, resource_id: str) -> Mapping[str, Any] | NotSeen | None:
    try:
        return reader.find(resource_manager.by_id(resource_id))
    except Refused as reason:
        return NotSeen(f"whether there is the record {resource_id}", str(reason))


def _record(answer: Mapping[str, Any]) -> Record:
    return Record(text_below(answer, "id"), str(below(answer, "properties", "provisioningState") or ""))


def _principals(plan: Plan, answer: Mapping[str, Any]) -> Iterator[str]:
    """Identities that a part gave roles to; the server's is ours only where the deployment made the server."""
    for name in ("serverPrincipalId", "nodePrincipalId") if plan.server else ("nodePrincipalId",):
        found = below(answer, "properties", "parameters", name, "value")
        if isinstance(found, str) and found:
            yield found
