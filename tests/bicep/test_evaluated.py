"""The deployments as Microsoft's own engine evaluates them (`bicep snapshot`), beside what plan and evaluator say.

Where the compiler knows `snapshot`, today's deployments are evaluated. Elsewhere it is what Bicep 0.49.2 made of those
of commit 5501c0f (2026-11-26), trimmed of nulls, of the script of the first boot and of names that are expressions.
That file is never regenerated: what has changed on purpose since then is named in `SINCE`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from generator.definition.read import read_model
from generator.plan.created_types import created_types
from generator.plan.deployment import Plan
from tests.bed.bicep.deployment import resources_of
from tests.bed.bicep.values import Resource, is_late
from tests.bicep import compilers
from tests.definitions import build

FIXTURE = Path(__file__).with_name("evaluated-5501c0f.json")
SUBSCRIPTION, TENANT = "11111111-1111-1111-1111-111111111111", "33333333-3333-3333-3333-333333333333"
_HUB_GROUP = "/subscriptions/22222222-2222-2222-2222-222222222222/resourceGroups/hub"
HUB = f"{_HUB_GROUP}/providers/Microsoft.Network/virtualNetworks/hub"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBw5EnjPIH6yy8RJ0kDBUUU9j/v9VOoqHtEwpkM9u1Hn"
GIVEN = {"hubVnetId": HUB, "sshPublicKey": KEY}
SINCE: dict[str, str] = {}
"""`TYPE PROPERTY`, as the test prints it → why it is not what it was on that day."""
ROLES = "Microsoft.Authorization/roleAssignments"
_HASH = re.compile(r"[a-z2-7]{13}(?![a-z0-9-])")
"""What `uniqueString` gives, which is Microsoft's secret."""
_LEFT_OUT = {"id", "type", "name", "apiVersion", "condition"}
_NOT_KEPT = {("properties", "protectedSettings"), ("properties", "forceUpdateTag")}
every_name = pytest.mark.parametrize("name", build.NAMES)

Told = list[dict[str, Any]]


def plan_of(name: str) -> Plan:
    plan = build.checked(name).plan
    assert plan is not None
    return plan


def snapshot(name: str, folder: Path) -> Told:
    """What the engine makes of a deployment today."""
    build.write(build.rendered(name), folder)
    plan = plan_of(name)
    variables = {each.variable: GIVEN.get(each.parameter, "Plausible-Passw0rd") for each in plan.asked}
    variables |= {each.variable: "Plausible-Passw0rd" for each in plan.secrets}
    command = [str(compilers.program()), "snapshot", "main.bicepparam", "--mode", "overwrite"]
    command += ["--subscription-id", SUBSCRIPTION, "--tenant-id", TENANT, "--location", plan.location]
    subprocess.run(command, cwd=folder, env={**os.environ, **variables}, check=True, capture_output=True)
    content = json.loads((folder / "main.snapshot.json").read_text(encoding="utf-8"))
    assert content["diagnostics"] == []
    return list(content["predictedResources"])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Told]:
    """The resources of a shipped definition as the engine gives them."""

    @cache
    def of(name: str) -> Told:
        if compilers.knows("snapshot"):
            return snapshot(name, tmp_path_factory.mktemp(name))
        return list(json.loads(FIXTURE.read_text(encoding="utf-8"))["deployments"][name])

    return of


def plain(text: object) -> str:
    """A text without what differs by the subscription."""
    return _HASH.sub("HASH", re.sub(r"/subscriptions/[0-9a-f-]{36}", "/subscriptions/S", str(text).lower()))


# ---------------------------------------------------------------- plan and engine


