"""The picture of a deployment: its network with a box for each subnet, and what is in each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape
from msgspec import Struct

from ...pages.charts import place
from ...plan.deployment import Plan
from ...plan.flow import ENDPOINTS, JUMPBOX, NODES, SERVER, USERS
from ...plan.network import SubnetPlan

_WIDTH, _TOP, _GAP = 980.0, 84.0, 18.0
_HEAD, _ROW, _PAD = 44.0, 42.0, 12.0
_COLUMNS = ((28.0, 258.0), (350.0, 274.0), (688.0, 266.0))
"""Left edge and width: ways in and the server, the nodes, what they use."""
_LEFT, _MIDDLE = ("bastion", "server", "jumpbox", "gateway"), ("compute",)
_COLOURS = {"server": "s3", "bastion": "s3", "compute": "s0", "endpoints": "s2", "database": "s4"}
_LETTER = 6.7
"""Width of a letter, at most, so that a text that does not fit is cut and not drawn over the next box."""


class Thing(Struct, frozen=True):
    """What is in a subnet: name, and a line about it."""

    name: str
    about: str


class Zone(Struct, frozen=True):
    """A box on the picture."""

    role: str
    title: str
    prefix: str
    things: tuple[Thing, ...]
    x: float
    y: float
    width: float

    @property
    def height(self) -> float:
        return _HEAD + _ROW * len(self.things) + (_PAD if self.things else 0)


def picture(plan: Plan) -> Markup:
    zones = _zones(plan)
    foot = max(zone.y + zone.height for zone in zones) + 22
    parts = [
        f'<svg class="chart plan" viewBox="0 0 {place(_WIDTH)} {place(foot + 10)}" role="img" '
        f'aria-label="{escape(f"Network of {plan.name}")}">',
        f'<rect class="zone outer" x="12" y="{place(_TOP - 30)}" width="{place(_WIDTH - 24)}" '
        f'height="{place(foot - _TOP + 30)}" rx="14"/>',
        _label(30, _TOP - 10, plan.network.vnet_name, 400, "name"),
        *_links(plan, zones),
        *_users(plan, zones),
    ]
    for zone in zones:
        parts += _zone(zone)
    parts.append("</svg>")
    return Markup("".join(parts))  # noqa: S704 - every text in it was escaped


# ---------------------------------------------------------------- what is where


def _zones(plan: Plan) -> list[Zone]:
    columns: tuple[list[SubnetPlan], list[SubnetPlan], list[SubnetPlan]] = ([], [], [])
    for subnet in plan.network.subnets:
        columns[0 if subnet.role in _LEFT else 1 if subnet.role in _MIDDLE else 2].append(subnet)
    columns[0].sort(key=lambda subnet: _LEFT.index(subnet.role))
    zones: list[Zone] = []
    for (x, width), subnets in zip(_COLUMNS, columns, strict=True):
        y = _TOP
        if x == _COLUMNS[0][0] and plan.existing_server is not None and not any(s.role == "server" for s in subnets):
            server = plan.existing_server
            things: tuple[Thing, ...] = (Thing(server.vm_name, f"existing, CycleCloud {server.release}"),)
            zones.append(Zone("server", "server that exists", "", things, x, y, width))
            y += zones[-1].height + _GAP
        for subnet in subnets:
            things = tuple(_things(plan, subnet.role))
            zones.append(Zone(subnet.role, subnet.name, subnet.prefix or "as it is", things, x, y, width))
            y += zones[-1].height + _GAP
    others = tuple(
        Thing(mount.path, f"{mount.label}, {mount.origin}") for mount in plan.all_mounts if mount.subnet is None
    )
    if others:
        x, width = _COLUMNS[2]
        y = max([zone.y + zone.height + _GAP for zone in zones if zone.x == x], default=_TOP)
        zones.append(Zone("mounts", "other file systems", "without a subnet of their own", others, x, y, width))
    return zones


def _things(plan: Plan, role: str) -> Iterator[Thing]:
    server, slurm = plan.server, plan.slurm
    if role == "bastion":
        yield Thing("Azure Bastion", "tunnels for users")
    elif role == "server" and server is not None:
        yield Thing(server.vm_name, f"{_short(server.vm_size)}, CycleCloud {server.release}")
        if server.jumpbox:
            yield Thing(server.jumpbox.vm_name, f"{_short(server.jumpbox.vm_size)}, jumpbox")
    elif role == "endpoints":
        yield Thing("locker", plan.locker.account_name or "account named at deployment")
    elif role == "database" and slurm is not None and slurm.accounting is not None:
        yield Thing(
            "MySQL",
            f"accounting, {_short(slurm.accounting.sku or 'existing')}"
            if slurm.accounting.is_new
            else "job accounting",
        )
    elif role == "compute":
        yield from _nodes(plan)
    for mount in plan.all_mounts:
        if mount.subnet is not None and mount.subnet.role == role:
            yield Thing(mount.path, mount.label)


def _nodes(plan: Plan) -> Iterator[Thing]:
    for each in plan.fleet:
        if each.is_node:
            limit = "" if each.role == "scheduler" else "≤ "
            count = f"{limit}{each.most} × " if limit or each.most > 1 else ""
            gpus = f", {each.hardware.gpu_count} GPUs" if each.hardware.gpu_count else ""
            yield Thing(each.name, f"{count}{_short(each.vm_size)}{gpus}")


def _short(vm_size: str) -> str:
    return vm_size.removeprefix("Standard_")


# ---------------------------------------------------------------- drawing


def _zone(zone: Zone) -> list[str]:
    colour, room = _COLOURS.get(zone.role, "s1"), zone.width - 2 * _PAD
    parts = [
        f'<rect class="zone" x="{place(zone.x)}" y="{place(zone.y)}" width="{place(zone.width)}" '
        f'height="{place(zone.height)}" rx="10"/>',
        _label(zone.x + _PAD, zone.y + 19, zone.title, room, "name"),
        _label(zone.x + _PAD, zone.y + 35, zone.prefix, room),
    ]
    for place_of, thing in enumerate(zone.things):
        y = zone.y + _HEAD + _ROW * place_of
        tip = escape(f"{thing.name}\n{thing.about}")
        parts += [
            f'<rect class="thing {colour}" x="{place(zone.x + _PAD)}" y="{place(y)}" '
            f'width="{place(room)}" height="{place(_ROW - 6)}" rx="7" data-tip="{tip}"/>',
            _label(zone.x + _PAD + 10, y + 15, thing.name, room - 20, "name"),
            _label(zone.x + _PAD + 10, y + 30, thing.about, room - 20),
        ]
    return parts


def _label(x: float, y: float, text: str, room: float, kind: str = "") -> str:
    letters = int(room / _LETTER)
    shown = text if len(text) <= letters else f"{text[: letters - 1]}…"
    mark = f' class="{kind}"' if kind else ""
    return f'<text{mark} x="{place(x)}" y="{place(y)}">{escape(shown)}</text>'


def _users(plan: Plan, zones: Sequence[Zone]) -> Iterator[str]:
    """Where users come from, and the way that they take."""
    entry = next((zone for zone in zones if zone.role in ("bastion", "server")), zones[0])
    x = entry.x + entry.width / 2
    yield f'<path class="link" d="M{place(x)} 36V{place(entry.y)}"/>'
    yield f'<path class="link" d="M{place(x - 5)} {place(entry.y - 8)}l5 8l5 -8"/>'
    yield f'<rect class="thing ink" x="{place(x - 110)}" y="6" width="220" height="30" rx="15"/>'
    yield f'<text class="name" x="{place(x)}" y="26" text-anchor="middle">users</text>'
    yield _label(x + 122, 26, plan.access.description, _WIDTH - x - 130)


def _links(plan: Plan, zones: Sequence[Zone]) -> Iterator[str]:
    """A line between two boxes that talk to each other, with all that they say."""
    of_role = {zone.role: zone for zone in zones}
    party = {SERVER: "server", JUMPBOX: "server", NODES: "compute", ENDPOINTS: "endpoints"}
    purposes: dict[tuple[str, str], list[str]] = {}
    for flow in plan.network.flows:
        ends = [party.get(name, name) for name in (flow.source, flow.destination)]
        if USERS not in ends and ends[0] != ends[1] and all(end in of_role for end in ends):
            first, second = sorted(ends, key=lambda role: (of_role[role].x, of_role[role].y))
            purposes.setdefault((first, second), []).append(flow.purpose)
    used: dict[tuple[str, str], int] = {}
    for (first, second), texts in purposes.items():
        tip = escape("\n".join(dict.fromkeys(texts)))
        way = _way(of_role[first], of_role[second], used)
        yield f'<path class="link" d="{way}"/><path class="reach" d="{way}" data-tip="{tip}"/>'


def _way(a: Zone, b: Zone, used: dict[tuple[str, str], int]) -> str:
    """From the edge of one box to that of the other, around what is between; each line has its own place."""

    def at(zone: Zone, side: str) -> float:
        count = used[zone.role, side] = used.get((zone.role, side), 0) + 1
        return zone.y + 14 + (count - 1) * 13 % max(14.0, zone.height - 22)

    if a.x == b.x:
        x = a.x + a.width / 2
        return f"M{place(x)} {place(a.y + a.height)}V{place(b.y)}"
    if a.x == _COLUMNS[0][0] and b.x == _COLUMNS[2][0]:
        start, end = at(a, "right"), at(b, "left")
        middle_left, middle_right = _COLUMNS[1][0] - 16, _COLUMNS[1][0] + _COLUMNS[1][1] + 16
        above = _TOP - 10
        return (
            f"M{place(a.x + a.width)} {place(start)}H{place(middle_left)}V{place(above)}H{place(middle_right)}"
            f"V{place(end)}H{place(b.x)}"
        )
    start, end = at(a, "right"), at(b, "left")
    middle = (a.x + a.width + b.x) / 2
    bend = f"{place(middle)} {place(start)} {place(middle)} {place(end)}"
    return f"M{place(a.x + a.width)} {place(start)}C{bend} {place(b.x)} {place(end)}"
