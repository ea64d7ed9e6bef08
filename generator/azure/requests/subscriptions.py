"""Subscription, providers, features, rights, resource groups.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_RESOURCES = f"{_SPEC}/resources/resource-manager/Microsoft.Resources"
_AUTHORIZATION = f"{_SPEC}/authorization/resource-manager/Microsoft.Authorization"

SUBSCRIPTION = Request(
    "GET",
    "/subscriptions/{subscription}",
    "2022-12-01",
    f"{_RESOURCES}/subscriptions/stable/2022-12-01/subscriptions.json",
    az="az account show",
)
LOCATIONS = Request(
    "GET",
    "/subscriptions/{subscription}/locations",
    "2022-12-01",
    f"{_RESOURCES}/subscriptions/stable/2022-12-01/subscriptions.json",
    # `az account list-locations` takes no --subscription, so the line is `az rest`.
)
PROVIDERS = Request(
    "GET",
    "/subscriptions/{subscription}/providers",
    "2021-04-01",
    f"{_RESOURCES}/resources/stable/2021-04-01/resources.json",
    az="az provider list",
)
REGISTER = Request(
    "POST",
    "/subscriptions/{subscription}/providers/{namespace}/register",
    "2021-04-01",
    f"{_RESOURCES}/resources/stable/2021-04-01/resources.json",
    az="az provider register --namespace {namespace} --wait",
)
PROVIDER = Request(
    "GET",
    "/subscriptions/{subscription}/providers/{namespace}",
    "2021-04-01",
    f"{_RESOURCES}/resources/stable/2021-04-01/resources.json",
    az="az provider show --namespace {namespace}",
)
FEATURE = Request(
    "GET",
    "/subscriptions/{subscription}/providers/Microsoft.Features/providers/{namespace}/features/{feature}",
    "2021-07-01",
    f"{_RESOURCES}/features/stable/2021-07-01/features.json",
    az="az feature show --namespace {namespace} --name {feature}",
)
GROUP = Request(
    "GET",
    "/subscriptions/{subscription}/resourcegroups/{group}",
    "2021-04-01",
    f"{_RESOURCES}/resources/stable/2021-04-01/resources.json",
    az="az group show --name {group}",
)
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
