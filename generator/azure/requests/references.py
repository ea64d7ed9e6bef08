"""Resources of others, each by its id.

Each source is a page of https://learn.microsoft.com/azure/templates.
"""

from __future__ import annotations

from ...catalog import resource_type
from ..request import Request

_SCOPE = "/subscriptions/{owner}/resourceGroups/{group}/providers"


def _named(kind: str) -> Request:
    namespace, _, name = kind.lower().partition("/")
    version = str(resource_type(kind).api_version)
    source = f"https://learn.microsoft.com/azure/templates/{namespace}/{version}/{name}"
    return Request("GET", f"{_SCOPE}/{kind}/{{name}}", version, source)


ROUTE_TABLE = _named("Microsoft.Network/routeTables")
DISK_ENCRYPTION_SET = _named("Microsoft.Compute/diskEncryptionSets")
WORKSPACE = _named("Microsoft.OperationalInsights/workspaces")
COLLECTION_RULE = _named("Microsoft.Insights/dataCollectionRules")
SERVER = _named("Microsoft.Compute/virtualMachines")
ACCOUNT = _named("Microsoft.Storage/storageAccounts")
