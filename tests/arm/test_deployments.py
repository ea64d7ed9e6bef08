"""Real compiled templates are taken apart: deployed, validated, compared with what is there."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.azure.compiled import template
from tests.bed.arm import Arm, failures
from tests.bed.arm.client import Client
from tests.bed.arm.state import CONTRIBUTOR, OWNER
from tests.bed.bicep.deployment import PLAUSIBLE

V = "2025-04-01"


def name_of(arm: Arm, name: str = "main") -> str:
    return f"{arm.state.scope}/providers/Microsoft.Resources/deployments/{name}"


def body_of(name: str, **changes: Any) -> dict[str, Any]:
    content = template(name)
    given = {key: {"value": PLAUSIBLE[key]} for key in content["parameters"] if key in PLAUSIBLE}
    fields = {"mode": "Incremental", "template": content, "parameters": given | changes}
    return {"location": content["variables"]["location"], "properties": fields}


def others(arm: Arm) -> None:
    """What belongs to somebody else: the hub, and the group that a monitor workspace has made."""
    arm.state.others = ("00000000-0000-0000-0000-000000000000",)
    arm.state.put(
        f"/subscriptions/{arm.state.others[0]}/resourceGroups/MA_metrics_southcentralus_managed",
        location="southcentralus",
    )
    arm.state.put(PLAUSIBLE["hubVnetId"].partition("/providers/")[0], location="southcentralus")
    arm.state.put(PLAUSIBLE["hubVnetId"], location="southcentralus")


def ended(client: Client, path: str) -> dict[str, Any]:
    """The record of a deployment that has ended."""
    for _ in range(100):
        record: dict[str, Any] = client("GET", path, V).json()
        if record["properties"]["provisioningState"] in ("Succeeded", "Failed", "Canceled"):
            return record
    raise AssertionError("it does not end")


def what_if(client: Client, path: str, body: Any) -> dict[str, Any]:
    asked = client("POST", f"{path}/whatIf", V, body)
    while asked.status_code == 202:
        asked = client("GET", asked.headers["Location"], None)
    return dict(asked.json())


def times(client: Client, path: str) -> dict[str, str]:
    return {
        each["properties"]["targetResource"]["id"]: each["properties"]["timestamp"] for each in leaves(client, path)
    }


def leaves(client: Client, path: str) -> list[dict[str, Any]]:
    """Operations of a deployment and of those in it, in both spellings of the path."""
    found = []
    for spelling in {path, path.replace("/providers/Microsoft.Resources/deployments/", "/deployments/")}:
        if "/resourceGroups/" not in path and spelling != path:
            continue
        listed = client("GET", f"{spelling}/operations", V).json()["value"]
    for each in listed:
        target = each["properties"].get("targetResource")
        if target and target["resourceType"] == "Microsoft.Resources/deployments":
            found += leaves(client, target["id"])
        elif target:
            found.append(each)
    return found


@pytest.mark.parametrize("name", ["llm-a100", "reference"])
def test_a_shipped_deployment_of_that_day_is_created(client: Client, arm: Arm, name: str) -> None:
    others(arm)
    arm.state.pace = 20
    arm.state.caller.roles = [("/", OWNER)]
    path = name_of(arm)
    begun = client("PUT", path, V, body_of(name))
    assert begun.status_code == 201, begun.text
    record = ended(client, path)
    assert record["properties"].get("error") is None
    assert record["properties"]["outputs"]["clusterName"]["value"]
    assert "value" not in record["properties"]["parameters"]["adminPassword"]
    created = {each["id"].lower() for each in record["properties"]["outputResources"]}
    assert created == {each["properties"]["targetResource"]["id"].lower() for each in leaves(client, path)}
    assert len(created) > 20
    assert created <= arm.state.resources.keys()


def test_a_deployment_goes_on_only_when_somebody_looks_and_in_order(client: Client, arm: Arm) -> None:
    path = name_of(arm)
    answer = client("PUT", path, V, body_of("gpt3-h100"))
    assert answer.json()["properties"]["provisioningState"] == "Accepted"
    assert client("GET", answer.headers["Azure-AsyncOperation"], None).json() == {"status": "Running"}
    assert [each["properties"]["targetResource"]["resourceName"] for each in leaves(client, path)] == ["gpt3-h100-rg"]
    arm.state.passes(4)
    seen = {each["properties"]["targetResource"]["resourceType"] for each in leaves(client, path)}
    assert "Microsoft.Network/virtualNetworks" in seen
    assert "Microsoft.Compute/virtualMachines" not in seen
    assert client.error("PUT", path, V, body_of("gpt3-h100")) == (409, "DeploymentActive")
    before = times(client, path)
    assert ended(client, path)["properties"]["provisioningState"] == "Succeeded"
    assert max(before.values()) < max(times(client, path).values())
    assert client("PUT", path, V, body_of("gpt3-h100")).status_code == 200


def test_a_cancelled_deployment_keeps_what_it_has(client: Client, arm: Arm) -> None:
    path = name_of(arm)
    client("PUT", path, V, body_of("gpt3-h100"))
    arm.state.passes(5)
    assert client("POST", f"{path}/cancel", V).status_code == 204
    assert ended(client, path)["properties"]["provisioningState"] == "Canceled"
    assert arm.state.of_type("Microsoft.Network/networkSecurityGroups")
    assert not arm.state.of_type("Microsoft.Compute/virtualMachines")
    assert client.error("POST", f"{path}/cancel", V) == (409, "DeploymentCannotBeCancelled")
    assert client("DELETE", path, V).status_code == 202


def test_a_failure_is_told_at_every_level(client: Client, arm: Arm) -> None:
    path = name_of(arm)
    arm.state.breakages.append(("*/virtualMachines/*-server", failures.in_text(failures.allocation_failed())))
    client("PUT", path, V, body_of("gpt3-h100"))
    error = ended(client, path)["properties"]["error"]
    (nested,) = error["details"]
    assert (error["code"], nested["code"]) == ("DeploymentFailed", "DeploymentFailed")
    assert json.loads(nested["details"][0]["message"])["error"]["code"] == "AllocationFailed"
    (failed,) = [each for each in leaves(client, path) if each["properties"]["provisioningState"] == "Failed"]
    assert failed["properties"]["statusMessage"]["error"]["code"] == "Conflict"
    assert arm.state.of_type("Microsoft.Network/bastionHosts")
    arm.state.breakages.clear()
    client("PUT", path, V, body_of("gpt3-h100"))
    assert ended(client, path)["properties"]["provisioningState"] == "Succeeded"


def test_validation_refuses_with_the_causes(client: Client, arm: Arm) -> None:
    path, body = name_of(arm), body_of("gpt3-h100")
    good = client("POST", f"{path}/validate", V, body).json()["properties"]
    assert good["provisioningState"] == "Succeeded"
    vm = "*/virtualMachines/gpt3-h100-server"
    for refused in (
        failures.quota_exceeded("standardDSv5Family", "eastus", limit=0, usage=0, required=8),
        failures.sku_not_available("gpt3-h100-server", "eastus", arm.state.subscription),
        failures.disallowed_by_policy("gpt3-h100-server", "deny-sizes", "Allowed sizes"),
        failures.terms_not_accepted("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2", arm.state.subscription),
    ):
        arm.state.refusals = [(vm, refused)]
        answers = [client("POST", f"{path}/validate", V, body), client("PUT", path, V, body)]
        for answer in answers:
            error = answer.json()["error"]
            assert (answer.status_code, error["code"]) == (400, "InvalidTemplateDeployment")
            assert [each["code"] for each in error["details"]] == [refused.error["code"]]
        assert what_if(client, path, body)["status"] == "Failed"
    assert not arm.state.runs


def test_validation_names_what_the_caller_may_not_create(client: Client, arm: Arm) -> None:
    arm.state.caller.roles = [(arm.state.scope, CONTRIBUTOR)]
    body = body_of("minimal")
    answer = client("POST", f"{name_of(arm)}/validate", V, body)
    assert answer.status_code == 200, "its role assignments depend on principals that nobody knows before"
    arm.state.caller.roles = [(arm.state.scope, CONTRIBUTOR | {"notActions": ["Microsoft.Compute/*"]})]
    error = client("POST", f"{name_of(arm)}/validate", V, body).json()["error"]
    assert error["code"] == "InvalidTemplateDeployment"
    assert "Authorization failed for template resource 'minimal-server' of type" in error["message"]


@pytest.mark.parametrize(("change", "said"), [
    ({"unknown": {"value": 1}}, "are not valid; they are not present"),
    ({"adminPassword": {"value": "short"}}, "'adminPassword' is not valid"),
    ({"bootstrapRun": {"value": 1}}, "Expected 'string' for 'bootstrapRun'"),
])  # fmt: skip
def test_parameters_are_checked(client: Client, arm: Arm, change: dict[str, Any], said: str) -> None:
    answer = client("PUT", name_of(arm), V, body_of("minimal", **change)).json()
    assert answer["error"]["code"] == "InvalidTemplate"
    assert said in answer["error"]["message"]


def test_a_parameter_from_a_key_vault(client: Client, arm: Arm) -> None:
    vault = f"{arm.state.scope}/resourceGroups/rg/providers/Microsoft.KeyVault/vaults/v"
    body = body_of("minimal", adminPassword={"reference": {"keyVault": {"id": vault}, "secretName": "s"}})
    assert client.error("PUT", name_of(arm), V, body) == (400, "KeyVaultParameterReferenceNotFound")
    arm.state.secrets[(vault.lower(), "s")] = "Plausible-Passw0rd"
    assert client("PUT", name_of(arm), V, body).status_code == 201


def test_an_unknown_function_is_refused(client: Client, arm: Arm) -> None:
    body = body_of("minimal")
    body["properties"]["template"] = {"resources": [], "outputs": {}, "variables": {}, "parameters": {}} | {
        "resources": [{"type": "Microsoft.Resources/resourceGroups", "apiVersion": V, "name": "[nonsense('a')]"}]
    }
    body["properties"]["parameters"] = {}
    answer = client("PUT", name_of(arm), V, body).json()
    assert "the function nonsense is not known" in answer["error"]["message"]


def test_a_location_is_fixed_for_a_name(client: Client, arm: Arm) -> None:
    arm.state.pace = 50
    client("PUT", name_of(arm), V, body_of("minimal"))
    ended(client, name_of(arm))
    other = body_of("minimal") | {"location": "westus"}
    assert client.error("PUT", name_of(arm), V, other) == (409, "InvalidDeploymentLocation")


def test_what_if_compares_with_the_state(client: Client, arm: Arm) -> None:
    path, body = name_of(arm), body_of("gpt3-h100")

    def kinds(result: dict[str, Any]) -> Counter[str]:
        return Counter(each["changeType"] for each in result["properties"]["changes"])

    first = what_if(client, path, body)
    assert set(kinds(first)) == {"Create"}
    cut = {each["target"].rpartition("/")[2].partition("-roles-")[0] for each in first["properties"]["diagnostics"]}
    assert {"cycleforge-roles", "cycleforge-bootstrap"} <= cut
    assert not arm.state.resources
    arm.state.pace = 50
    client("PUT", path, V, body)
    ended(client, path)
    again = what_if(client, path, body)
    assert set(kinds(again)) == {"NoChange", "Modify", "Ignore"}
    noise = [each for each in again["properties"]["changes"] if each["changeType"] == "Modify"]
    assert all("reference(" in json.dumps(each["delta"]) for each in noise)
    for vault in arm.state.of_type("Microsoft.Storage/storageAccounts"):
        vault["properties"]["allowBlobPublicAccess"] = "changed"
        vault["tags"] = {}
    drifted = what_if(client, path, body)["properties"]["changes"]
    (account,) = [each for each in drifted if each["resourceId"].split("/")[-2] == "storageAccounts"]
    found = {each["path"]: each["propertyChangeType"] for each in account["delta"]}
    tags = {"tags.created-by": "Create", "tags.deployment": "Create"}
    assert found == tags | {"properties.allowBlobPublicAccess": "Modify"}
