"""VM sizes, quota, machines and their images, the CycleCloud server.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_COMPUTE = f"{_SPEC}/compute/resource-manager/Microsoft.Compute"
_RP = f"{_COMPUTE}/ComputeRP/stable/2024-07-01/ComputeRP.json"
_GALLERY_SPEC = f"{_COMPUTE}/GalleryRP/stable/2024-03-03/GalleryRP.json"
_TEMPLATES = "https://learn.microsoft.com/azure/templates/microsoft.compute/2025-04-01"
_HERE = "/subscriptions/{subscription}/providers/Microsoft.Compute"
_GROUP = "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Compute"
_IMAGE = f"{_HERE}/locations/{{region}}/publishers/{{publisher}}/artifacttypes/vmimage/offers/{{offer}}/skus/{{sku}}"
_OTHERS = "/subscriptions/{owner}/resourceGroups/{group}/providers/Microsoft.Compute"
_GALLERIES = f"{_OTHERS}/galleries/{{gallery}}"
_TERMS = (
    "/subscriptions/{subscription}/providers/Microsoft.MarketplaceOrdering/offerTypes/virtualmachine"
    "/publishers/{publisher}/offers/{offer}/plans/{plan}/agreements/current"
)
_AGREEMENTS = (
    f"{_SPEC}/marketplaceordering/resource-manager/Microsoft.MarketplaceOrdering/stable/2021-01-01/Agreements.json"
)

SIZES = Request(
    "GET",
    f"{_HERE}/skus",
    "2021-07-01",
    f"{_COMPUTE}/Skus/stable/2021-07-01/skus.json",
    query=(("$filter", "location eq '{region}'"),),
    az="az vm list-skus --location {region} --all",
)
USAGES = Request(
    "GET", f"{_HERE}/locations/{{region}}/usages", "2024-07-01", _RP, az="az vm list-usage --location {region}"
)
VMS = Request(
    "GET",
    f"{_GROUP}/virtualMachines",
    "2025-04-01",
    f"{_TEMPLATES}/virtualmachines",
    az="az vm list --resource-group {group}",
)
SCALE_SETS = Request(
    "GET",
    f"{_GROUP}/virtualMachineScaleSets",
    "2025-04-01",
    f"{_TEMPLATES}/virtualmachinescalesets",
    az="az vmss list --resource-group {group}",
)
ALL_SCALE_SETS = Request(
    "GET",
    f"{_HERE}/virtualMachineScaleSets",
    "2025-04-01",
    "https://learn.microsoft.com/rest/api/compute/virtual-machine-scale-sets/list-all",
    az="az vmss list",
)
SCALE_SET_INTERFACES = Request(
    "GET",
    f"{_GROUP}/virtualMachineScaleSets/{{name}}/networkInterfaces",
    "2018-10-01",
    f"{_SPEC}/network/resource-manager/Microsoft.Network/stable/2018-10-01/vmssNetworkInterface.json",
    az="az vmss nic list --resource-group {group} --vmss-name {name}",
)
IMAGE_VERSIONS = Request("GET", f"{_IMAGE}/versions", "2024-07-01", _RP)
IMAGE = Request("GET", f"{_IMAGE}/versions/{{version}}", "2024-07-01", _RP)
GALLERY_IMAGE = Request("GET", f"{_GALLERIES}/images/{{image}}", "2024-03-03", _GALLERY_SPEC)
GALLERY_VERSIONS = Request("GET", f"{_GALLERIES}/images/{{image}}/versions", "2024-03-03", _GALLERY_SPEC)
GALLERY_VERSION = Request("GET", f"{_GALLERIES}/images/{{image}}/versions/{{version}}", "2024-03-03", _GALLERY_SPEC)
MANAGED_IMAGE = Request("GET", f"{_OTHERS}/images/{{image}}", "2024-07-01", _RP)
TERMS = Request(
    "GET",
    _TERMS,
    "2021-01-01",
    _AGREEMENTS,
    az="az vm image terms show --publisher {publisher} --offer {offer} --plan {plan}",
)
ACCEPT_TERMS = Request(
    "PUT",
    _TERMS,
    "2021-01-01",
    _AGREEMENTS,
    az="az vm image terms accept --publisher {publisher} --offer {offer} --plan {plan}",
)


_VIRTUAL_MACHINE = f"{_COMPUTE}/ComputeRP/stable/2025-04-01/virtualMachine.json"
_SERVER = f"{_GROUP}/virtualMachines/{{name}}"

SERVER = Request(
    "GET",
    _SERVER,
    "2025-04-01",
    _VIRTUAL_MACHINE,
    az="az vm show --resource-group {group} --name {name}",
)
SERVER_VIEW = Request(
    "GET",
    f"{_SERVER}/instanceView",
    "2025-04-01",
    _VIRTUAL_MACHINE,
    az="az vm get-instance-view --resource-group {group} --name {name}",
)
FIRST_BOOT = Request(
    "GET",
    f"{_SERVER}/extensions/cycleforge-bootstrap",
    "2025-04-01",
    _VIRTUAL_MACHINE,
    query=(("$expand", "instanceView"),),
    az="az vm extension show --resource-group {group} --vm-name {name} --name cycleforge-bootstrap --instance-view",
)
SERIAL_LOG = Request(
    "POST",
    f"{_SERVER}/retrieveBootDiagnosticsData",
    "2025-04-01",
    _VIRTUAL_MACHINE,
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
