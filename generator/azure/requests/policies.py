"""What policies say of a resource that is not there yet."""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"

RESTRICTIONS = Request(
    "POST",
    "/{scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions",
    "2022-03-01",
    f"{_SPEC}/policyinsights/resource-manager/Microsoft.PolicyInsights/stable/2022-03-01/checkPolicyRestrictions.json",
    changes_nothing=True,
)
