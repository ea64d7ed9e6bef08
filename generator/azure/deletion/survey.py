"""Asks Azure what a deployment has, and what would stop its deletion; changes nothing.

In the groups of others it has peerings of the hub and links of existing DNS zones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ... import catalog
from ...plan.deployment import Plan
from ..answers import below, text_below
from ..reader import Reader
from ..refusals import Refused
from ..request import Call
from ..requests import resource_manager
from ..requests.network import PEERINGS, ZONE_LINKS
from ..requests.rights import ROLES_OF_PRINCIPAL
from ..resource_ids import name_of, network_id, same_id, server_id, within
from .records import records_of
from .seen import Lock, NotSeen, Role, Seen, Thing

_Found = TypeVar("_Found")


def survey(plan: Plan, reader: Reader, principals: Iterable[str] = ()) -> Seen:
    """What is there now; `principals` are identities known from before. Raises Refused and NotAsked.

    What is in other subscriptions and groups may be out of the caller's sight, which is then said.
    """
    place = Place(plan, reader)
    first: Sequence[Any] = reader.together(
        [
            place.group,
            place.resources,
            place.elsewhere,
            place.server,
            place.node_principals,
            partial(records_of, plan, reader),
            place.stack,
            partial(_foreign, plan, reader),
            place.locks,
        ]
    )
    group, resources, elsewhere, machine, nodes, (records, owning, lost), stack, (peerings, links, hidden), locks = (
        first
    )
    owners = (*principals, *(_principal(machine) if plan.server else ()), *nodes, *owning)
    who = tuple(sorted({each.casefold() for each in owners}))
    roles, blind = place.roles(who)
    foreign_locks, unlocked = place.locks_at((*peerings, *links))
    known = {each.casefold() for each in (stack[0], *links, *(each.id for each in resources))}
    return Seen(
        subscription=reader.subscription,
        group=_thing(group) if group is not None else None,
        group_state=str(below(group or {}, "properties", "provisioningState") or ""),
        resources=resources,
        elsewhere=tuple(each for each in elsewhere if each.id.casefold() not in known),
        server=place.server_id if machine is not None else "",
        data_disks=tuple(_data_disks(machine or {})) if plan.server else (),
        principals=who,
        roles=roles,
        peerings=peerings,
        links=links,
        diagnostics=place.diagnostics(resources),
        records=records,
        stack=stack[0],
        stack_denies=stack[1],
        locks=(*locks, *foreign_locks),
        not_seen=(*hidden, *lost, *blind, *unlocked),
    )


class Place:
    """The questions about the deployment's own subscription and group."""

    def __init__(self, plan: Plan, reader: Reader) -> None:
        self.plan, self.reader = plan, reader
        self.subscription = f"/subscriptions/{reader.subscription}"
        self.scope = f"{self.subscription}/resourceGroups/{plan.resource_group}"
        self.server_id = server_id(plan, reader.subscription)

    def group(self) -> Mapping[str, Any] | None:
        return self.reader.find(resource_manager.group(self.plan.resource_group))

    def resources(self) -> tuple[Thing, ...]:
        return tuple(map(_thing, self.reader.find_pages(resource_manager.resources_in(self.plan.resource_group))))

    def elsewhere(self) -> tuple[Thing, ...]:
        """What carries the tag in other groups."""
        call = resource_manager.tagged(self.plan.cleanup.tag, self.plan.name)
        return tuple(each for each in map(_thing, self.reader.pages(call)) if not within(self.scope, each.id))

    def server(self) -> Mapping[str, Any] | None:
        return self.reader.find(resource_manager.by_id(self.server_id)) if self.server_id else None

    def node_principals(self) -> tuple[str, ...]:
        found = self.reader.find(
            resource_manager.by_id(
                f"{self.scope}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{self.plan.names.node_identity}"
            )
        )
        return () if found is None else (text_below(found, "properties", "principalId"),)

    def stack(self) -> tuple[str, bool]:
        """Id of the deployment stack, and whether it denies anything."""
        found = self.reader.find(resource_manager.stack(self.reader.subscription, self.plan.deployment_name))
        if found is None:
            return "", False
        mode = below(found, "properties", "denySettings", "mode")
        return text_below(found, "id"), str(mode or "none").casefold() != "none"

    def locks(self) -> tuple[Lock, ...]:
        """Every lock of the subscription, its groups and resources."""
        return tuple(_locks(self.reader.pages(resource_manager.locks(self.reader.subscription))))

    def locks_at(self, scopes: Iterable[str]) -> tuple[tuple[Lock, ...], tuple[NotSeen, ...]]:
        """Locks of other subscriptions in which something goes."""
        others = sorted({"/".join(each.split("/")[:3]).casefold() for each in scopes} - {self.subscription.casefold()})
        return _each_seen(
            others,
            lambda at: _locks(self.reader.pages(resource_manager.locks(name_of(at)))),
            "whether something is locked in",
            is_leftover=False,
        )

    def roles(self, principals: Sequence[str]) -> tuple[tuple[Role, ...], tuple[NotSeen, ...]]:
        """Roles of the deployment's identities, in this subscription and in those that the plan names."""
        own = tuple(role for each in principals for role in self._roles(self.subscription, each))
        others = [
            (scope, each)
            for scope in self._role_scopes()
            if not same_id(scope, self.subscription)
            for each in principals
        ]
        found, blind = _each_seen(
            others, lambda pair: self._roles(*pair), "which roles an identity has in", lambda pair: " of ".join(pair)
        )
        return (*own, *self._of_existing_server(), *found), blind

    def _role_scopes(self) -> list[str]:
        """Subscriptions in which the deployment gave roles."""
        return [f"/subscriptions/{each}" for each in self.plan.cleanup.other_subscriptions]

    def _roles(self, scope: str, principal: str) -> Iterator[Role]:
        call = ROLES_OF_PRINCIPAL(scope=scope, principal=principal)
        for row in self.reader.pages(call):
            role = Role(text_below(row, "id"), text_below(row, "properties", "scope"), principal)
            if within(scope, role.scope):  # a role that holds further up is not this deployment's
                yield role

    def _of_existing_server(self) -> Iterator[Role]:
        """The one role that the deployment gave to the identity of an existing server."""
        server = self.plan.existing_server
        if server is None or server.principal_id is None:
            return
        call = ROLES_OF_PRINCIPAL(scope=self.subscription, principal=server.principal_id)
        for row in self.reader.pages(call):
            role = Role(text_below(row, "id"), text_below(row, "properties", "scope"), server.principal_id)
            definition = name_of(text_below(row, "properties", "roleDefinitionId"))
            if definition.casefold() == catalog.roles()["Contributor"] and same_id(role.scope, self.scope):
                yield role

    def diagnostics(self, resources: Iterable[Thing]) -> tuple[str, ...]:
        """Diagnostic settings, which outlive what they belong to."""
        if not self.plan.security.diagnostics_workspace_id:
            return ()
        settings = [
            f"{_logged(each)}/providers/Microsoft.Insights/diagnosticSettings/{self.plan.security.diagnostics_name}"
            for each in resources
            if each.type.casefold() in _LOGGED
        ]
        found = self.reader.together([partial(self.reader.find, resource_manager.by_id(each)) for each in settings])
        return tuple(each for each, answer in zip(settings, found, strict=True) if answer is not None)


