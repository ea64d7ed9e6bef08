"""What `cycleforge status` prints: a screen for one deployment, a line for each of several.

1,000 nodes are as many lines as ten: nodes are counted by partition and state, failures by their reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ..operate.status import SILENT, Boot, Cluster, Condition, Look, Node, Reason, Unknown, shortages
from ..words.counts import counted, first
from ..words.suggestions import with_name
from ..words.terminal import columns, on_one_line, printable

_STATES = {"done": "deployed", "failed": "failed", "canceled": "cancelled", "running": "is being deployed"}
_BOOT = {"done": "done", "running": "running", "failed": "failed", "none": "not begun"}
_SHOWN = 4
_PARTS = 8
_LABEL = 12


def screen(look: Look) -> list[str]:
    plan, now = look.found.plan, look.standing
    lines = [f"{plan.name} in {plan.location}"]
    lines += _row("deployment", _record(look))
    lines += [f"    {line}" for line in look.failure.splitlines()]
    if now.record is not None:
        lines += _row("server", _server(look))
        lines += _row("first boot", _boot(now.boot))
    lines += _cluster(look)
    lines += _usage(look)
    lines += _spending(look)
    lines += _drift(look)
    told = [on_one_line(with_name(line, plan.definition_name)) for line in lines]
    # One hint is enough for what is not known for one reason.
    return [line for at, line in enumerate(told) if not (line.lstrip().startswith("hint: ") and line in told[:at])]


def _row(label: str, value: str | Unknown) -> list[str]:
    if isinstance(value, str):
        return [f"  {label:<{_LABEL}}{value}"]
    hint = [f"  {'':<{_LABEL}}hint: {value.hint}"] if value.hint else []
    return [f"  {label:<{_LABEL}}not known: {value.reason}", *hint]


def _record(look: Look) -> str | Unknown:
    seen = look.standing.record
    if seen is None:
        name = look.found.plan.definition_name
        return f"none: never deployed, or its record was deleted; `cycleforge deploy {name}` deploys it"
    if isinstance(seen, Unknown):
        return seen
    return f"{_STATES[seen.state]} ({seen.began})" + (f", {look.content}" if look.content else "")


def _server(look: Look) -> str | Unknown:
    server, plan = look.standing.server, look.found.plan
    if server == "none":
        return "there is none"
    if look.is_down and server in ("stopped", "deallocated"):
        return f"{server}; `az vm start {plan.access.server_arguments}` starts it"
    return server


def _boot(boot: Boot | Unknown) -> str | Unknown:
    if isinstance(boot, Unknown):
        return boot
    said = f": {boot.error}" if boot.error else ""
    hint = f" (hint: {boot.hint})" if boot.hint else ""
    return f"{_BOOT[boot.state]}{said}{hint}"


# ---------------------------------------------------------------- the cluster


def _cluster(look: Look) -> Iterator[str]:
    seen = look.cluster
    if seen is None:
        if look.found.plan.slurm is None:
            yield from _row("cluster", "the definition has no cluster")
        return
    if isinstance(seen, Unknown):
        yield from _row("cluster", seen)
        return
    yield from _row("cluster", f"{seen.name}: {_state(seen)}")
    if look.site is not None:
        yield f"  {'':<{_LABEL}}seen through ssh, because {look.site.reason}"
    if seen.nodes is None:
        yield from _row("nodes", Unknown("the server does not list them"))
    else:
        yield from columns([*_partitions(look, seen)], indent="  ").splitlines()
    for array in seen.arrays:
        yield from (f"  {array.name}: {each}" for each in shortages(array))
    for reason in look.reasons:
        yield from _reason(reason)
    told = {reason.message for reason in look.reasons}
    more = [each for each in look.conditions if each.says_more or each.message not in told]
    for condition in more[:_SHOWN]:
        yield from (f"  {line}" for line in condition_lines(condition))
    if len(more) > _SHOWN:
        yield f"  and {len(more) - _SHOWN} more conditions; --json has all of them"


def _state(seen: Cluster) -> str:
    if not seen.state:
        return "never started"
    return seen.state if seen.target in ("", seen.state) else f"{seen.state}, on its way to {seen.target}"


def _partitions(look: Look, seen: Cluster) -> Iterator[tuple[str, str, str]]:
    """Partition, how many of how many, states; single nodes first."""
    titles = (
        {array.name: array.partition for array in look.found.plan.slurm.node_arrays} if look.found.plan.slurm else {}
    )
    groups: dict[str, list[Node]] = {}
    for node in seen.nodes or ():
        groups.setdefault(node.array, []).append(node)
    known = {array.name: array.most for array in seen.arrays}
    for node in groups.pop("", []):
        yield node.name, "", node.status or "not known"
    for name in [*known, *(name for name in groups if name not in known)]:
        nodes, most = groups.get(name, []), known.get(name)
        many = f"{len(nodes)} of {most}" if most is not None else str(len(nodes))
        yield titles.get(name, name), many, states(nodes)


def states(nodes: Iterable[Node]) -> str:
    """`10 Ready, 2 Preparing`, the most frequent first."""
    found = Counter(node.status or "not known" for node in nodes)
    return ", ".join(f"{count} {status}" for status, count in sorted(found.items(), key=lambda row: (-row[1], row[0])))


def _reason(reason: Reason) -> Iterator[str]:
    where = f" of {reason.array}" if reason.array else ""
    yield f"  {counted(len(reason.nodes), 'node')}{where} failed: {first(reason.nodes, _SHOWN)}"
    yield f"    {reason.words or reason.message or SILENT}"
    if reason.words and reason.message:
        yield f"    CycleCloud: {reason.message}"
    if reason.fix:
        yield f"    hint: {reason.fix}"


def condition_lines(said: Condition) -> Iterator[str]:
    """The server's own words at greater length, the end of what a script wrote among them."""
    where = f" on {counted(said.count, 'node')}" if said.count else ""
    yield f"{said.name}{where}: {said.message}"
    yield from (f"  | {line}" for line in said.detail)
    if said.recommendation:
        yield f"  CycleCloud advises: {said.recommendation}"


