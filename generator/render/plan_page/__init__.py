"""The plan as one HTML page: what a deployment will be, before it exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...pages.shell import Block, Cell, Drawing, Drawings, Facts, Heading, Part, Table, Text, columns, figure, page
from ...plan.deployment import Plan
from ...version import __version__
from ..plan_sections import Section, sections
from .jobs import jobs, proof
from .nodes import health_checks, vm_sizes
from .topology import picture


def plan_page(plan: Plan) -> str:
    """The whole page. The same plan gives the same bytes."""
    found: dict[str, list[Section]] = {}
    for section in sections(plan):
        found.setdefault(section.key, []).append(section)
    parts: list[Part | None] = [
        Part(
            "picture", "Picture", (Drawings((_picture(plan),)),), "Lines are connections; point at one to see what for."
        ),
        _part("deployment", "Deployment", found, "deployment"),
        _network(plan, found),
        _part("nodes", "Roles and nodes", found, "nodes", "projects", "drained"),
        vm_sizes(plan),
        _part("storage", "File systems", found, "mounts", "ledger", "tiers"),
        health_checks(plan),
        jobs(plan),
        proof(plan),
        _part("needs", "What must be there first", found, "quota", "terms", "providers", "asked"),
    ]
    return page(
        f"Plan of {plan.name}",
        [part for part in parts if part],
        subtitle=(f"{plan.definition}, in {plan.location}", _capitalised(plan.access.description)),
        tiles=_tiles(plan),
        footer=(f"Made by CycleForge {__version__} from the definition alone. Nothing of it exists yet.",),
    )


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tiles(plan: Plan) -> list[tuple[str, str]]:
    slurm = plan.slurm
    if slurm is None:
        return []
    every = [each for each in plan.fleet if each.role == "partition"]
    gpus = sum(each.most * each.hardware.gpu_count for each in every)
    tiles = [
        (str(len(slurm.node_arrays)), "partitions"),
        (f"{sum(each.most for each in every):,}", "nodes at most"),
        (f"{gpus:,}", "GPUs at most"),
        (str(len(plan.all_mounts)), "file systems"),
        (str(len(plan.jobs)), "jobs"),
    ]
    return [tile for tile in tiles if tile[0] != "0"]


def _picture(plan: Plan) -> Drawing:
    network = plan.network
    space = f", {network.address_space}" if network.address_space else ""
    return Drawing("", picture(plan), caption=f"Virtual network {network.vnet_name}{space}")


def _part(key: str, title: str, found: dict[str, list[Section]], *wanted: str) -> Part | None:
    chosen = [section for name in wanted for section in found.get(name, ())]
    blocks = [block for section in chosen for block in _blocks(section, titled=len(chosen) > 1)]
    return Part(key, title, tuple(blocks)) if blocks else None


def _blocks(section: Section, *, titled: bool) -> Iterator[Block]:
    if titled:
        yield Heading(_capitalised(section.title))
    for line in section.lines:
        yield Text(line)
    if not section.rows:
        return
    if not section.has_head:
        yield Facts(tuple((_text(name), _text(value)) for name, value in section.rows))
        return
    yield _table(*section.rows)


def _network(plan: Plan, found: dict[str, list[Section]]) -> Part:
    """Subnets, and who opens connections to whom."""
    blocks = [block for section in found["network"] for block in _blocks(section, titled=False)]
    rows = [
        [Cell(each.source), Cell(each.destination), Cell(each.protocol.replace("*", "any")),
         Cell(", ".join(each.ports).replace("*", "any")), Cell(each.purpose, "long")]
        for each in plan.network.flows
    ]  # fmt: skip
    if rows:
        blocks += [Heading("Who opens connections to whom")]
        blocks.append(Table(columns("from", "to", "protocol", "ports", "what for"), rows))
    return Part("network", "Network", tuple(blocks))


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _table(head: Sequence[object], *rows: Sequence[object]) -> Table:
    """A column that has a number has numbers, and words around some; one without a title has notes."""
    numbers = [any(isinstance(row[place], int | float) for row in rows) for place in range(len(head))]
    heads = [f"{_text(title) or 'note'}{'#' if number else ''}" for title, number in zip(head, numbers, strict=True)]
    cells = [[_cell(value, number) for value, number in zip(row, numbers, strict=True)] for row in rows]
    return Table(columns(*heads), cells)


def _cell(value: object, number: bool) -> Cell:
    if isinstance(value, int | float):
        return figure(f"{value:,}", value)
    return Cell(_text(value), "number", "".join(filter(str.isdigit, _text(value)))) if number else Cell(_text(value))
