"""Deployments of the subscription: what they would do, begin, watch, forget; and what has to be known before.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_DEPLOYMENTS = f"{_SPEC}/resources/resource-manager/Microsoft.Resources/deployments/stable/2025-04-01/deployments.json"
_VERSION = "2025-04-01"
_PATH = "/subscriptions/{subscription}/providers/Microsoft.Resources/deployments/{name}"

SERVER = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}",
    "2025-04-01",
    f"{_SPEC}/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2025-04-01/virtualMachine.json",
    az="az vm show --resource-group {group} --name {name}",
)
SERVER_VIEW = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}/instanceView",
    "2025-04-01",
    f"{_SPEC}/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2025-04-01/virtualMachine.json",
    az="az vm get-instance-view --resource-group {group} --name {name}",
)
FIRST_BOOT = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}"
    "/extensions/cycleforge-bootstrap",
    "2025-04-01",
    f"{_SPEC}/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2025-04-01/virtualMachine.json",
    query=(("$expand", "instanceView"),),
    az="az vm extension show --resource-group {group} --vm-name {name} --name cycleforge-bootstrap --instance-view",
)
DATABASES = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.DBforMySQL/flexibleServers",
    "2024-12-30",
    f"{_SPEC}/mysql/resource-manager/Microsoft.DBforMySQL/FlexibleServers/stable/2024-12-30/FlexibleServers.json",
    az="az mysql flexible-server list --resource-group {group}",
)
SERIAL_LOG = Request(
    "POST",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute/virtualMachines/{name}"
    "/retrieveBootDiagnosticsData",
    "2025-04-01",
    f"{_SPEC}/compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2025-04-01/virtualMachine.json",
    query=(("sasUriExpirationTimeInMinutes", "5"),),
    az="az vm boot-diagnostics get-boot-log --resource-group {group} --name {name}",
    changes_nothing=True,
)
RUN_COMMAND = Request(
    "POST",
    "/{id}/runCommand",
    "2025-04-01",
    "https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command",
)
STOP = Request(
    "POST",
    "/{id}/deallocate",
    "2025-04-01",
    "https://learn.microsoft.com/rest/api/compute/virtual-machines/deallocate",
    az="az vm deallocate --ids {id}",
)
