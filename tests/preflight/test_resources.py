"""VM sizes, quota, images, names, file systems and the database, asked of the stand-in: provoked once, mended once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.bed.arm.offers import LUSTRE_SKUS, SKUS, terms_path
from tests.bed.arm.state import State
from tests.preflight.command import Run

Change = Callable[[State], object]
COMPUTE = "/providers/microsoft.compute/locations/eastus"
SERVER_TERMS = terms_path("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2")
IMAGE = f"{COMPUTE}/publishers/microsoft-dsvm/artifacttypes/vmimage/offers/ubuntu-hpc/skus/2204/versions"
MYSQL = "/providers/microsoft.dbformysql/locations/eastus/capabilitysets/default"
GROUP = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/gpt3-h100-rg"


def size(state: State, name: str) -> dict[str, Any]:
    listed: Any = state.documents[SKUS]
    return next(each for each in listed if each["name"] == name and each["locations"] == ["eastus"])


def limit(state: State, name: str, value: int, used: int = 0) -> None:
    usages: Any = state.documents[f"{COMPUTE}/usages"]
    row = next(each for each in usages if each["name"]["value"].lower() == name.lower())
    row |= {"limit": value, "currentValue": used}


def document(state: State, path: str) -> Any:
    return state.documents[path]


def restricted(state: State, name: str, kind: str, reason: str, *zones: str) -> None:
    info = {"locations": ["eastus"], "zones": list(zones)}
    size(state, name)["restrictions"] = [
        {"type": kind, "values": ["eastus"], "restrictionInfo": info, "reasonCode": reason}
    ]


def without(state: State, path: str, name: str) -> None:
    state.documents[path] = [each for each in document(state, path) if each["name"] != name]


def changed(path: str, *keys: str | int, **fields: Any) -> Change:
    """Other values somewhere in a document."""

    def change(state: State) -> None:
        place: Any = state.documents[path]
        for key in keys:
            place = place[key]
        place.update(fields)

    return change


def all_changed(path: str, **fields: Any) -> Change:
    """Other values in every item of a list."""
    return lambda state: [each.update(fields) for each in document(state, path)]


H100, DURABLE = "Standard_ND96isr_H100_v5", "AMLFS-Durable-Premium-500"
NO_ACCESS = "NotAvailableForSubscription"
LUSTRE, NETAPP = (f"/providers/microsoft.{name}/locations/eastus/usages" for name in ("storagecache", "netapp"))
PROVOKED: dict[str, tuple[str, Change]] = {
    "no such size": ("E4301", lambda state: without(state, SKUS, H100)),
    "no access to a size": ("E4301", lambda state: restricted(state, H100, "Location", NO_ACCESS)),
    "other figures": ("W4304", lambda state: size(state, H100)["capabilities"][0].update(value="95")),
    "family without quota": ("E4305", lambda state: limit(state, "standardNDSH100v5Family", 96)),
    "family below the maximum": ("W4306", lambda state: limit(state, "standardDDSv5Family", 2000)),
    "region full": ("E4305", lambda state: limit(state, "cores", 100)),
    "no such image": ("E4401", lambda state: state.documents.pop(IMAGE)),
    "terms": ("E4404", changed(SERVER_TERMS, "properties", accepted=False)),
    "group elsewhere": ("E4502", lambda state: state.put(GROUP, location="westus", tags={"cycleforge": "gpt3-h100"})),
    "group of others": ("W4503", lambda state: state.put(GROUP, location="eastus")),
    "tier not sold": ("E4701", lambda state: without(state, LUSTRE_SKUS, DURABLE)),
    "zone not sold": ("E4701", all_changed(LUSTRE_SKUS, locationInfo=[{"location": "East US", "zones": ["2"]}])),
    "too many file systems": ("E4702", changed(LUSTRE, 0, currentValue=4)),
    "subnet too small": ("E4703", lambda state: state.documents.update({"size of lustre": 9000})),
    "no netapp quota": ("E4704", changed(NETAPP, 0, "properties", currentValue=97)),
    "no mysql": ("E4707", changed(MYSQL, "properties", supportedFlexibleServerEditions=[])),
    "no mysql version": ("E4708", changed(MYSQL, "properties", supportedServerVersions=[{"name": "5.7"}])),
}
"""What is done to a healthy subscription → the rule that finds it, alone."""


def test_gpt3_h100_can_be_deployed_into_a_healthy_subscription(run: Run) -> None:
    assert run.found(name="gpt3-h100") == []


@pytest.mark.parametrize("case", PROVOKED)
def test_each_finding_is_provoked_and_alone(run: Run, case: str) -> None:
    expected, change = PROVOKED[case]
    change(run.arm.state)
    assert run.found(name="gpt3-h100") == [expected]
