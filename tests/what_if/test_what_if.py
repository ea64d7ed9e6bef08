"""What Azure's what-if answers, read and shown.

The bodies have the form of the examples of WhatIfOperationResult in Azure/azure-rest-api-specs
(specification/resources/resource-manager/Microsoft.Resources/deployments) and of the issues of
Azure/arm-template-whatif that the catalogue names.
"""

from __future__ import annotations

from typing import Any

import pytest

from generator import catalog
from generator.azure.resource_ids import resource
from generator.azure.what_if import WhatIf, read
from generator.azure.what_if_text import as_json, headline, text
from generator.catalog.azure_facts import Noise

GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/lab-rg"


def change(kind: str, path: str, *delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"resourceId": f"{GROUP}/providers/{path}", "changeType": kind, "delta": list(delta), **more}


def delta(kind: str, path: str, before: Any = None, after: Any = None, *children: dict[str, Any]) -> dict[str, Any]:
    return {"path": path, "propertyChangeType": kind, "before": before, "after": after, "children": list(children)}


def answer(*changes: dict[str, Any], **more: Any) -> WhatIf:
    return read({"changes": list(changes), **more})


def test_what_needs_a_look_comes_first() -> None:
    found = answer(
        change("Create", "Microsoft.Network/natGateways/lab-nat"),
        change("NoChange", "Microsoft.Network/virtualNetworks/lab-vnet"),
        change("Ignore", "Microsoft.Compute/disks/kept"),
        change("Modify", "Microsoft.Compute/virtualMachines/lab-server",
               delta("Modify", "properties.hardwareProfile.vmSize", "Standard_D4as_v5", "Standard_D8as_v5")),
        change("Delete", "Microsoft.Storage/storageAccounts/cflab"),
    )  # fmt: skip
    assert text(found) == (
        "1 to delete, 1 to change and 1 to create\n"
        "\nto delete:\n"
        "  -  Microsoft.Storage/storageAccounts  cflab  HOLDS DATA\n"
        "\nto change:\n"
        "  ~  Microsoft.Compute/virtualMachines  lab-server\n"
        "      properties.hardwareProfile.vmSize: Standard_D4as_v5 → Standard_D8as_v5\n"
        "\nto create:\n"
        "  +  Microsoft.Network/natGateways  lab-nat\n"
        "\n1 resource without a change\n"
        "1 resource beside the deployment, which it leaves alone:\n"
        "  Microsoft.Compute/disks kept\n"
    )


def test_items_of_a_list_have_their_place() -> None:
    subnet = delta("Modify", "1", None, None, delta("Delete", "properties.networkSecurityGroup.id", "/a/nsg"))
    found = answer(change("Modify", "Microsoft.Network/virtualNetworks/v", delta("Array", "properties.subnets", None,
                          None, subnet, delta("Delete", "2", {"name": "lustre", "properties": {}}))))  # fmt: skip
    assert [(each.path, each.kind) for each in found.rows[0].values] == [
        ("properties.subnets[1].properties.networkSecurityGroup.id", "delete"),
        ("properties.subnets[2]", "delete"),
    ]
    assert "      properties.subnets[2]: lustre (no longer sent)\n" in text(found)


@pytest.mark.parametrize(("row", "path"), [(row, path) for row in catalog.what_if().noise.rows for path in row.paths])
def test_known_noise_is_folded_and_said(row: Noise, path: str) -> None:
    kind = {"create": "Create", "delete": "Delete", "change": "Modify"}[row.kinds[0]]
    provider, *kinds = row.type.split("/")
    place = "/".join((provider, *(f"{each}/x" for each in kinds)))
    found = answer(change("Modify", place, delta("NoEffect", "properties.other", 1), delta(kind, path, [1], [2])))
    assert (found.rows[0].action, found.changes, headline(found)) == ("none", False, "nothing changes")
    assert row.why in text(found)
    other = answer(change("Modify", place, delta(kind, f"{path}x", [1], [2])))
    assert other.rows[0].action == "change"
    elsewhere = answer(change("Modify", "Microsoft.Compute/disks/x", delta(kind, path, [1], [2])))
    assert elsewhere.rows[0].action == "change"


def test_what_azure_does_not_do_leaves_what_it_does() -> None:
    found = answer(change("Modify", "Microsoft.Network/virtualNetworks/v",
                          delta("Delete", "properties.virtualNetworkPeerings", [{"name": "hub"}]),
                          delta("Delete", "tags.owner", "me")))  # fmt: skip
    assert [value.path for value in found.rows[0].values] == ["tags.owner"]
    assert found.rows[0].action == "change"


@pytest.mark.parametrize("kind", [each.name for each in catalog.resource_types().values() if each.data == "holds"])
def test_a_delete_of_data_is_never_folded(kind: str) -> None:
    provider, *kinds = kind.split("/")
    found = answer(change("Delete", "/".join((provider, *(f"{each}/x" for each in kinds))),
                          delta("Delete", "properties.virtualNetworkPeerings", [])))  # fmt: skip
    assert found.rows[0].action == "delete"
    assert "HOLDS DATA" in text(found)


