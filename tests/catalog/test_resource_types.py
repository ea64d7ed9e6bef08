"""The table of resource types: who takes out a row is told of each of its consumers, and no row is without one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from generator import catalog
from generator.azure.actions import needs
from generator.azure.checks import node_policies
from generator.azure.deletion import decide, text
from generator.azure.deletion.seen import Seen, Thing
from generator.azure.operation_tree import usual
from generator.azure.requests import resource_manager
from generator.catalog import azure_types
from generator.definition.model.definition import Definition
from generator.files import assets
from generator.plan.cleanup import cleanup_plan
from generator.plan.created_types import Created, created_types
from generator.plan.deployment import Plan
from generator.plan.resources import providers
from tests.bed.bicep.deployment import PLAUSIBLE
from tests.bed.plans import plan_from
from tests.bicep.compilers import MODULES

_TYPE = re.compile(r"^resource \w+ '([\w.]+(?:/\w+)+)@([\w-]+)'", re.MULTILINE)
_ROLE = re.compile(r"^@description\('Built-in role \"([^\"]+)\".*\n(?:.*\n)?var \w+ = '([0-9a-f-]{36})'", re.MULTILINE)
_GROUP = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/g"
_RESOURCES = "Microsoft.Resources/resourceGroups"


@cache
def definitions() -> Mapping[str, Definition]:
    # It makes plans when it is imported, which must not hide from which row something is missing.
    from tests.plan.test_created_types import TEXTS, definition_of

    return {text: definition_of(text) for text in TEXTS.values()}


@cache
def plans() -> tuple[Plan, ...]:
    return tuple(map(plan_from, definitions()))


@cache
def in_modules() -> frozenset[tuple[str, str]]:
    main = assets.folder("bicep_templates") / "main.bicep.j2"
    return frozenset(found for path in (*MODULES, main) for found in _TYPE.findall(path.read_text()))


def thing(kind: str, **more: Any) -> Thing:
    namespace, *types = kind.split("/")
    place = "/".join(f"{each}/x" for each in types)
    return Thing(f"{_GROUP}/providers/{namespace}/{place}", kind, "x", **more)


def modules(kind: str) -> object:
    versions = {version for name, version in in_modules() if name == kind}
    return not versions or {catalog.resource_type(kind).api_version} == versions


def created(kind: str) -> list[Created]:
    return [each for one in definitions().values() for each in created_types(one) if each.type == kind]


def rights(kind: str) -> object:
    """Of the deployments that create one, all that names the type or that it takes."""
    mine = [plan for plan in plans() if any(each.type == kind for each in plan.created_types)]
    return [needs(plan, {"HUB_VNET_ID": PLAUSIBLE["hubVnetId"]}) for plan in mine]


def has_request(kind: str) -> bool:
    try:
        return bool(resource_manager.by_id(thing(kind).id))
    except LookupError:
        return False


def order_of_deletion(kind: str) -> object:
    """What the README and `delete` remove by themselves; what of it where data is kept."""
    plan = plans()[0]
    found = cleanup_plan(plan.network, (), None, None, plan.server, plan.locker, plan.names, None)
    return kind in found.types, kind in found.types_without_data


def removal(kind: str) -> object:
    """Whether there is a request that deletes one."""
    try:
        decide.removal_of(thing(kind).id)
    except ValueError:
        return False
    return True


def registered(kind: str) -> object:
    mine = [plan.created_types for plan in plans() if any(each.type == kind for each in plan.created_types)]
    return [providers(each, None, ()) for each in mine]


def policies(kind: str) -> object:
    """The api-version in which policies are asked about machines that CycleCloud will create."""
    forms = (form for node in node_policies.nodes(plans()[0]) for form in node.forms)
    return {form.api_version for form in forms if form.content["type"] == kind}


def others(kind: str) -> object:
    """Whether one without our tag, beside a node of ours, belongs to somebody else."""
    plan = plans()[0]
    mine = {plan.cleanup.tag: plan.name}
    resources = (thing("Microsoft.Compute/virtualMachines", tags=mine), thing(kind, tags={}))
    empty: dict[str, Any] = dict.fromkeys(Seen.__annotations__, ())
    seen = Seen(**(empty | {"group": Thing(_GROUP, _RESOURCES, "g", tags=mine), "resources": resources}))
    return [each.type for each in decide.decide(plan, seen).others]


CONSUMERS: Mapping[str, Callable[[str], object]] = {
    "modules": modules,
    "created types": created,
    "providers": registered,
    "rights": rights,
    "order of deletion": order_of_deletion,
    "requests that delete": removal,
    "requests by id": has_request,
    "nodes": lambda kind: thing(kind).is_machine,
    "policies on nodes": policies,
    "what is of others": others,
    "what Azure keeps": lambda kind: text.kept([thing(kind)]),
    "holds data": catalog.holds_data,
    "usual minutes": usual,
}


def answer(consumer: Callable[[str], object], kind: str) -> object:
    try:
        return consumer(kind)
    except LookupError as missing:
        return str(missing)


def consumers_of(kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Those whose answer about a type is another one without its row."""
    plans()
    before = {name: answer(each, kind) for name, each in CONSUMERS.items()}
    table = {name: row for name, row in catalog.resource_types().items() if row.name != kind}
    with monkeypatch.context() as patched:
        patched.setattr(azure_types, "resource_types", lambda: table)
        patched.setattr(catalog, "resource_types", lambda: table)
        after = {name: answer(each, kind) for name, each in CONSUMERS.items()}
    yield from (name for name in CONSUMERS if before[name] != after[name])


