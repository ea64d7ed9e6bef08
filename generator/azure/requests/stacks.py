"""Deployment stacks of the subscription: begin one; deletion.py reads and deletes them.

The source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"

BEGIN = Request(
    "PUT",
    "/subscriptions/{subscription}/providers/Microsoft.Resources/deploymentStacks/{name}",
    "2024-03-01",
    f"{_SPEC}/resources/resource-manager/Microsoft.Resources/deploymentStacks/stable/2024-03-01/deploymentStacks.json",
)