_LOGGED = (
    "microsoft.dbformysql/flexibleservers",
    "microsoft.network/bastionhosts",
    "microsoft.network/networksecuritygroups",
    "microsoft.storage/storageaccounts",
)
"""Types whose modules in bicep_templates/ make a diagnostic setting."""


def _logged(each: Thing) -> str:
    return f"{each.id}/blobServices/default" if each.type.casefold().endswith("/storageaccounts") else each.id


def _each_seen(
    where: Iterable[Any],
    look: Callable[[Any], Iterable[_Found]],
    what: str,
    say: Callable[[Any], str] = str,
    *,
    is_leftover: bool = True,
) -> tuple[tuple[_Found, ...], tuple[NotSeen, ...]]:
    """What is found in places that may be out of sight, and those that are."""
    found: list[_Found] = []
    blind: list[NotSeen] = []
    for each in where:
        try:
            found += look(each)
        except Refused as reason:
            blind.append(NotSeen(f"{what} {say(each)}", str(reason), is_leftover=is_leftover))
    return tuple(found), tuple(blind)


def _locks(rows: Iterable[Mapping[str, Any]]) -> Iterator[Lock]:
    for row in rows:
        lock = text_below(row, "id")
        scope = lock[: lock.casefold().rindex("/providers/microsoft.authorization/locks/")]
        yield Lock(lock, scope, text_below(row, "properties", "level"))