def _usage(look: Look) -> Iterator[str]:
    found = look.usage
    if isinstance(found, Unknown):
        yield from _row("usage", found)
    elif found is not None:
        yield from _row("usage", f"{_used(found.core_hours, found.usd)} this month, as the site counts")
        rows = [(f"{part.name}:", _used(part.core_hours, part.usd)) for part in found.parts[:_PARTS]]
        yield from columns(rows, indent=f"  {'':<{_LABEL}}").splitlines() if rows else ()
        if len(found.parts) > _PARTS:
            yield f"  {'':<{_LABEL}}and {len(found.parts) - _PARTS} more"


def _used(core_hours: float, usd: float | None) -> str:
    return f"{core_hours:,.1f} core hours" + (f", about {usd:,.2f} USD" if usd is not None else "")


def _spending(look: Look) -> Iterator[str]:
    found = look.spending
    if isinstance(found, Unknown):
        yield from _row("cost", found)
    elif found is not None:
        more = "at least " if found.missing or found.not_known else ""
        yield from _row("cost", f"{more}{found.per_hour:,.2f} {found.currency} an hour now, at public prices")
        if found.missing:
            yield f"  {'':<{_LABEL}}without a price: {', '.join(found.missing)}"
        if found.not_known:
            yield f"  {'':<{_LABEL}}not known how many: {', '.join(found.not_known)}"


def _drift(look: Look) -> Iterator[str]:
    if isinstance(look.drift, Unknown):
        yield from _row("drift", look.drift)
    elif look.drift is not None:
        yield from _row("drift", "")
        yield from (f"    {line}" for line in look.drift_lines)


# ---------------------------------------------------------------- many deployments


def table(looks: Sequence[Look | tuple[str, str]]) -> str:
    """A line for each; (name, reason) of those that could not be looked at."""
    heads = ["name", "deployment", "server", "first boot", "cluster", "nodes", "failed"]
    seen = [each for each in looks if not isinstance(each, tuple)]
    heads += ["this month"] if any(each.usage for each in seen) else []
    heads += ["an hour"] if any(each.spending for each in seen) else []
    heads += ["drift"] if any(each.drift for each in seen) else []
    rows: list[tuple[str, ...]] = [tuple(heads)]
    for each in looks:
        rows.append((each[0], f"not known: {each[1]}") if isinstance(each, tuple) else _line(each))
    return columns([tuple(printable(cell) for cell in row) for row in rows])


def _line(look: Look) -> tuple[str, ...]:
    now, seen = look.standing, look.cluster
    record = now.record
    deployed = "none" if record is None else _short(record if isinstance(record, Unknown) else _STATES[record.state])
    if record is None:
        return look.found.plan.name, deployed
    boot = _short(now.boot if isinstance(now.boot, Unknown) else _BOOT[now.boot.state])
    state = "none" if seen is None else _short(seen if isinstance(seen, Unknown) else _state(seen))
    is_read = isinstance(seen, Cluster) and seen.nodes is not None
    nodes = states(seen.nodes or ()) if isinstance(seen, Cluster) and is_read else "not known" if seen else ""
    failed = str(sum(len(reason.nodes) for reason in look.reasons)) if is_read else ""
    return look.found.plan.name, deployed, _short(now.server), boot, state, nodes, failed, *_more(look)


def _more(look: Look) -> Iterator[str]:
    if isinstance(look.usage, Unknown):
        yield "not known"
    elif look.usage is not None:
        yield _used(look.usage.core_hours, look.usage.usd)
    if isinstance(look.spending, Unknown):
        yield "not known"
    elif look.spending is not None:
        more = ">= " if look.spending.missing or look.spending.not_known else ""
        yield f"{more}{look.spending.per_hour:,.2f} {look.spending.currency}"
    if look.drift is not None:
        yield "not known" if isinstance(look.drift, Unknown) else "yes" if look.drift.any else "no"


def _short(value: str | Unknown) -> str:
    return value if isinstance(value, str) else "not known"
