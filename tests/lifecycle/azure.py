"""A stand-in for `az` and for what Azure keeps: who made which resource, what uses what, and what Azure refuses.

Each behaviour has a public source; where none was found, the tests play each.

* `az group exists` prints true or false; `show` of what is missing ends with status 3: Azure/azure-cli, modules
  `resource/custom.py` and `core/util.py`.
* `az resource list --tag` refuses `--resource-group` and `--resource-type`: Azure/azure-cli `resource/custom.py`,
  `_list_resources_odata_filter_builder`.
* `az resource delete --ids` goes through the ids again as long as a pass deletes something: the same file,
  `delete_resource`.
* `az role assignment list --all` without an assignee lists the subscription: Azure/azure-cli `role/custom.py`.
* What is used by something else is not deleted:
  learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-in-use.
* Deleting a group deletes what is in it, whoever made it:
  learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group.
* A lock stops deleting (`ScopeLocked`): learn.microsoft.com/azure/azure-resource-manager/management/lock-resources.
* Role assignments outlive their identity, not their scope:
  learn.microsoft.com/azure/role-based-access-control/troubleshooting.
* A peering stays in its own network when the other one is gone:
  learn.microsoft.com/azure/virtual-network/virtual-network-manage-peering.
* A zone with links is not deleted: learn.microsoft.com/azure/dns/private-dns-virtual-network-links.
* NetApp: volume, pool, account, in this order: learn.microsoft.com/azure/azure-netapp-files.
* `deleteOption` says what goes with a VM: learn.microsoft.com/azure/virtual-machines/delete.
* Another SSH key or other custom data for a VM that exists is `PropertyChangeNotAllowed`: Azure/azure-cli#11840,
  Azure/azure-sdk-for-java#1912.
* Whether disks inherit the tags of their VM: no source; the tests play both.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any, NoReturn

import jmespath

SUBSCRIPTION = "11111111-2222-3333-4444-555555555555"
NOT_FOUND = 3
"""Exit status of `az` for what does not exist."""


class RefusedError(Exception):
    """What Azure answers instead of doing it; `status` is that of `az`."""

    def __init__(self, code: str, about: str, status: int = 1) -> None:
        super().__init__(f"({code}) {about}")
        self.status = status


class Azure:
    """The state, as plain data.

    `resources` maps an id to `type`, `by` (who made it), `tags`, `uses` (ids that cannot go before it) and `goes_with`
    (the id of the VM or endpoint that takes it along), and to whatever commands ask for.
    """

    def __init__(self) -> None:
        self.groups: dict[str, Any] = {}
        self.resources: dict[str, Any] = {}
        self.assignments: dict[str, Any] = {}
        self.deployments: dict[str, Any] = {}
        """Records, by id."""
        self.locks: list[str] = []
        self.sent: dict[str, Any] = {}
        """What main.bicep and its parameter file make of the server's VM: `vm`, `key`, `image` and `custom_data`; and
        `storage`, the GiB of the database server that the definition asks for."""

    def add(self, identifier: str, kind: str, by: str, **values: Any) -> str:
        """A resource."""
        self.resources[identifier] = {"type": kind, "by": by, "tags": None, "uses": [], "goes_with": None} | values
        return identifier

    def listed(self) -> list[dict[str, Any]]:
        """Resources as `az resource list` shows them: without those that have no life of their own."""
        return [
            {"id": identifier, "name": identifier.rsplit("/", 1)[1], "type": each["type"], "tags": each["tags"]}
            for identifier, each in self.resources.items()
            if not each.get("is_part")
        ]

    def of_kind(self, kind: str, group: str) -> list[dict[str, Any]]:
        """Resources of one kind in a group, with their properties."""
        scope = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{group}/"
        return [each for path, each in self.resources.items() if each["type"] == kind and path.startswith(scope)]

    def delete(self, identifier: str) -> None:
        """One resource with its parts and what goes with it; RefusedError while it is used."""
        if identifier in self.deployments:
            del self.deployments[identifier]
            return
        if identifier not in self.resources:
            return
        if any(identifier.lower().startswith(lock.lower()) for lock in self.locks):
            raise RefusedError("ScopeLocked", identifier)
        parts = {each for each in self.resources if each.startswith(f"{identifier}/")}
        along = {each for each, found in self.resources.items() if found["goes_with"] == identifier}
        tracked = {each for each in parts if not self.resources[each].get("is_part")}
        if tracked and self.resources[identifier]["type"] in HOLDS_ON_TO_CHILDREN:
            raise RefusedError("CannotDeleteResource", f"{identifier} has {sorted(tracked)}")
        gone = {identifier} | parts | along
        for other, found in self.resources.items():
            if other not in gone and gone.intersection(found["uses"]):
                raise RefusedError("InUse", f"{identifier} is used by {other}")
        for each in gone:
            del self.resources[each]
        self._forget_scopes(gone)

    def delete_group(self, name: str) -> None:
        """A group with all that is in it, whatever the order."""
        scope = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{name}"
        if any(lock.startswith(scope) for lock in self.locks):
            raise RefusedError("ScopeLocked", scope)
        inside = {each for each in self.resources if each.startswith(f"{scope}/")}
        for other, found in self.resources.items():
            if other not in inside and not found.get("is_link") and inside.intersection(found["uses"]):
                raise RefusedError("ResourceGroupDeletionBlocked", f"{other} uses a resource of {name}")
        for each in inside:
            del self.resources[each]
        for found in self.resources.values():
            found["uses"] = [each for each in found["uses"] if each not in inside]
        for each in [record for record in self.deployments if record.startswith(f"{scope}/")]:
            del self.deployments[each]
        del self.groups[name]
        self._forget_scopes({scope})

    def _forget_scopes(self, scopes: set[str]) -> None:
        for identifier, found in list(self.assignments.items()):
            if any(found["scope"] == scope or found["scope"].startswith(f"{scope}/") for scope in scopes):
                del self.assignments[identifier]


HOLDS_ON_TO_CHILDREN = (
    "Microsoft.Network/privateDnsZones",
    "Microsoft.NetApp/netAppAccounts",
    "Microsoft.NetApp/netAppAccounts/capacityPools",
)


def shown(value: Any, query: str | None, output: str | None) -> str:
    """What `--query` and `--output` make of a result."""
    if query:
        value = jmespath.search(query, value)
    if output != "tsv":
        return json.dumps(value, indent=2) + "\n"
    rows = [row for row in (value if isinstance(value, list) else [value]) if row is not None]
    lines = [row if isinstance(row, list) else list(row.values()) if isinstance(row, dict) else [row] for row in rows]
    return "".join("\t".join("" if cell is None else str(cell) for cell in cells) + "\n" for cells in lines)


def identifier_of(kind: str, group: str, name: str, subscription: str | None = None) -> str:
    """The id of a resource, whose name has a part for each part of the type below the first."""
    provider, *types = kind.split("/")
    path = "/".join(f"{each}/{part}" for each, part in zip(types, name.split("/"), strict=True))
    return f"/subscriptions/{subscription or SUBSCRIPTION}/resourceGroups/{group}/providers/{provider}/{path}"


def found(azure: Azure, identifier: str) -> dict[str, Any]:
    """A resource, whatever the case of its id; as `az`, status 3 where there is none."""
    for each, values in azure.resources.items():
        if each.lower() == identifier.lower():
            return {"id": each, "name": each.rsplit("/", 1)[1], **values}
    raise RefusedError("ResourceNotFound", identifier, NOT_FOUND)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError("UnrecognizedArguments", message, 2)


def parsed(words: list[str]) -> tuple[tuple[str, ...], argparse.Namespace]:
    """The command and its flags; a flag that no command here has is status 2, as of `az`."""
    first = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    parser = _Parser(allow_abbrev=False)
    for flag in ("name", "resource-group", "query", "output", "tag", "resource-type", "subscription", "zone-name"):
        parser.add_argument(f"--{flag}")
    for flag in ("location", "template-file", "vm-name", "lun", "operation", "resource-id", "username"):
        parser.add_argument(f"--{flag}")
    for flag in ("ssh-key-value", "vnet-name", "size-gb", "disk"):
        parser.add_argument(f"--{flag}")
    for flag in ("ids", "tags", "parameters"):
        parser.add_argument(f"--{flag}", nargs="+")
    for flag in ("yes", "all", "no-wait", "show-details"):
        parser.add_argument(f"--{flag}", action="store_true")
    return tuple(words[:first]), parser.parse_args(words[first:])


def run(azure: Azure, words: list[str], environment: Mapping[str, str]) -> str:  # noqa: C901
    """What one command prints. An unknown one is a fault of the README or a gap of this file: status 2."""
    command, given = parsed(words)
    group, name = given.resource_group, given.name
    match command:
        case ("account", "show"):
            return shown({"id": SUBSCRIPTION}, given.query, given.output)
        case ("group", "exists"):
            return "true\n" if name in azure.groups else "false\n"
        case ("group", "show"):
            if name not in azure.groups:
                raise RefusedError("ResourceGroupNotFound", name, NOT_FOUND)
            return shown({"name": name, **azure.groups[name]}, given.query, given.output)
        case ("group", "delete"):
            if name not in azure.groups:
                raise RefusedError("ResourceGroupNotFound", name, NOT_FOUND)
            azure.delete_group(name)
        case ("resource", "list"):
            if given.tag and (group or given.resource_type):
                raise RefusedError(
                    "IncorrectUsage", "you cannot use '--tag' with '--resource-group' or '--resource-type'", 2
                )
            rows = [row for row in azure.listed() if group is None or f"/resourceGroups/{group}/" in row["id"]]
            if given.resource_type:
                rows = [row for row in rows if row["type"].lower() == given.resource_type.lower()]
            if given.tag:
                key, _, value = given.tag.partition("=")
                rows = [row for row in rows if (row["tags"] or {}).get(key) == value]
            return shown(rows, given.query, given.output)
        case ("resource", "delete"):
            delete_in_passes(azure, given.ids)
        case ("tag", "update"):
            identifier = found(azure, given.resource_id)["id"]
            new = dict(tag.split("=", 1) for tag in given.tags)
            azure.resources[identifier]["tags"] = (azure.resources[identifier]["tags"] or {}) | new
        case ("vm", "show"):
            vm = found(azure, identifier_of("Microsoft.Compute/virtualMachines", group, name))
            return shown(vm, given.query, given.output)
        case ("vm", "delete"):
            azure.delete(found(azure, identifier_of("Microsoft.Compute/virtualMachines", group, name))["id"])
        case ("mysql", "flexible-server", "list"):
            servers = azure.of_kind("Microsoft.DBforMySQL/flexibleServers", group)
            return shown(servers, given.query, given.output)
        case ("identity", "show"):
            kind = "Microsoft.ManagedIdentity/userAssignedIdentities"
            return shown(found(azure, identifier_of(kind, group, name)), given.query, given.output)
        case ("role", "assignment", "list"):
            if not given.all:
                raise RefusedError("NotPlayed", "list without --all")
            rows = [{"id": each, **values} for each, values in azure.assignments.items()]
            return shown(rows, given.query, given.output)
        case ("role", "assignment", "delete"):
            for each in given.ids:
                azure.assignments.pop(each)
        case ("network", "vnet", "show"):
            vnet = found(azure, given.ids[0])
            peerings = [
                {"id": each, **azure.resources[each]} for each in azure.resources if each.startswith(vnet["id"])
            ]
            vnet["virtualNetworkPeerings"] = [each for each in peerings if "remoteVirtualNetwork" in each]
            return shown(vnet, given.query, given.output)
        case ("network", "vnet", "peering", "delete"):
            for each in given.ids:
                azure.delete(found(azure, each)["id"])
        case ("network", "private-dns", "link", "vnet", "list"):
            zone = identifier_of("Microsoft.Network/privateDnsZones", group, given.zone_name, given.subscription)
            found(azure, zone)
            links = [
                {"id": each, "name": each.rsplit("/", 1)[1], "virtualNetwork": {"id": values["uses"][0]}}
                for each, values in azure.resources.items()
                if each.startswith(f"{zone}/virtualNetworkLinks/")
            ]
            return shown(links, given.query, given.output)
        case ("network", "private-dns", "link", "vnet", "delete"):
            kind = "Microsoft.Network/privateDnsZones/virtualNetworkLinks"
            azure.delete(identifier_of(kind, group, f"{given.zone_name}/{name}", given.subscription))
        case ("deployment", "operation", "sub", "list"):
            return shown(record(azure, name)["operations"], given.query, given.output)
        case ("deployment", "sub", "show"):
            return shown(record(azure, name), given.query, given.output)
        case ("deployment", "sub", "delete"):
            record(azure, name)
            del azure.deployments[sub_record(name)]
        case ("deployment", "group", "delete"):
            identifier = f"/subscriptions/{given.subscription or SUBSCRIPTION}/resourceGroups/{group}/providers"
            azure.deployments.pop(f"{identifier}/Microsoft.Resources/deployments/{name}", None)
        case ("deployment", "sub", "what-if"):
            return ""
        case ("deployment", "sub", "create"):
            redeploy(azure, environment)
        case _:
            raise RefusedError("NotPlayed", " ".join(words), 2)
    return ""


def sub_record(name: str) -> str:
    """Id of the record of a deployment of the subscription."""
    return f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Resources/deployments/{name}"


def record(azure: Azure, name: str) -> dict[str, Any]:
    """That record; status 3 where there is none."""
    if sub_record(name) not in azure.deployments:
        raise RefusedError("DeploymentNotFound", name, NOT_FOUND)
    return azure.deployments[sub_record(name)]  # type: ignore[no-any-return]


def delete_in_passes(azure: Azure, identifiers: list[str]) -> None:
    """As long as a pass deletes something, another one follows."""
    left, faults = list(identifiers), [""]
    while left and faults:
        faults, again = [], []
        for identifier in left:
            try:
                azure.delete(identifier)
            except RefusedError as refused:
                faults.append(str(refused))
                again.append(identifier)
        if len(again) == len(left):
            raise RefusedError("SomeResourcesFailedToBeDeleted", "; ".join(faults))
        left = again


def redeploy(azure: Azure, environment: Mapping[str, str]) -> None:
    """What Azure checks of the server's VM and of a database server when main.bicep is deployed again."""
    sends = azure.sent
    # Azure refuses to shrink it: https://github.com/hashicorp/terraform-provider-azurerm/issues/10360
    storage = max(sends.get("storage", 0), int(environment.get("CYCLEFORGE_DATABASE_STORAGE") or 0))
    for server in azure.resources.values():
        if server["type"] == "Microsoft.DBforMySQL/flexibleServers" and storage < server["storage"]["storageSizeGb"]:
            raise RefusedError("InvalidStorageSize", f"{storage} GiB is less than what the server has")
    key = environment.get("CYCLEFORGE_SERVER_KEY") or sends["key"]
    image = environment.get("CYCLEFORGE_SERVER_IMAGE") or sends["image"]
    vm = azure.resources.get(sends["vm"])
    if vm is None:
        values = virtual_machine(key, image) | {"customData": sends["custom_data"]}
        azure.add(sends["vm"], "Microsoft.Compute/virtualMachines", "deployment", **values)
        return
    had = vm["osProfile"]["linuxConfiguration"]["ssh"]["publicKeys"][0]["keyData"]
    for sent, kept, target in (
        (key, had, "linuxConfiguration.ssh.publicKeys"),
        (image, vm["storageProfile"]["imageReference"]["version"], "imageReference"),
        (sends["custom_data"], vm["customData"], "customData"),
    ):
        if sent != kept:
            raise RefusedError("PropertyChangeNotAllowed", f"Changing property '{target}' is not allowed.")


def virtual_machine(key: str, image: str) -> dict[str, Any]:
    """What commands ask of a VM."""
    return {
        "osProfile": {"linuxConfiguration": {"ssh": {"publicKeys": [{"keyData": key}]}}},
        "storageProfile": {"imageReference": {"version": image}, "dataDisks": []},
        "identity": {"principalId": "new"},
    }


def answer(azure: Azure, words: list[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of `az`."""
    try:
        return 0, run(azure, words, environment), ""
    except RefusedError as refused:
        return refused.status, "", f"ERROR: {refused}\n"