def _principal(machine: Mapping[str, Any] | None) -> Iterator[str]:
    found = below(machine or {}, "identity", "principalId")
    if isinstance(found, str) and found:
        yield found


def _data_disks(machine: Mapping[str, Any]) -> Iterator[str]:
    disks = below(machine, "properties", "storageProfile", "dataDisks")
    for each in disks if isinstance(disks, list) else []:
        disk = below(each, "managedDisk", "id")
        if isinstance(disk, str):
            yield disk


def _thing(row: Mapping[str, Any]) -> Thing:
    tags = row.get("tags")
    return Thing(
        text_below(row, "id"),
        text_below(row, "type"),
        text_below(row, "name"),
        {str(key): str(value) for key, value in tags.items()} if isinstance(tags, dict) else {},
        str(row.get("location") or ""),
        str(row.get("managedBy") or ""),
    )


def _foreign(plan: Plan, reader: Reader) -> tuple[tuple[str, ...], tuple[str, ...], tuple[NotSeen, ...]]:
    """Return peerings of the hub and links of existing DNS zones that lead to the network, and what is out of sight."""
    network = network_id(plan, reader.subscription)
    blind: list[NotSeen] = []
    peerings: list[str] = []
    for hub in _hubs(plan, reader, network, blind):
        call = PEERINGS(id=hub)
        peerings += _leading(reader, call, network, "remoteVirtualNetwork", f"peerings of {hub}", blind)
    links: list[str] = []
    for zone in plan.cleanup.linked_zones:
        call = ZONE_LINKS(owner=zone.subscription, group=zone.resource_group, zone=zone.name)
        links += _leading(reader, call, network, "virtualNetwork", f"links of the DNS zone {zone.name}", blind)
    return tuple(peerings), tuple(links), tuple(blind)


def _hubs(plan: Plan, reader: Reader, network: str, blind: list[NotSeen]) -> Iterable[str]:
    """The hub of the definition; one that was asked for at deployment is in the environment, or in our peering."""
    if plan.network.hub is None:
        return ()
    named = plan.network.hub.vnet_id
    if isinstance(named, str):
        return (named,)
    if os.environ.get(named.variable):
        return (os.environ[named.variable],)
    call = PEERINGS(id=network)
    found = {text_below(each, "properties", "remoteVirtualNetwork", "id") for each in reader.find_pages(call)}
    if not found:
        hint = f"export {named.variable}=ID of the hub network"
        blind.append(NotSeen("which network is the hub, and whether it keeps a peering", "nothing says it", hint))
    return sorted(found)


def _leading(reader: Reader, call: Call, network: str, key: str, what: str, blind: list[NotSeen]) -> Iterable[str]:
    """Return the ids of those of a list that lead to the network."""
    try:
        return [
            text_below(each, "id")
            for each in reader.find_pages(call)
            if same_id(str(below(each, "properties", key, "id") or ""), network)
        ]
    except Refused as reason:
        blind.append(NotSeen(f"whether there are {what} to this network", str(reason)))
        return []
