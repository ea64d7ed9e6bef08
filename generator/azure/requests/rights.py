"""Permissions, deny assignments, roles and policies.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_AUTHORIZATION = f"{_SPEC}/authorization/resource-manager/Microsoft.Authorization"

PERMISSIONS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/permissions",
    "2022-04-01",
    f"{_AUTHORIZATION}/stable/2022-04-01/authorization-RoleDefinitionsCalls.json",
)
DENY_ASSIGNMENTS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/denyAssignments",
    "2022-04-01",
    f"{_AUTHORIZATION}/stable/2022-04-01/authorization-DenyAssignmentCalls.json",
    query=(("$filter", "atScope()"),),
)
ROLES_OF_PRINCIPAL = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/roleAssignments",
    "2022-04-01",
    f"{_AUTHORIZATION}/stable/2022-04-01/authorization-RoleAssignmentsCalls.json",
    query=(("$filter", "principalId eq '{principal}'"),),
)
ASSIGNMENTS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/policyAssignments",
    "2023-04-01",
    f"{_AUTHORIZATION}/stable/2023-04-01/policyAssignments.json",
)
RESTRICTIONS = Request(
    "POST",
    "/{scope}/providers/Microsoft.PolicyInsights/checkPolicyRestrictions",
    "2022-03-01",
    f"{_SPEC}/policyinsights/resource-manager/Microsoft.PolicyInsights/stable/2022-03-01/checkPolicyRestrictions.json",
    changes_nothing=True,
)
