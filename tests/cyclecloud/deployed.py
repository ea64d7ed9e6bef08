"""A deployment that has ended well, whose outputs lead to the stand-in of the site."""

from __future__ import annotations

import json
from typing import Any

from generator.azure.deployment import CONTENT_TAG, content_of
from tests.bed.cyclecloud import SiteStandIn
from tests.what_if.place import Place

NAME, GROUP, CLUSTER = "minimal-southcentralus", "minimal-rg", "minimal"


def record_id(place: Place) -> str:
    return f"{place.arm.state.scope}/providers/Microsoft.Resources/deployments/{NAME}"


def server_id(place: Place) -> str:
    group = f"{place.arm.state.scope}/resourceGroups/{GROUP}"
    return f"{group}/providers/Microsoft.Compute/virtualMachines/minimal-server"


def deployed(place: Place, portal: SiteStandIn, **properties: Any) -> None:
    """As `deploy` leaves it; `properties` change the record's."""
    outputs = {"portalUrl": f"https://127.0.0.1:{portal.port}", "serverCertificateSha256": portal.fingerprint}
    fields = {
        "provisioningState": "Succeeded",
        "timestamp": "2026-11-20T10:00:00Z",
        "correlationId": "1",
        "outputs": {name: {"type": "String", "value": value} for name, value in outputs.items()},
    }
    tags = {CONTENT_TAG: content_of(place.folder / "output" / "minimal")}
    place.arm.state.put(record_id(place), properties=fields | properties, tags=tags)
    place.arm.state.put(f"{place.arm.state.scope}/resourceGroups/{GROUP}", location="southcentralus")
    place.arm.state.put(server_id(place), location="southcentralus")
    boot = {"provisioningState": "Succeeded"}
    place.arm.state.put(f"{server_id(place)}/extensions/cycleforge-bootstrap", properties=boot)


def asked_json(place: Place, *words: str) -> dict[str, Any]:
    """What `status --json` says of the only deployment."""
    result: dict[str, Any] = json.loads(place("status", "minimal.yaml", "--json", *words)[1])
    (row,) = result["deployments"]
    return dict(row)
