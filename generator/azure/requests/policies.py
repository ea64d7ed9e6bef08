"""Assigned policies, and what they say of a resource that is not there yet."""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"

ASSIGNMENTS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/policyAssignments",
    "2023-04-01",
    f"{_SPEC}/authorization/resource-manager/Microsoft.Authorization/stable/2023-04-01/policyAssignments.json",
)
RESTRICTIONS = Request(
    "POST",
    "/{scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions",
    "2022-03-01",
    f"{_SPEC}/policyinsights/resource-manager/Microsoft.PolicyInsights/stable/2022-03-01/checkPolicyRestrictions.json",
    changes_nothing=True,
)