@every_name
def test_the_plan_names_what_the_engine_finds(name: str, told: Callable[[str], Told]) -> None:
    plan, found = plan_of(name), told(name)
    definition = read_model(build.checked(name).source.data).definition
    assert definition is not None
    assert {each["type"] for each in found} == {each.type for each in created_types(definition)}
    (group,) = (each for each in found if each["type"] == "Microsoft.Resources/resourceGroups")
    assert (group["name"], group["location"]) == (plan.resource_group, plan.location)
    (network,) = (each for each in found if each["type"] == "Microsoft.Network/virtualNetworks")
    assert network["name"] == plan.network.vnet_name
    assert network["properties"]["addressSpace"]["addressPrefixes"] == [plan.network.address_space]
    prefixes = {each["name"]: each["properties"]["addressPrefix"] for each in network["properties"]["subnets"]}
    assert prefixes == {each.name: each.prefix for each in plan.network.subnets if each.prefix}
    sizes = {
        each["name"]: each["properties"]["hardwareProfile"]["vmSize"]
        for each in found
        if each["type"] == "Microsoft.Compute/virtualMachines"
    }
    assert plan.server is not None
    assert sizes.pop(plan.server.vm_name) == plan.server.vm_size
    assert list(sizes.values()) == ([plan.server.jumpbox.vm_size] if plan.server.jumpbox else [])
    tagged = [each for each in found if "tags" in each]
    assert tagged
    for each in tagged:
        assert dict(plan.tags).items() <= each["tags"].items(), each["id"]


# ---------------------------------------------------------------- evaluator and engine


def ours(name: str) -> list[Resource]:
    """The resources by the evaluator of the test bed."""
    main = build.rendered(name)[PurePosixPath("main.bicep")].content.decode()
    given = {key: value for key, value in GIVEN.items() if re.search(rf"^param {key}\b", main, re.MULTILINE)}
    return [each for each in resources_of(build.rendered(name), given) if not each.is_deployment]


def keyed(resources: Iterator[tuple[str, str, str, Any]]) -> dict[str, Any]:
    """By type and id; what the engine has no id for by its number, and a role by itself and where it is assigned."""
    found: dict[str, Any] = {}
    count = Counter[str]()
    for kind, identity, scope, body in resources:
        key = f"{kind} {plain(identity)}"
        if kind == ROLES:
            key = f"{kind} {body['properties']['roleDefinitionId'].rsplit('/', 1)[-1]} {plain(scope)}"
        elif kind.startswith("Microsoft.Network/privateDnsZones"):
            count[kind] += 1
            key = f"{kind} {count[kind]}"
        assert key not in found
        found[key] = body
    return found


def of_engine(resources: Told) -> Iterator[tuple[str, str, str, Any]]:
    for each in resources:
        scope = re.search(r"guid\('([^']+)'", each["id"])
        yield each["type"], each["id"], scope[1] if scope else "", each


def of_evaluator(resources: list[Resource]) -> Iterator[tuple[str, str, str, Any]]:
    for each in resources:
        yield each.type, each.id, each.scope, {"apiVersion": each.api_version, **each.body}


def differences(theirs: Any, mine: Any, path: str) -> Iterator[str]:
    """Where values differ that both know.

    The engine leaves as expressions what only the running deployment has, the names of the cloud, and secrets.
    """
    if isinstance(theirs, str) and theirs.startswith("["):
        if not is_late(mine) and not re.search(r"environment\(\)|^\[parameters\('\w+Password'\)\]$", theirs):
            yield f"{path}: {theirs} | {mine}"
    elif isinstance(theirs, dict) and isinstance(mine, dict):
        for key in sorted({*theirs, *mine}):
            if theirs.get(key) is not None or mine.get(key) is not None:
                yield from differences(theirs.get(key), mine.get(key), f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(mine, list) and len(theirs) == len(mine):
        for one, other in zip(theirs, mine, strict=True):
            yield from differences(one, other, f"{path}[]")
    elif plain(theirs) != plain(mine):
        yield f"{path}: {theirs} | {mine}"


def body_of(resource: dict[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in resource.items() if key not in _LEFT_OUT - {"apiVersion"}}
    for section, key in _NOT_KEPT:
        if key in kept.get(section, {}):
            kept[section] = {name: value for name, value in kept[section].items() if name != key}
    return kept


@every_name
def test_the_evaluator_gives_what_the_engine_gives(name: str, told: Callable[[str], Told]) -> None:
    """Every resource with its api-version, and every value that both know."""
    theirs, mine = keyed(of_engine(told(name))), keyed(of_evaluator(ours(name)))
    assert theirs.keys() == mine.keys()
    found = [
        line
        for key, each in theirs.items()
        for line in differences(body_of(each), body_of(mine[key]), key.partition(" ")[0] + " ")
    ]
    assert [line for line in found if line.partition(":")[0] not in SINCE] == []
