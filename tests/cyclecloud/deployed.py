"""A deployment that has ended well, whose outputs lead to the stand-in of the site."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generator.azure.deployment import CONTENT_TAG, content_of
from tests.answers import data_of
from tests.bed.arm import Arm
from tests.bed.cyclecloud import SiteStandIn
from tests.bed.plans import KEY
from tests.what_if.place import DEFINITION, Place

CLUSTER = "minimal"
PUBLIC = DEFINITION.replace("network: {", "network: {access: public, allowed_sources: [203.0.113.0/24], ")
"""The same with a site that is asked directly; behind the Bastion of the other one a forward of ssh leads there."""


@dataclass(frozen=True)
class Names:
    """What Azure calls the parts of a deployment."""

    record: str
    group: str
    server: str


MINIMAL = Names("minimal-southcentralus", "minimal-rg", "minimal-server")


def record_id(arm: Arm, at: Names = MINIMAL) -> str:
    return f"{arm.state.scope}/providers/Microsoft.Resources/deployments/{at.record}"


def server_id(arm: Arm, at: Names = MINIMAL) -> str:
    return f"{arm.state.scope}/resourceGroups/{at.group}/providers/Microsoft.Compute/virtualMachines/{at.server}"


def deployed(place: Place, portal: SiteStandIn, **properties: Any) -> None:
    """As `deploy` leaves it; `properties` change the record's."""
    put_deployed(place.arm, portal, place.folder / "output" / "minimal", **properties)


def put_deployed(arm: Arm, portal: SiteStandIn, folder: Path, at: Names = MINIMAL, **properties: Any) -> None:
    """The record with outputs that lead to the stand-in of the site, and the server with its first boot."""
    outputs = {"portalUrl": f"https://127.0.0.1:{portal.port}", "serverCertificateSha256": portal.fingerprint}
    fields = {
        "provisioningState": "Succeeded",
        "timestamp": "2026-11-20T10:00:00Z",
        "correlationId": "1",
        "outputs": {name: {"type": "String", "value": value} for name, value in outputs.items()},
    }
    arm.state.put(record_id(arm, at), properties=fields | properties, tags={CONTENT_TAG: content_of(folder)})
    arm.state.put(f"{arm.state.scope}/resourceGroups/{at.group}", location="southcentralus")
    keys = {"publicKeys": [{"path": "/home/ccadmin/.ssh/authorized_keys", "keyData": KEY}]}
    system = {"adminUsername": "ccadmin", "linuxConfiguration": {"ssh": keys}}
    server = server_id(arm, at)
    arm.state.put(server, location="southcentralus", properties={"osProfile": system})
    arm.state.put(f"{server}/extensions/cycleforge-bootstrap", properties={"provisioningState": "Succeeded"})


def asked_json(place: Place, *words: str) -> dict[str, Any]:
    """What `status --json` says of the only deployment."""
    result: dict[str, Any] = data_of(place("status", "minimal.yaml", "--json", *words)[1])
    (row,) = result["deployments"]
    return dict(row)
