"""A group of others, zones of another subscription, diagnostic settings, a stack: what goes there, and what stays."""

from __future__ import annotations

from typing import Any

from tests.bed.arm.state import OWNER
from tests.bed.plans import plan_from
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.delete.place import OTHERS, Place

ZONE = (
    f"/subscriptions/{OTHERS}/resourceGroups/dns-rg/providers/Microsoft.Network/privateDnsZones"
    "/privatelink.blob.core.windows.net"
)
WORKSPACE = f"/subscriptions/{OTHERS}/resourceGroups/l/providers/Microsoft.OperationalInsights/workspaces/w"
NODES, SERVERS = "aaaaaaaa-0000-0000-0000-00000000000a", "aaaaaaaa-0000-0000-0000-00000000000b"
PLAN = plan_from(
    "azure: {resource_group: {existing: shared-rg}}",
    f"network: {{blob_dns_zone: {ZONE}}}",
    f"security: {{diagnostics_workspace_id: {WORKSPACE}}}",
)


def there(place: Place) -> dict[str, str]:
    """Ids by what they are; `kept` is of somebody else."""
    state, tags = place.state, {"cycleforge": PLAN.name}
    state.others = (OTHERS,)
    state.caller.roles.append((f"/subscriptions/{OTHERS}", OWNER))
    group = f"{state.scope}/resourceGroups/shared-rg"
    network = f"{group}/providers/Microsoft.Network/virtualNetworks/{PLAN.network.vnet_name}"
    rules = f"{group}/providers/Microsoft.Network/networkSecurityGroups/x-nsg"
    found = {
        "link": f"{ZONE}/virtualNetworkLinks/ours",
        "network": network,
        "rules": rules,
        "diagnostics": f"{rules}/providers/Microsoft.Insights/diagnosticSettings/{PLAN.security.diagnostics_name}",
        "stack": f"{state.scope}/providers/Microsoft.Resources/deploymentStacks/{PLAN.deployment_name}",
        "kept link": f"{ZONE}/virtualNetworkLinks/theirs",
        "kept rules": f"{group}/providers/Microsoft.Network/networkSecurityGroups/theirs",
        "kept zone": ZONE,
        "kept group": group,
        "kept dns": ZONE.partition("/providers/")[0],
    }
    for key, each in found.items():
        targets: dict[str, Any] = {
            "link": {"virtualNetwork": {"id": network.upper()}},
            "kept link": {"virtualNetwork": {"id": "/x"}},
        }
        fields: dict[str, Any] = {"properties": targets.get(key, {})}
        if key in ("network", "rules", "kept rules"):
            fields |= {"location": "southcentralus", "tags": tags if key != "kept rules" else {}}
        state.put(each, **fields)
    return found


def test_only_what_is_ours_goes(place: Place) -> None:
    found = there(place)
    assert place.delete(PLAN)
    assert sorted(place.state.resources) == sorted(each.lower() for key, each in found.items() if "kept" in key)
    assert place.arm.refused == []
    assert found["kept group"] not in [each.partition(" ")[2] for each in place.arm.changes]


def test_a_zone_out_of_sight_is_not_good(place: Place) -> None:
    found = there(place)
    place.state.caller.roles = [each for each in place.state.caller.roles if each[0] == place.state.scope]
    assert place.delete(PLAN), "what can be seen is gone"
    assert found["link"].lower() in place.state.resources
    assert [each.what for each in place.blind] == [
        "whether there are links of the DNS zone privatelink.blob.core.windows.net to this network"
    ]


def test_beside_the_server_of_others_only_the_own_roles_go(place: Place) -> None:
    plan = plan_from(base=SECOND_CLUSTER)
    assert plan.existing_server is not None
    assert plan.locker.account_id is not None
    state = place.state
    state.others = (OTHERS,)
    state.caller.roles.append((f"/subscriptions/{OTHERS}", OWNER))
    server, locker = plan.existing_server.vm_id, plan.locker.account_id
    tags = {"cycleforge": plan.name}
    group = f"{state.scope}/resourceGroups/{plan.resource_group}"
    identity = f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{plan.names.node_identity}"
    state.put(server.partition("/providers/")[0], location="southcentralus")
    state.put(server, location="southcentralus", identity={"principalId": SERVERS})
    state.put(group, location="southcentralus", tags=tags)
    state.put(identity, location="southcentralus", tags=tags, properties={"principalId": NODES})
    role = f"{locker}/providers/Microsoft.Authorization/roleAssignments"
    for name, principal in (("nodes", NODES), ("server", SERVERS)):
        fields = {"scope": locker, "principalId": principal, "roleDefinitionId": "/x/y"}
        state.put(f"{role}/{name}", properties=fields)
    assert place.delete(plan)
    assert place.arm.refused == []
    assert sorted(state.resources) == sorted(
        each.lower() for each in (server.partition("/providers/")[0], server, f"{role}/server")
    )
