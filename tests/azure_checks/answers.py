"""Answers as Azure documents them, small: the named examples of Azure/azure-rest-api-specs with our figures."""

from __future__ import annotations

from typing import Any

Answer = dict[str, Any]


def size(
    name: str,
    family: str = "f",
    vcpus: int = 4,
    zones: tuple[str, ...] = ("1", "2", "3"),
    region: str = "southcentralus",
    **more: Any,
) -> Answer:
    """An item of the list of VM sizes.

    Source: compute/resource-manager/Microsoft.Compute/Skus/stable/2021-07-01/examples/ListAvailableResourceSkus.json
    """
    capabilities = {"vCPUs": str(vcpus), **more.pop("capabilities", {})}
    return {
        "resourceType": "virtualMachines",
        "name": name,
        "family": family,
        "locations": [region],
        "locationInfo": [{"location": region, "zones": list(zones), "zoneDetails": None}],
        "capabilities": [{"name": key, "value": value} for key, value in capabilities.items()],
        "restrictions": None,
    } | more


def restriction(kind: str, reason: str, region: str = "southcentralus", zones: tuple[str, ...] = ()) -> Answer:
    """A restriction of an item, of the same source."""
    info = {"locations": [region], "zones": list(zones) or None}
    return {"type": kind, "values": [region], "restrictionInfo": info, "reasonCode": reason}


def usage(name: str, used: int, limit: int) -> Answer:
    """A limit of a region.

    Source: compute/resource-manager/Microsoft.Compute/ComputeRP/stable/2024-07-01/ComputeRP.json (Usage)
    """
    return {"name": {"value": name, "localizedValue": name}, "currentValue": used, "limit": limit, "unit": "Count"}
