"""Resources of others, each by its id.

Each source is a page of https://learn.microsoft.com/azure/templates.
"""

from __future__ import annotations

from ..request import Request

_SCOPE = "/subscriptions/{owner}/resourceGroups/{group}/providers"


def _named(kind: str, api_version: str) -> Request:
    namespace, _, name = kind.lower().partition("/")
    source = f"https://learn.microsoft.com/azure/templates/{namespace}/{api_version}/{name}"
    return Request("GET", f"{_SCOPE}/{kind}/{{name}}", api_version, source)


ROUTE_TABLE = _named("Microsoft.Network/routeTables", "2025-05-01")
DISK_ENCRYPTION_SET = _named("Microsoft.Compute/diskEncryptionSets", "2025-01-02")
WORKSPACE = _named("Microsoft.OperationalInsights/workspaces", "2023-09-01")
COLLECTION_RULE = _named("Microsoft.Insights/dataCollectionRules", "2024-03-11")
SERVER = _named("Microsoft.Compute/virtualMachines", "2025-04-01")
ACCOUNT = _named("Microsoft.Storage/storageAccounts", "2025-06-01")
