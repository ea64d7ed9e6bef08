"""What `delete` asks beside what others ask, and everything that it removes.

Each source is a file of https://github.com/Azure/azure-rest-api-specs, or the page of a resource type.
"""

from __future__ import annotations

from ... import catalog
from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_RESOURCES = f"{_SPEC}/resources/resource-manager/Microsoft.Resources"
_AUTHORIZATION = f"{_SPEC}/authorization/resource-manager/Microsoft.Authorization"
_TYPES = "https://learn.microsoft.com/azure/templates"
_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}"

# ---- asked

ROLES_OF_PRINCIPAL = Request(
    "GET",
    "/{scope}/providers/Microsoft.Authorization/roleAssignments",
    "2022-04-01",
    f"{_AUTHORIZATION}/stable/2022-04-01/authorization-RoleAssignmentsCalls.json",
    query=(("$filter", "principalId eq '{principal}'"),),
)
MACHINE = Request(
    "GET",
    "/{scope}/providers/Microsoft.Compute/virtualMachines/{machine}",
    "2025-04-01",
    f"{_TYPES}/microsoft.compute/2025-04-01/virtualmachines",
)
IDENTITY = Request(
    "GET",
    "/{scope}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{identity}",
    "2024-11-30",
    f"{_TYPES}/microsoft.managedidentity/2024-11-30/userassignedidentities",
)
INTERFACE = Request(
    "GET",
    "/{scope}/providers/Microsoft.Network/networkInterfaces/{interface}",
    "2025-05-01",
    f"{_TYPES}/microsoft.network/2025-05-01/networkinterfaces",
)
PEERINGS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Network/virtualNetworks/{network}/virtualNetworkPeerings",
    "2025-05-01",
    f"{_TYPES}/microsoft.network/2025-05-01/virtualnetworks/virtualnetworkpeerings",
)
DIAGNOSTICS = Request(
    "GET",
    "/{scope}/providers/Microsoft.Insights/diagnosticSettings/{setting}",
    "2021-05-01-preview",
    f"{_TYPES}/microsoft.insights/2021-05-01-preview/diagnosticsettings",
)
# ---- changed

RUN_ON_MACHINE = Request(
    "POST",
    "/{scope}/providers/Microsoft.Compute/virtualMachines/{machine}/runCommand",
    "2025-04-01",
    "https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command",
)
STOP_MACHINE = Request(
    "POST",
    "/{scope}/providers/Microsoft.Compute/virtualMachines/{machine}/deallocate",
    "2025-04-01",
    "https://learn.microsoft.com/rest/api/compute/virtual-machines/deallocate",
    az="az vm deallocate --ids /{scope}/providers/Microsoft.Compute/virtualMachines/{machine}",
)


def _removal(row: catalog.ResourceType) -> Request:
    """DELETE of a resource of a type, whose page is its source."""
    namespace, *types = row.name.split("/")
    path = "/".join(f"{each}/{{name{number}}}" for number, each in enumerate(types))
    source = f"{_TYPES}/{namespace.lower()}/{row.api_version}/{'/'.join(types).lower()}"
    return Request("DELETE", f"/{{scope}}/providers/{namespace}/{path}", str(row.api_version), source)


REMOVALS = {each.name: _removal(each) for each in catalog.resource_types().values() if each.removal}
"""Type → what removes one by itself."""
