"""Resources of others, by id: there, elsewhere, not there, and not to be seen."""

from __future__ import annotations

import pytest

from generator.azure.actions import needs
from tests.bed.arm import Arm
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.state import CONTRIBUTOR, OWNER
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.plans import plan_from
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.definitions.test_variants import VARIANTS
from tests.preflight.asked import found_by, report_of

OTHERS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/others"
PROVIDERS = f"{OTHERS}/providers"
TABLE, KEYS = f"{PROVIDERS}/Microsoft.Network/routeTables/out", f"{PROVIDERS}/Microsoft.Compute/diskEncryptionSets/keys"
LOGS = f"{PROVIDERS}/Microsoft.OperationalInsights/workspaces/logs"
ELSEWHERE = "00000000-0000-0000-0000-000000000000"
TEXT = f"""
network: {{route_table: {TABLE}, nat_gateway: false}}
security: {{disk_encryption_set_id: {KEYS}, diagnostics_workspace_id: {LOGS}}}
"""
PLAN = plan_from(TEXT)
MONITORING = VARIANTS["monitoring"]
WITHOUT = OWNER | {"notActions": ["*/join/action", "Microsoft.Compute/diskEncryptionSets/read", "*/sharedKeys/action"]}
LINKED = {
    "route_table": "Microsoft.Network/routeTables/join/action",
    "disk_encryption_set_id": "Microsoft.Compute/diskEncryptionSets/read",
    "diagnostics_workspace_id": "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
}


@pytest.fixture
def there(arm: Arm) -> Arm:
    arm.state.put(OTHERS, location="westus")
    for resource in (TABLE, KEYS):
        arm.state.put(resource, location="South Central US")
    arm.state.put(LOGS, location="westus")
    return arm


def test_what_is_there_is_no_finding(there: Arm) -> None:
    assert found_by(there, PLAN) == []


@pytest.mark.parametrize(
    ("resource", "key"), [(TABLE, "route_table"), (KEYS, "disk_encryption_set_id"), (LOGS, "diagnostics_workspace_id")]
)
def test_what_is_not_there(there: Arm, resource: str, key: str) -> None:
    del there.state.resources[resource.lower()]
    (finding,) = report_of(PLAN).findings
    assert finding.rule_id == "E4504"
    assert finding.path[-1] == key
    assert finding.message.endswith(" does not exist")


@pytest.mark.parametrize("resource", [TABLE, KEYS])
def test_what_is_in_another_region(there: Arm, resource: str) -> None:
    there.state.resources[resource.lower()]["location"] = "eastus"
    (finding,) = report_of(PLAN).findings
    assert finding.message.endswith(" is in eastus, the deployment in southcentralus")


@pytest.mark.parametrize(("resource", "key"), [(TABLE, "route_table"), (KEYS, "disk_encryption_set_id")])
def test_what_is_in_another_subscription(there: Arm, resource: str, key: str) -> None:
    """Provoked by an id there, and mended by one here, as every test above has it."""
    there.state.others = (ELSEWHERE,)
    there.state.caller.roles.append((f"/subscriptions/{ELSEWHERE}", OWNER))
    moved = resource.replace(SUBSCRIPTION, ELSEWHERE)
    there.state.put(moved.partition("/providers/")[0], location="westus")
    there.state.put(moved, location="southcentralus")
    (finding,) = report_of(plan_from(TEXT.replace(resource, moved))).findings
    assert (finding.rule_id, finding.path[-1]) == ("E4504", key)
    assert finding.message.endswith(f" is in subscription {ELSEWHERE}, the deployment in {SUBSCRIPTION}")


def test_the_rule_of_the_metrics_is_not_there(arm: Arm) -> None:
    rule = f"{PROVIDERS}/Microsoft.Insights/dataCollectionRules/metrics"
    text = next(text for text in MONITORING.splitlines() if "data_collection_rule_id" in text)
    plan = plan_from(MONITORING.replace(text, f"  data_collection_rule_id: {rule}"))
    arm.state.put(OTHERS, location="westus")
    (finding,) = report_of(plan).findings
    assert (finding.rule_id, finding.path) == ("E4504", ("monitoring", "data_collection_rule_id"))
    arm.state.put(rule, location="southcentralus")
    assert found_by(arm, plan) == []


