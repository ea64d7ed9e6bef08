"""Dated copies of compiled deployments: evidence of an old state, which the demands of Azure must find wanting.

They are the six shipped definitions of commit f798d83 (2026-11-21), compiled by Bicep 0.46; descriptions and the
payload were taken out, and each template that several deployments have is there once. They are never regenerated.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.bed.bicep.template import resources_of_template
from tests.bed.bicep.values import Resource

_FILE = Path(__file__).with_name("compiled-f798d83.json")
NAMES = ("gpt3-h100", "hpc-lab", "llm-a100", "minimal", "mpt-h100", "reference")


@cache
def _content() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(_FILE.read_text())
    for deployment in content["deployments"].values():
        for resource in deployment["resources"]:
            properties = resource.get("properties", {})
            if "template" in properties:
                properties["template"] = content["templates"][properties["template"]]
    return content


def template(name: str) -> dict[str, Any]:
    """The template itself, as Azure receives it; not to be changed."""
    return dict(_content()["deployments"][name])


@cache
def compiled_resources(name: str) -> list[Resource]:
    """What the deployment of that day led to."""
    return resources_of_template(_content()["deployments"][name])
