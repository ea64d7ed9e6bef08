"""Decides what goes, in which order, what stays and what is in the way, from the plan and what Azure has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ... import catalog
from ...plan.deployment import Plan
from ..request import Call
from ..requests import resource_manager
from ..resource_ids import name_of, resource, same_id, within
from .seen import Lock, NotSeen, Seen, Thing

TURNS = ("stack", "role", "connection", "diagnostics", "mark", "resource", "group", "record")
"""The order; whatever is in one turn goes at the same time, resources type by type."""


class Going(Struct, frozen=True):
    """One thing that is deleted, or what is done before it: the tag that a disk gets, the server that is stopped."""

    turn: str
    id: str
    text: str
    call: Call


class Obstacle(Struct, frozen=True):
    """What must be fixed before anything is deleted."""

    text: str
    hint: str


class Stopped(Exception):  # noqa: N818 - named by what happened
    """It does not go on; what was done stays done, and the same command goes on from there."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


class Decision(Struct, frozen=True):
    nodes: tuple[Thing, ...]
    """Machines that CycleCloud made: the cluster is terminated, and they are waited for."""
    going: tuple[Going, ...]
    """In the order in which it goes."""
    gone: tuple[Thing, ...]
    """The resources among it, those that go with their group included."""
    others: tuple[Thing, ...]
    """Those of them that the deployment did not make."""
    staying: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    not_seen: tuple[NotSeen, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing left to delete."""
        return not self.going and not self.nodes


def decide(plan: Plan, seen: Seen, *, keeps_data: bool = False) -> Decision:
    """What deleting this deployment means now."""
    takes_group = not keeps_data and group_is_ours(plan, seen)
    single = () if takes_group else tuple(_one_by_one(plan, seen, keeps_data=keeps_data))
    chosen = {each.casefold() for each in single}
    gone = seen.resources if takes_group else tuple(each for each in seen.resources if each.id.casefold() in chosen)
    others = tuple(_of_others(plan, seen)) if takes_group else ()
    going = (
        *(_stack(seen) if seen.stack_denies else ()),
        *(removal("role", role.id, f"role of an identity at {role.scope}") for role in seen.roles),
        *(() if keeps_data else _connections(seen)),
        *_diagnostics(seen, gone),
        *(() if takes_group else _marks(plan, seen)),
        *map(removal_of, single),
        *(_group(plan, seen) if takes_group else ()),
        *(() if keeps_data or seen.stack_denies else _stack(seen)),
        *(() if keeps_data else _records(seen, takes_group=takes_group)),
    )
    left = tuple(
        each
        for each in seen.resources
        if each not in gone and not _is_below(each, gone) and not _goes_with_its_machine(each, gone, seen)
    )
    return Decision(
        nodes=tuple(each for each in seen.resources if is_node(plan, each)),
        going=going,
        gone=gone,
        others=others,
        staying=(*_staying(plan, seen, left, keeps_data=keeps_data), *plan.cleanup.left),
        obstacles=(*_strangers(plan, seen), *obstacles(seen, going, gone)),
        not_seen=seen.not_seen,
    )


def group_is_ours(plan: Plan, seen: Seen) -> bool:
    """Whether the group carries the tag that this deployment wrote when it created it."""
    return plan.creates_resource_group and seen.group is not None and is_tagged(plan, seen.group)


def is_tagged(plan: Plan, each: Thing) -> bool:
    """Whether something carries the deployment's tag; the names of tags have any case, their values do not.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources
    """
    return any(name.casefold() == plan.cleanup.tag and value == plan.name for name, value in each.tags.items())


def is_node(plan: Plan, each: Thing) -> bool:
    """Whether CycleCloud made this machine: it carries the tag and is neither the server nor the jumpbox.

    A jumpbox that the definition no longer names is one, too.
    """
    own = plan.server
    named = {own.vm_name, f"{own.vm_name.removesuffix('-server')}-jumpbox"} if own else set()
    return each.is_machine and is_tagged(plan, each) and each.name not in named


def _strangers(plan: Plan, seen: Seen) -> Iterator[Obstacle]:
    """What has the name of ours, but not the tag: roles and connections of it must not go."""
    ours = {
        ("microsoft.compute/virtualmachines", plan.server.vm_name.casefold() if plan.server else ""),
        ("microsoft.managedidentity/userassignedidentities", plan.names.node_identity.casefold()),
        ("microsoft.network/virtualnetworks", plan.network.vnet_name.casefold() if plan.network.is_new else ""),
    }
    for each in seen.resources:
        if (each.type.casefold(), each.name.casefold()) in ours and not is_tagged(plan, each):
            tag = f"{plan.cleanup.tag}={plan.name}"
            yield Obstacle(
                f"{each.type} {each.name} does not carry the tag {tag}: it belongs to another deployment or an old one",
                f"if it is yours: az tag update --operation Merge --tags {tag} --resource-id {each.id} (and so for all "
                "that is yours), or deploy once more, which writes the tags",
            )


def _one_by_one(plan: Plan, seen: Seen, *, keeps_data: bool) -> Iterator[str]:
    """Ids of what the deployment made, each after what uses it."""
    cleanup = plan.cleanup
    named = {kind.casefold(): {each.casefold() for each in names} for kind, names in cleanup.names_without_data}
    whole = {kind.casefold() for kind in cleanup.types_without_data}
    there = {each.id.casefold(): each for each in seen.resources}
    for kind in map(str.casefold, cleanup.types):
        for each in there.values():
            if each.type.casefold() != kind or not (is_tagged(plan, each) or _is_data_disk(each, seen)):
                continue
            if not keeps_data or kind in whole or each.name.casefold() in named.get(kind, ()):
                yield each.id


def _is_data_disk(each: Thing, seen: Seen) -> bool:
    return any(same_id(each.id, disk) for disk in seen.data_disks)


def _goes_with_its_machine(each: Thing, gone: Iterable[Thing], seen: Seen) -> bool:
    """Whether it is the system disk of a machine that goes; disks that outlive theirs are known."""
    return (
        each.type.casefold() == "microsoft.compute/disks"
        and any(same_id(each.managed_by, one.id) for one in gone)
        and not _is_data_disk(each, seen)
    )


def _is_of_endpoint(each: Thing, plan: Plan, seen: Seen) -> bool:
    """Whether it is the interface that Azure makes for one of our private endpoints; it carries no tag."""
    return each.type.casefold() == "microsoft.network/networkinterfaces" and any(
        each.name.casefold().startswith(f"{one.name.casefold()}.nic") and is_tagged(plan, one)
        for one in seen.resources
        if one.type.casefold() == "microsoft.network/privateendpoints"
    )


def _of_others(plan: Plan, seen: Seen) -> Iterator[Thing]:
    """What goes with the group although the deployment did not make it.

    Disks and the interfaces of private endpoints carry no tag; parts of nodes go when the nodes do.
    """
    mine = [each for each in seen.resources if is_tagged(plan, each)]
    has_nodes = any(is_node(plan, each) for each in mine)
    parts = {name for name, row in catalog.resource_types().items() if row.node == "part"}
    for each in seen.resources:
        held = any(same_id(each.managed_by, one.id) for one in mine)
        part = has_nodes and each.type.casefold() in parts
        is_part = _is_below(each, mine) or _is_data_disk(each, seen) or _is_of_endpoint(each, plan, seen)
        if not (each in mine or is_part or held or part):
            yield each


def _is_below(each: Thing, above: Iterable[Thing]) -> bool:
    """Whether something is part of one of these."""
    return any(within(one.id, each.id) for one in above)


def removal_of(resource_id: str) -> Going:
    """Return the deletion of a resource among others, by its type and name."""
    return removal("resource", resource_id, f"{resource(resource_id).type} {name_of(resource_id)}")


def _connections(seen: Seen) -> Iterator[Going]:
    for each in (*seen.peerings, *seen.links):
        kind = "link" if each in seen.links else "peering"
        yield removal("connection", each, f"{kind} {name_of(each)} in {_parent(each)}")


def _parent(resource_id: str) -> str:
    return resource_id.rsplit("/", 2)[0]


def _diagnostics(seen: Seen, gone: Iterable[Thing]) -> Iterator[Going]:
    for each in seen.diagnostics:
        if any(within(one.id, each) for one in gone):
            yield removal("diagnostics", each, f"diagnostic setting {each}")


def _marks(plan: Plan, seen: Seen) -> Iterator[Going]:
    """The tag for disks that outlive the server, so that a later run knows them."""
    tagged = {each.id.casefold() for each in seen.resources if is_tagged(plan, each)}
    yield from (mark_of(plan, each) for each in seen.data_disks if each.casefold() not in tagged)


def mark_of(plan: Plan, resource_id: str) -> Going:
    """The deployment's tag for a part of a machine, which outlives it."""
    kind = resource(resource_id).type.rpartition("/")[2]
    text = f"tag {plan.cleanup.tag}={plan.name} for {kind} {name_of(resource_id)}"
    return Going("mark", resource_id, text, resource_manager.tag(resource_id, {plan.cleanup.tag: plan.name}))


def _group(plan: Plan, seen: Seen) -> Iterator[Going]:
    assert seen.group is not None
    call = resource_manager.delete_group(seen.group.id)
    yield Going("group", seen.group.id, f"resource group {plan.resource_group} with everything in it", call)


def _stack(seen: Seen) -> Iterator[Going]:
    """It goes without what it made: first where it denies that anything is deleted, otherwise with the records."""
    if seen.stack:
        turn, more = ("stack", ", whose deny settings are in the way") if seen.stack_denies else ("record", "")
        call = resource_manager.delete_stack(seen.stack)
        yield Going(turn, seen.stack, f"deployment stack {name_of(seen.stack)}{more}", call)


def _records(seen: Seen, *, takes_group: bool) -> Iterator[Going]:
    """Those of parts in the group go with it. The deployment's own is the last, for it leads to the others."""
    for each in seen.records:
        if not (takes_group and seen.group and within(seen.group.id, each.id)):
            yield removal("record", each.id, f"record of the deployment {name_of(each.id)}")


def removal(turn: str, resource_id: str, text: str) -> Going:
    """Return the deletion of a resource; raises ValueError for a type that no deployment creates."""
    kind = resource(resource_id).type.casefold()
    row = catalog.resource_types().get(kind)
    if kind != "microsoft.resources/deployments" and (row is None or row.removal is None):
        raise ValueError(f"nothing deletes {resource_id}")
    return Going(turn, resource_id, text, resource_manager.delete_by_id(resource_id))


def _staying(plan: Plan, seen: Seen, left: Iterable[Thing], *, keeps_data: bool) -> Iterator[str]:
    if seen.group is not None:
        if keeps_data:
            yield f"resource group {plan.resource_group}"
        elif not plan.creates_resource_group:
            yield f"resource group {plan.resource_group}, which existed before"
        elif not group_is_ours(plan, seen):
            tag = f"{plan.cleanup.tag}={plan.name}"
            yield f"resource group {plan.resource_group}, which this deployment did not create: it has no tag {tag}"
    for each in left:
        ours = is_tagged(plan, each) or _is_data_disk(each, seen) or _is_of_endpoint(each, plan, seen)
        reason = "" if ours and keeps_data else ", which this deployment did not create"
        if is_tagged(plan, each) and not keeps_data:
            reason = f", which CycleForge does not know how to delete: az resource delete --ids {each.id}"
        yield f"{each.type} {each.name}{reason}"
    if keeps_data:
        yield from (f"connection {each}" for each in (*seen.peerings, *seen.links))
    for each in seen.elsewhere:
        yield f"{each.id}, which carries the tag but is in another resource group"


_ENDED = ("succeeded", "failed", "canceled", "")


def obstacles(seen: Seen, going: Sequence[Going], gone: Sequence[Thing]) -> Iterator[Obstacle]:
    """Each with what to type."""
    touched = [each.id for each in going] + [each.id for each in gone]
    for lock in seen.locks:
        if any(_holds(lock, each) for each in touched):
            yield Obstacle(
                f"a lock ({lock.level}) at {lock.scope}: {name_of(lock.id)}",
                f"ask who set it; an owner removes it with: az lock delete --ids {lock.id}",
            )
    for each in seen.records:
        if each.state.casefold() not in _ENDED:
            yield Obstacle(
                f"the deployment {name_of(each.id)} is not finished ({each.state})",
                "wait for it, or: az deployment sub cancel --name " + name_of(seen.records[-1].id),
            )


def _holds(lock: Lock, resource_id: str) -> bool:
    """A lock protects what is below it, and what is above it from being deleted with it.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
    """
    return within(lock.scope, resource_id) or within(resource_id, lock.scope)