def test_the_server_of_others_and_its_locker_are_not_there(arm: Arm) -> None:
    plan = plan_from(base=SECOND_CLUSTER)
    assert plan.existing_server is not None
    arm.state.others = (ELSEWHERE,)
    arm.state.caller.roles.append((f"/subscriptions/{ELSEWHERE}", OWNER))
    arm.state.put(f"/subscriptions/{ELSEWHERE}/resourceGroups/first-rg", location="southcentralus")
    found = [each for each in report_of(plan).findings if each.rule_id == "E4504"]
    assert [each.path[-1] for each in found] == ["vm_id", "locker_account_id"]
    server, account = plan.existing_server.vm_id, str(plan.locker.account_id)
    for each in (server, account):
        arm.state.put(each, location="southcentralus")
    assert not [each for each in report_of(plan).findings if each.rule_id == "E4504"]


def test_one_that_may_not_be_seen_hides_no_other(there: Arm) -> None:
    there.fail("GET", f"*{KEYS[-20:]}", RefusedError(403, "AuthorizationFailed", "It is not yours."), times=9)
    del there.state.resources[TABLE.lower()]
    assert found_by(there, PLAN) == ["E4504", "E4504?"]


def test_what_is_referred_to_takes_a_right_of_its_own(there: Arm) -> None:
    """Owner of the own group, and nothing at what belongs to others."""
    state = there.state
    own = [(f"{state.scope}/resourceGroups/minimal-rg", OWNER), (state.scope, WITHOUT)]
    given, state.caller.roles = state.caller.roles, own
    found = {each.path[-1]: each.message for each in report_of(PLAN).findings if each.rule_id == "E4101"}
    for key, action in LINKED.items():
        assert f"this login has no right to {action} at {OTHERS}" in found[key]
    state.caller.roles = [*own, *((each, CONTRIBUTOR) for each in (TABLE, KEYS, LOGS))]
    assert not {each.path[-1] for each in report_of(PLAN).findings if each.rule_id == "E4101"} & set(LINKED)
    state.caller.roles = given
    assert found_by(there, PLAN) == []


def test_rights_that_are_out_of_sight_hide_no_others(there: Arm) -> None:
    there.fail("GET", f"{LOGS}/providers/*/permissions", RefusedError(403, "AuthorizationFailed", "No."), times=9)
    there.state.caller.roles = [(there.state.scope, CONTRIBUTOR)]
    found = [each for each in report_of(PLAN).findings if each.rule_id == "E4101"]
    assert [each.is_known for each in found if each.path[-1] == "diagnostics_workspace_id"] == [False]
    assert any(each.is_known and "roleAssignments/write" in each.message for each in found)


@pytest.mark.parametrize(("image", "action"), [
    (f"{PROVIDERS}/Microsoft.Compute/galleries/g/images/i/versions/latest", "galleries/images/versions/read"),
    (f"{PROVIDERS}/Microsoft.Compute/images/i", "images/read"),
])  # fmt: skip
def test_an_own_image_takes_the_right_to_read_it(image: str, action: str) -> None:
    plan = plan_from(f"server: {{image_id: {image}, data_disk_gb: 128}}")
    (need,) = [each for each in needs(plan, {}) if each.path == ("server", "image_id")]
    assert (need.scope, need.actions) == (image.partition("/versions/")[0], (f"Microsoft.Compute/{action}",))


def test_a_secret_in_a_vault_takes_the_right_to_deploy_from_it() -> None:
    vault = f"{PROVIDERS}/Microsoft.KeyVault/vaults/v"
    variable = PLAN.secrets[0].variable
    (need,) = [each for each in needs(PLAN, {variable: f"{vault}/secrets/admin"}) if each.scope == vault]
    assert need.actions == ("Microsoft.KeyVault/vaults/deploy/action",)
    assert len(needs(PLAN, {variable: "a-Secret-0"})) == len(needs(PLAN, {}))