def test_a_disk_that_is_taken_out_is_never_cut_off() -> None:
    many = [delta("Modify", f"tags.t{number}", "a", "b") for number in range(40)]
    disk = delta("Array", "properties.storageProfile.dataDisks", None, None, delta("Delete", "0", {"name": "data"}))
    shown = text(answer(change("Modify", "Microsoft.Compute/virtualMachines/s", *many, disk)))
    assert "properties.storageProfile.dataDisks[0]: data (no longer sent)" in shown
    assert "… and 28 more" in shown


def test_what_azure_cannot_say_is_named() -> None:
    found = answer(
        change("Unsupported", "Microsoft.Authorization/roleAssignments/1", unsupportedReason="needs a reference"),
        change("Deploy", "Microsoft.Network/natGateways/n"),
        change("Surprise", "Microsoft.Network/natGateways/m"),
        diagnostics=[
            {"level": "Warning", "code": "NestedDeploymentShortCircuited", "message": "A nested deployment got …",
             "target": f"{GROUP}/providers/Microsoft.Resources/deployments/cycleforge-roles"},
            {"level": "Info", "code": "X", "message": "all well", "target": ""},
        ],
    )  # fmt: skip
    shown = text(found)
    assert not found.is_complete
    assert "3 of which Azure cannot say what would change" in shown
    assert "needs a reference" in shown
    assert "Azure answers 'Surprise'" in shown
    assert "  cycleforge-roles: its names need what only the deployment creates, so nothing of it is predicted" in shown
    assert "all well" not in shown
    assert headline(answer(diagnostics=[{"code": "Y", "target": ""}])).endswith("as far as Azure can say")


def test_no_secret_is_shown_nor_compared() -> None:
    changed = (
        delta("Modify", "properties.osProfile.adminPassword", "s3cret", "s3cret2"),
        delta("Create", "properties.protectedSettings", None, {"script": "s3cret"}),
        delta("Create", "properties.osProfile", None, {"customData": "s3cret", "secrets": ["s3cret"]}),
        delta("Modify", "properties.settings", None, [{"fine": 1, "sasToken": "s3cret"}]),
        delta("Delete", "properties.secret", "s3cret"),
    )
    found = answer(change("Modify", "Microsoft.Compute/virtualMachines/s", *changed))
    assert "s3cret" not in text(found) + str(as_json(found)) + repr(found)
    assert "properties.secret: (not shown) (no longer sent)" in text(found)
    assert "not compared:\n  s, properties.osProfile.adminPassword: a secret, which Azure never shows\n" in text(found)
    assert [value.path for value in found.rows[0].values] == [
        "properties.osProfile", "properties.settings", "properties.secret",
    ]  # fmt: skip


def test_what_only_the_deployment_knows_is_not_compared() -> None:
    late = "[reference('network').outputs.subnetIds.value.server]"
    found = answer(change("Modify", "Microsoft.Network/networkInterfaces/n",
                          delta("Modify", "properties.subnet.id", "/subscriptions/s/x", late)))  # fmt: skip
    assert (found.rows[0].action, found.changes, found.is_complete) == ("none", False, False)
    assert headline(found) == "nothing changes, as far as Azure can say"
    assert "  n, properties.subnet.id: only the deployment knows the value\n" in text(found)
    for other in ("[a list]", "reference('network')", ["[reference('x')]"]):
        shown = answer(change("Modify", "Microsoft.Network/networkInterfaces/n", delta("Modify", "tags.a", "b", other)))
        assert shown.changes
    gone = answer(change("Modify", "Microsoft.Network/networkInterfaces/n", delta("Delete", "tags.a", late)))
    assert gone.changes


def test_names_do_not_steer_the_terminal() -> None:
    found = answer(
        change("Modify", "Microsoft.Network/natGateways/a\x1b[2J", delta("Modify", "tags.a", "x", "\x1b[2J"))
    )
    assert "\x1b" not in text(found)


def test_what_may_happen_is_said_to_be_so() -> None:
    found = answer(potentialChanges=[change("Delete", "Microsoft.Compute/disks/d")])
    assert "perhaps; HOLDS DATA" in text(found)
    assert as_json(found)["resources"][0]["is_certain"] is False  # type: ignore[index]


@pytest.mark.parametrize("properties", [{}, {"changes": None}, {"changes": [None, 3], "diagnostics": "x"}])
def test_an_empty_answer_changes_nothing(properties: dict[str, Any]) -> None:
    assert headline(read(properties)) == "nothing changes"


@pytest.mark.parametrize(
    ("path", "kind", "name", "group"),
    [
        (GROUP, "Microsoft.Resources/resourceGroups", "lab-rg", "lab-rg"),
        (f"{GROUP}/providers/A.B/vs/v/subnets/s", "A.B/vs/subnets", "v/s", "lab-rg"),
        (f"{GROUP}/providers/A.B/vs/v/providers/C.D/locks/l", "C.D/locks", "l", "lab-rg"),
        ("/subscriptions/s", "Microsoft.Resources/subscriptions", "s", None),
        ("/subscriptions/s/providers/C.D/roles/l", "C.D/roles", "l", None),
        ("", "", "", None),
        ("/providers", "", "", None),
    ],
)
def test_ids_are_taken_apart(path: str, kind: str, name: str, group: str | None) -> None:
    found = resource(path)
    assert (found.type, found.name, found.group) == (kind, name, group)
