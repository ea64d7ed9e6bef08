"""Resources of others, by id: there, elsewhere, not there, and not to be seen."""

from __future__ import annotations

import pytest

from tests.bed.arm import Arm
from tests.bed.arm.exchange import RefusedError
from tests.bed.bicep.place import SUBSCRIPTION
from tests.bed.plans import plan_from
from tests.preflight.asked import found_by, report_of

OTHERS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/others"
PROVIDERS = f"{OTHERS}/providers"
TABLE, KEYS = f"{PROVIDERS}/Microsoft.Network/routeTables/out", f"{PROVIDERS}/Microsoft.Compute/diskEncryptionSets/keys"
LOGS = f"{PROVIDERS}/Microsoft.OperationalInsights/workspaces/logs"
PLAN = plan_from(f"""
network: {{route_table: {TABLE}, nat_gateway: false}}
security: {{disk_encryption_set_id: {KEYS}, diagnostics_workspace_id: {LOGS}}}
""")


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


def test_one_that_may_not_be_seen_hides_no_other(there: Arm) -> None:
    there.fail("GET", f"*{KEYS[-20:]}", RefusedError(403, "AuthorizationFailed", "It is not yours."), times=9)
    del there.state.resources[TABLE.lower()]
    assert found_by(there, PLAN) == ["E4504", "E4504?"]
