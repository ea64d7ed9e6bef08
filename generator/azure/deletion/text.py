"""How a decision is shown, and as lines for `az`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from shlex import quote

from ... import catalog
from ...plan.deployment import Plan
from ...words.counts import counted
from ..reader import Reader
from ..resource_ids import within
from . import nodes
from .decide import Decision, removal_of
from .seen import Seen, Thing


def shown(plan: Plan, seen: Seen, decision: Decision) -> str:
    """What goes, what stays, what is not known, what is in the way."""
    parts = [f"{plan.name} in subscription {seen.subscription}"]
    if decision.is_nothing:
        parts.append("nothing of it exists")
    else:
        parts += _section("goes", _goes(plan, seen, decision))
    named = [f"{each.type} {each.name}" for each in decision.others]
    parts += _section("goes with the resource group, although this deployment did not create it", named)
    parts += _section("stays", decision.staying)
    parts += _section("not known", (f"{each.what}: {each.reason}" for each in decision.not_seen))
    parts += _section("Azure keeps for some days", kept(decision.gone))
    parts += _section("in the way", (f"{each.text}\n    {each.hint}" for each in decision.obstacles))
    return "\n".join(parts)


def _way(plan: Plan, seen: Seen) -> str:
    if not seen.server:
        return "Azure deletes them, since the CycleCloud server does not exist"
    if plan.server is None:
        return "CycleCloud terminates it, where someone is logged in with `cyclecloud` on the server"
    return (
        "CycleCloud terminates it; if no user is logged in with `cyclecloud` on the server, or it fails, the server "
        "is\n      stopped, so that it starts no more machines, and Azure deletes them"
    )


def _goes(plan: Plan, seen: Seen, decision: Decision) -> Iterator[str]:
    if decision.nodes:
        name = plan.slurm.cluster_name if plan.slurm else plan.name
        yield f"cluster {name}: {counted(len(decision.nodes), 'machine')}"
        yield f"  {_way(plan, seen)}"
        yield from (f"  {each.type} {each.name}" for each in decision.nodes)
        if plan.slurm and plan.slurm.home.is_scheduler_disk:
            yield "the home folders, which are on a disk of the scheduler"
    for each in decision.going:
        if each.turn == "mark":
            continue
        yield each.text
        if each.turn == "group":
            numbers = Counter(one.type for one in decision.gone)
            yield from (f"  {number} {kind}" for kind, number in sorted(numbers.items()))
            yield from _with_data(decision.gone)


def _with_data(gone: Iterable[Thing]) -> Iterator[str]:
    """Those that hold data; of what is part of one another, the innermost."""
    holding = [each for each in gone if catalog.holds_data(each.type)]
    for each in holding:
        if not any(within(each.id, other.id) for other in holding if other is not each):
            yield f"  with its data: {each.type} {each.name}"


def kept(gone: Iterable[Thing]) -> list[str]:
    types = {each.type.casefold() for each in gone}
    rows = [row for kind, row in catalog.resource_types().items() if kind in types and row.kept]
    return [f"{row.kept} ({row.kept_page})" for row in reversed(rows)]


def _section(title: str, lines: Iterable[str]) -> list[str]:
    found = list(lines)
    return [f"\n{title}:", *(f"  {line}" for line in found)] if found else []


def lines(plan: Plan, seen: Seen, decision: Decision, reader: Reader) -> list[str]:
    """The `az` lines that do the same, in this order."""
    tag, name = plan.cleanup.tag, plan.name
    found = []
    if decision.nodes and seen.server and plan.slurm:
        call = nodes.command(plan, seen.server, "terminate_cluster")
        kinds = (row.name for row in catalog.resource_types().values() if row.node == "machine")
        machines = " || ".join(f"type=='{kind}'" for kind in sorted(kinds, key=str.casefold))
        found.append(reader.line(call))
        if plan.server:
            found.append("# instead, where this fails, as no user is logged in with `cyclecloud` there:")
            instead = [nodes.stop(seen.server), *(removal_of(each.id).call for each in decision.nodes)]
            found += [f"# {reader.line(each)}" for each in instead]
        found.append("# until this names no node:")
        found.append(f'az resource list --tag {tag}={name} --query "[?{machines}].name" --output tsv')
    for each in decision.going:
        found.append(reader.line(each.call))
        if each.turn == "group":
            # `az group delete` would wait, but takes one type to be forced only.
            group, subscription = quote(plan.resource_group), quote(reader.subscription)
            found.append(f"az group wait --deleted --name {group} --subscription {subscription}")
    return [*found, "# in the end this prints nothing of the deployment:", f"az resource list --tag {tag}={name}"]
