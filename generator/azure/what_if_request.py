"""Asks Azure what a deployment would do."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..plan.deployment import Plan
from . import az_lines, bicep, unchangeable
from .reader import Reader
from .refusals import NotAsked
from .requests import resource_manager
from .what_if import WhatIf, read

_LIMIT_S = 900
"""Azure takes a large deployment apart for 5 minutes at most, and providers are asked afterwards.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-what-if
"""


def what_if(plan: Plan, reader: Reader, folder: Path, environment: Mapping[str, str]) -> WhatIf:
    """The answer for the built folder. Secrets are not needed: Azure compares none."""
    given = dict(environment) | unchangeable.variables(plan, reader)
    made = bicep.compiled(folder, plan, given)
    return asked(plan, reader, made.template, bicep.with_secrets(made, plan, bicep.stand_ins(plan)))


def asked(plan: Plan, reader: Reader, template: Mapping[str, Any], parameters: Mapping[str, Any]) -> WhatIf:
    """The answer for a template."""
    body = body_of(plan, template, parameters)
    body["properties"]["whatIfSettings"] = {"resultFormat": "FullResourcePayloads"}
    call = resource_manager.what_if(plan.deployment_name, body, az_lines.deployment(plan, "what-if"))
    answer = reader.post(call, _LIMIT_S)
    properties = answer.get("properties")
    if not isinstance(properties, Mapping) or not isinstance(properties.get("changes"), list):
        raise NotAsked("Azure's answer to what-if has no list of changes")
    return read(properties)


def body_of(plan: Plan, template: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent, for what-if as for the deployment."""
    properties = {"mode": "Incremental", "template": template, "parameters": parameters}
    return {"location": plan.location, "properties": properties}
