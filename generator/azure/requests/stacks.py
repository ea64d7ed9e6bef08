"""Deployment stacks of the subscription: judge one, begin it; deletion.py reads and deletes them.

The source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"

_STACKS = (
    f"{_SPEC}/resources/resource-manager/Microsoft.Resources/deploymentStacks/stable/2024-03-01/deploymentStacks.json"
)
_PATH = "/subscriptions/{subscription}/providers/Microsoft.Resources/deploymentStacks/{name}"

VALIDATE = Request("POST", f"{_PATH}/validate", "2024-03-01", _STACKS, changes_nothing=True)
BEGIN = Request("PUT", _PATH, "2024-03-01", _STACKS)