MADE = {"modules", "created types", "providers", "rights"}
OURS = MADE | {"order of deletion", "requests that delete"}
APART = MADE | {"requests that delete"}
NODES = {"nodes", "policies on nodes"}
NETAPP, MYSQL, STORAGE = "Microsoft.NetApp/netAppAccounts", "Microsoft.DBforMySQL/flexibleServers", "Microsoft.Storage"
WANTED: Mapping[str, set[str]] = {
    "Microsoft.Authorization/roleAssignments": APART,
    "Microsoft.Compute/diskEncryptionSets": {"requests by id"},
    "Microsoft.Compute/disks": {"order of deletion", "requests that delete", "what is of others", "holds data"},
    "Microsoft.Compute/snapshots": {"holds data"},
    "Microsoft.Compute/virtualMachineScaleSets": {"order of deletion", "requests that delete"} | NODES,
    "Microsoft.Compute/virtualMachines": OURS | NODES,
    "Microsoft.Compute/virtualMachines/extensions": MADE,
    MYSQL: OURS | {"what Azure keeps", "holds data"},
    f"{MYSQL}/configurations": MADE,
    f"{MYSQL}/databases": MADE | {"holds data"},
    "Microsoft.Insights/dataCollectionRules": {"modules", "requests by id"},
    "Microsoft.Insights/diagnosticSettings": APART,
    "Microsoft.ManagedIdentity/userAssignedIdentities": OURS,
    NETAPP: OURS | {"holds data"},
    f"{NETAPP}/capacityPools": OURS | {"holds data"},
    f"{NETAPP}/capacityPools/volumes": OURS | {"what Azure keeps", "holds data"},
    "Microsoft.Network/bastionHosts": OURS | {"usual minutes"},
    "Microsoft.Network/natGateways": OURS,
    "Microsoft.Network/networkInterfaces": OURS | {"what is of others"},
    "Microsoft.Network/networkSecurityGroups": OURS,
    "Microsoft.Network/privateDnsZones": OURS,
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks": OURS,
    "Microsoft.Network/privateEndpoints": OURS,
    "Microsoft.Network/privateEndpoints/privateDnsZoneGroups": MADE,
    "Microsoft.Network/publicIPAddresses": OURS | {"what is of others"},
    "Microsoft.Network/routeTables": OURS,
    "Microsoft.Network/virtualNetworks": OURS,
    "Microsoft.Network/virtualNetworks/virtualNetworkPeerings": APART,
    "Microsoft.OperationalInsights/workspaces": {"requests by id"},
    "Microsoft.Resources/deployments": {"modules"},
    _RESOURCES: MADE - {"rights"},  # those to create a group are rights on the subscription
    f"{STORAGE}/storageAccounts": OURS | {"what Azure keeps", "holds data"},
    f"{STORAGE}/storageAccounts/blobServices": MADE,
    f"{STORAGE}/storageAccounts/blobServices/containers": MADE | {"holds data"},
    f"{STORAGE}/storageAccounts/fileServices/shares": {"holds data"},
    "Microsoft.StorageCache/amlFilesystems": OURS | {"holds data", "usual minutes"},
}
"""Type → who takes something of its row."""


@pytest.mark.parametrize("kind", WANTED)
def test_a_row_is_missed_by_each_of_its_consumers(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = catalog.resource_types().get(kind.lower())
    assert row is not None, f"it is needed by: {', '.join(sorted(WANTED[kind]))}"
    # A deployment's record is asked for by the api-version of the client.
    by_id = {"requests by id"} if row.api_version and kind != "Microsoft.Resources/deployments" else set()
    assert set(consumers_of(kind, monkeypatch)) == WANTED[kind] | by_id


def test_every_row_is_wanted() -> None:
    assert {row.name for row in catalog.resource_types().values()} == set(WANTED)


def test_the_table_names_every_type_that_modules_create_in_their_version() -> None:
    assert [kind for kind, _ in sorted(in_modules()) if not modules(kind)] == []


def test_roles_have_the_ids_and_names_that_modules_give_them() -> None:
    found = {pair for module in MODULES for pair in _ROLE.findall(module.read_text())}
    assert found == set(catalog.roles().items())


def test_what_the_code_names_must_be_in_the_table() -> None:
    with pytest.raises(LookupError, match=r"resource_types\.json has no row for Microsoft\.Network/nothing"):
        catalog.resource_type("Microsoft.Network/nothing")
