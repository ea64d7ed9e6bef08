"""What the deployment has to send as Azure has it, because Azure refuses to change it: the README asks with `az`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..plan.deployment import Plan
from .answers import below
from .reader import Reader
from .refusals import NotAsked
from .requests import deployments


def variables(plan: Plan, reader: Reader) -> dict[str, str]:
    """Environment variables of `main.bicepparam`, each with its value; empty as long as there is nothing.

    Raises Refused and NotAsked: not to know is not to know that there is no server.
    """
    found = {}
    if plan.server is not None:
        server = reader.find(deployments.SERVER(group=plan.resource_group, name=plan.server.vm_name))
        properties = server.get("properties", {}) if server is not None else {}
        found["CYCLEFORGE_SERVER_KEY"] = _key(properties) if server is not None else ""
        if plan.server.image is not None:
            image = below(properties, "storageProfile", "imageReference", "version")
            found["CYCLEFORGE_SERVER_IMAGE"] = str(image or "")
    if plan.creates_database:
        found["CYCLEFORGE_DATABASE_STORAGE"] = str(
            _database_gib(plan, reader.find_pages(deployments.DATABASES(group=plan.resource_group)))
        )
    return found


def _key(properties: Mapping[str, Any]) -> str:
    keys = below(properties, "osProfile", "linuxConfiguration", "ssh", "publicKeys")
    if not isinstance(keys, list) or not keys or not isinstance(keys[0], Mapping) or not keys[0].get("keyData"):
        raise NotAsked("Azure does not say which SSH key the server was created with")
    return str(keys[0]["keyData"])


def _database_gib(plan: Plan, servers: Sequence[Mapping[str, Any]]) -> int:
    own = [each for each in servers if (each.get("tags") or {}).get(plan.cleanup.tag) == plan.name]
    sizes = [below(each.get("properties", {}), "storage", "storageSizeGB") for each in own]
    if any(not isinstance(size, int) for size in sizes):
        raise NotAsked("Azure does not say how large the storage of the database server is")
    return max(sizes, default=0)
