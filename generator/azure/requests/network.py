"""Networks and private DNS zones.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_NETWORK = "https://learn.microsoft.com/azure/templates/microsoft.network/2025-05-01/virtualnetworks"
_DNS = f"{_SPEC}/privatedns/resource-manager/Microsoft.Network/stable/2024-06-01/privatedns.json"

_OTHERS = "/subscriptions/{owner}/resourceGroups/{group}/providers/Microsoft.Network"

VNET = Request("GET", f"{_OTHERS}/virtualNetworks/{{vnet}}", "2025-05-01", _NETWORK)
VNET_USAGES = Request(
    "GET",
    f"{_OTHERS}/virtualNetworks/{{vnet}}/usages",
    "2024-05-01",
    f"{_SPEC}/network/resource-manager/Microsoft.Network/stable/2024-05-01/virtualNetwork.json",
)
PEERINGS = Request(
    "GET",
    "/{id}/virtualNetworkPeerings",
    "2025-05-01",
    "https://learn.microsoft.com/azure/templates/microsoft.network/2025-05-01/virtualnetworks/virtualnetworkpeerings",
)
BASTIONS = Request(
    "GET",
    "/subscriptions/{owner}/providers/Microsoft.Network/bastionHosts",
    "2025-05-01",
    "https://learn.microsoft.com/rest/api/virtualnetwork/bastion-hosts/list",
)
INTERFACES = Request(
    "GET",
    "/subscriptions/{subscription}/providers/Microsoft.Network/networkInterfaces",
    "2025-05-01",
    "https://learn.microsoft.com/rest/api/virtualnetwork/network-interfaces/list-all",
    az="az network nic list",
)
NETWORK_USAGES = Request(
    "GET",
    "/subscriptions/{subscription}/providers/Microsoft.Network/locations/{region}/usages",
    "2024-05-01",
    "https://learn.microsoft.com/rest/api/virtualnetwork/usages/list",
    az="az network list-usages --location {region}",
)
ZONES = Request(
    "GET",
    "/subscriptions/{subscription}/providers/Microsoft.Network/privateDnsZones",
    "2024-06-01",
    _DNS,
    az="az network private-dns zone list",
)
ZONE_LINKS = Request("GET", f"{_OTHERS}/privateDnsZones/{{zone}}/virtualNetworkLinks", "2024-06-01", _DNS)
