"""Storage accounts, Managed Lustre, NetApp Files, MySQL flexible servers.

Each source is a file of https://github.com/Azure/azure-rest-api-specs.
"""

from __future__ import annotations

from ..request import Request

_SPEC = "https://github.com/Azure/azure-rest-api-specs/blob/main/specification"
_PROVIDERS = "/subscriptions/{subscription}/providers"
_LUSTRE = (
    f"{_SPEC}/storagecache/resource-manager/Microsoft.StorageCache/StorageCache/examples/2026-01-01/{{}}.json".format
)
_NETAPP = f"{_SPEC}/netapp/resource-manager/Microsoft.NetApp/NetApp/examples/2025-06-01/{{}}.json".format
_MYSQL = f"{_SPEC}/mysql/resource-manager/Microsoft.DBforMySQL/FlexibleServers/stable/2023-12-30/ServiceOperations.json"

STORAGE_NAME = Request(
    "POST",
    f"{_PROVIDERS}/Microsoft.Storage/checkNameAvailability",
    "2023-05-01",
    f"{_SPEC}/storage/resource-manager/Microsoft.Storage/stable/2023-05-01/storage.json",
    changes_nothing=True,
)
STORAGE_USAGES = Request(
    "GET",
    f"{_PROVIDERS}/Microsoft.Storage/locations/{{region}}/usages",
    "2023-05-01",
    f"{_SPEC}/storage/resource-manager/Microsoft.Storage/stable/2023-05-01/storage.json",
    az="az storage account show-usage --location {region}",
)
LUSTRE_SKUS = Request("GET", f"{_PROVIDERS}/Microsoft.StorageCache/skus", "2026-01-01", _LUSTRE("Skus_List"))
LUSTRE_USAGES = Request(
    "GET",
    f"{_PROVIDERS}/Microsoft.StorageCache/locations/{{region}}/usages",
    "2026-01-01",
    _LUSTRE("AscResourceUsages_Get"),
)
LUSTRE_SUBNET_SIZE = Request(
    "POST",
    f"{_PROVIDERS}/Microsoft.StorageCache/getRequiredAmlFSSubnetsSize",
    "2026-01-01",
    _LUSTRE("getRequiredAmlFSSubnetsSize"),
    changes_nothing=True,
)
LUSTRE_SUBNET = Request(
    "POST",
    f"{_PROVIDERS}/Microsoft.StorageCache/checkAmlFSSubnets",
    "2026-01-01",
    _LUSTRE("checkAmlFSSubnets"),
    changes_nothing=True,
)
NETAPP_USAGES = Request(
    "GET", f"{_PROVIDERS}/Microsoft.NetApp/locations/{{region}}/usages", "2025-06-01", _NETAPP("Usages_List")
)
NETAPP_REGION = Request(
    "GET", f"{_PROVIDERS}/Microsoft.NetApp/locations/{{region}}/regionInfo", "2025-06-01", _NETAPP("RegionInfo")
)
NETAPP_POOLS = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.NetApp/netAppAccounts/{account}"
    "/capacityPools",
    "2025-12-01",
    "https://learn.microsoft.com/azure/templates/microsoft.netapp/2025-12-01/netappaccounts/capacitypools",
    az="az netappfiles pool list --resource-group {group} --account-name {account}",
)
NETAPP_PATH = Request(
    "POST",
    f"{_PROVIDERS}/Microsoft.NetApp/locations/{{region}}/checkFilePathAvailability",
    "2025-06-01",
    _NETAPP("CheckFilePathAvailability"),
    changes_nothing=True,
)
MYSQL_OFFERS = Request(
    "GET", f"{_PROVIDERS}/Microsoft.DBforMySQL/locations/{{region}}/capabilitySets/default", "2023-12-30", _MYSQL
)
MYSQL_NAME = Request(
    "POST",
    f"{_PROVIDERS}/Microsoft.DBforMySQL/locations/{{region}}/checkNameAvailability",
    "2023-12-30",
    _MYSQL,
    changes_nothing=True,
)
DATABASES = Request(
    "GET",
    "/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.DBforMySQL/flexibleServers",
    "2024-12-30",
    f"{_SPEC}/mysql/resource-manager/Microsoft.DBforMySQL/FlexibleServers/stable/2024-12-30/FlexibleServers.json",
    az="az mysql flexible-server list --resource-group {group}",
)
