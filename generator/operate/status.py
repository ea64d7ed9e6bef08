"""How deployments are: Azure is asked first, then their sites: two answers in a row for each.

More come only where nodes have failed, which the site is asked for the reasons of, and for what was asked besides.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..azure import drift as drifts
from ..azure import failures, what_if
from ..azure.deployment import Seen, content_of
from ..azure.drift import Drift
from ..azure.reader import Reader
from ..azure.requests import compute
from ..azure.standing import Boot, Standing, Unknown, standing
from ..cyclecloud import cluster, requests
from ..cyclecloud.cluster import Array, Cluster, Node
from ..cyclecloud.command_line import CommandLine
from ..cyclecloud.reasons import SILENT, Condition, Reason, conditions, reasons, shortages
from ..cyclecloud.shell import Shell
from ..cyclecloud.site import Site
from ..cyclecloud.usage import TIMEFRAME, Usage, of_this_month, usage
from ..cyclecloud.wire import Login
from ..errors import CycleForgeError
from ..plan.billing import Billed
from ..plan.deployment import Plan
from ..plan.fleet import Machines
from ..prices.costs import Spending, costs_of, spending
from ..prices.service import PriceList, kept_prices
from ..words.suggestions import with_name
from . import asking, site, way
from .built import Built

__all__ = [
    "SILENT", "Boot", "Cluster", "Condition", "Look", "Looker", "Looks", "Node", "Reason", "Seen", "Unknown", "Wishes",
    "as_json", "lines", "lookers", "shortages",
]  # fmt: skip
_Value = TypeVar("_Value")
_UP = ("running", "starting")
"""States of the server in which its site may answer."""
_NO_VM = frozenset({"off", "terminated", "deallocated", "acquiring", "validation", "allocation"})
"""States in which a node has no VM that is billed."""


class Look(Struct, frozen=True):
    """One deployment at one moment."""

    found: Built
    standing: Standing
    cluster: Cluster | Unknown | None
    """None: there is none to ask about, or nothing is deployed."""
    reasons: tuple[Reason, ...]
    content: str
    """Whether the folder here is what was deployed: `with this folder`, …"""
    site: Unknown | None = None
    """Why the site did not say it itself, where the cluster was seen through ssh."""
    drift: Drift | Unknown | None = None
    """None: not asked for, as `spending`."""
    spending: Spending | Unknown | None = None
    usage: Usage | Unknown | None = None
    conditions: tuple[Condition, ...] = ()
    """What the site says of failed nodes at greater length."""

    @property
    def failure(self) -> str:
        """Why the deployment failed, and what to do; empty where it did not."""
        seen, plan = self.standing.record, self.found.plan
        if not isinstance(seen, Seen) or seen.state != "failed":
            return ""
        return failures.text(failures.explained(seen.causes, name=plan.definition_name, group=plan.resource_group))

    @property
    def drift_lines(self) -> list[str]:
        """What Azure has otherwise than the folder."""
        return [] if self.drift is None or isinstance(self.drift, Unknown) else drifts.text(self.drift).splitlines()[1:]

    @property
    def has_failed(self) -> bool:
        """Whether anything is known to be wrong."""
        seen, boot = self.standing.record, self.standing.boot
        return (
            seen is None
            or (isinstance(seen, Seen) and seen.state in ("failed", "canceled"))
            or (not isinstance(boot, Unknown) and boot.state == "failed")
            or self.is_down
            or bool(self.reasons)
        )

    @property
    def is_down(self) -> bool:
        """Whether the server is known not to run although it was deployed."""
        server, seen = self.standing.server, self.standing.record
        was_deployed = isinstance(seen, Seen) and seen.state == "done"
        return was_deployed and isinstance(server, str) and server not in _UP

    @property
    def is_partial(self) -> bool:
        """Whether something is not known. That someone else's server is not asked does not count."""
        parts: list[object] = [self.standing.record, self.cluster, self.drift, self.spending, self.usage]
        if self.found.plan.server is not None:
            parts += [self.standing.server, self.standing.boot]
        return any(isinstance(each, Unknown) for each in parts)


class Wishes(Struct, frozen=True):
    """What is looked at besides, because it takes longer."""

    drift: bool = False
    cost: bool = False
    usage: bool = False


_NOTHING_MORE = Wishes()


class Looker:
    """Looks at one deployment again and again, with the connections and the login of the first time."""

    def __init__(
        self,
        found: Built,
        reader: Reader,
        login: Login | Unknown,
        wishes: Wishes = _NOTHING_MORE,
        subscription: str | None = None,
    ) -> None:
        self._found, self._reader, self._wishes = found, reader, wishes
        self._told = way.told_ssh(found, subscription)
        self._portal = site.Portal(found, login, self._told)

    def close(self) -> None:
        self._portal.close()

    def look(self) -> Look:
        now = standing(self._found.plan, self._reader)
        at = self._site(now)
        seen, other = self._cluster(now, at)
        failed = seen.failed if isinstance(seen, Cluster) else ()
        said = conditions(at, seen.name) if failed and isinstance(at, Site) and isinstance(seen, Cluster) else ()
        why = reasons(failed, self._found.plan.definition_name)
        look = Look(self._found, now, seen, why, self._content(now.record), other, conditions=said)
        if self._wishes.usage and seen is not None:
            look = replace(look, usage=self._used(at))
        if self._wishes.drift:
            look = replace(look, drift=_drift_of(self._found, self._reader, now.record))
        return replace(look, spending=_spending_of(self._found.plan, now, seen)) if self._wishes.cost else look

    def _content(self, seen: Seen | Unknown | None) -> str:
        if not isinstance(seen, Seen):
            return ""
        try:
            own = content_of(self._found.folder)
        except OSError:
            return "nothing is built here to compare it with"
        if not seen.content:
            return "with what is not known"
        return "with this folder" if seen.content == own else "with another content than this folder"

    def _site(self, now: Standing) -> Site | Unknown | None:
        """The site, or why it is not asked; None where there is no cluster to ask about, or nothing is deployed."""
        plan, seen = self._found.plan, now.record
        if plan.slurm is None or seen is None:
            return None
        if isinstance(seen, Unknown):
            return Unknown("Azure was not asked where the site is")
        if isinstance(now.server, str) and now.server not in _UP:
            return Unknown(f"the server is {now.server}" if now.server != "none" else "there is no server")
        return self._portal.site(seen.outputs)

    def _cluster(self, now: Standing, at: Site | Unknown | None) -> tuple[Cluster | Unknown | None, Unknown | None]:
        """The cluster, and where it is not the site that says it, why."""
        slurm = self._found.plan.slurm
        if at is None or slurm is None:
            return None, None
        found, other = site.seen(at, slurm.cluster_name, lambda: self._through_ssh(now), self._way())
        if self._portal.is_forwarded and (other is not None or isinstance(found, Unknown)):
            self._portal.close()  # the way may have been lost; the next look opens another one
        return found, other

    def _used(self, at: Site | Unknown | None) -> Usage | Unknown:
        slurm = self._found.plan.slurm
        assert at is not None
        assert slurm is not None
        name = slurm.cluster_name
        return at if isinstance(at, Unknown) else site.asked(lambda: usage(at, name), name, self._way())

    def _through_ssh(self, now: Standing) -> Cluster | Unknown | None:
        """As the server's own command line shows it, for which no password is needed; None where none may answer."""
        plan, config = self._found.plan, way.config_of(self._found)
        may_answer = now.server in _UP or isinstance(now.server, Unknown)
        if not may_answer or plan.slurm is None or not config.is_file():
            return None
        way.path_with_us()
        server = Shell(config, "server", options=site.QUIET, told=self._told)
        name = plan.slurm.cluster_name
        seen = way.known(lambda: cluster.look(CommandLine(server, plan.admin.username, ""), name))
        if isinstance(seen, Unknown):
            return seen
        # The most nodes are the definition's: the command line does not say what the server allows.
        arrays = tuple(Array(array.name, array.max_nodes, ()) for array in plan.slurm.node_arrays)
        return replace(seen, arrays=arrays)

    def _way(self) -> str | None:
        if self._found.plan.access.tunnel is not None:
            return f"cycleforge connect {self._found.plan.definition_name} portal opens the tunnel to it"
        return None if self._found.plan.access.is_public else "the site has a private address: connect your VPN"


def _drift_of(found: Built, reader: Reader, last: Seen | Unknown | None) -> Drift | Unknown:
    if isinstance(last, Unknown):
        return last
    try:
        answer = way.known(lambda: what_if.predicted(found.plan, reader, found.folder, os.environ))
        return (
            answer if isinstance(answer, Unknown) else drifts.drift(found.plan, answer, last, content_of(found.folder))
        )
    except OSError:
        return Unknown("nothing is built here", f"cycleforge build {found.plan.definition_name}")


def _spending_of(plan: Plan, now: Standing, seen: Cluster | Unknown | None) -> Spending | Unknown:
    if plan.cloud != "public":
        return Unknown("Azure publishes no price list for this cloud")
    if now.record is None:
        return Unknown("nothing is deployed")
    costs = costs_of(plan, PriceList(kept_prices(os.environ)), "USD")
    if costs.failures and not costs.days:
        return Unknown(f"the price list was not reached: {costs.failures[0]}")
    return spending(costs, lambda each: _there(plan, now, seen, each))


def _there(plan: Plan, now: Standing, seen: Cluster | Unknown | None, each: Billed) -> int | None:
    if each.machines is not None and each.machines.role == "server":
        return None if isinstance(now.server, Unknown) else each.quantity if now.server != "deallocated" else 0
    if each.since == "deployed":
        return each.quantity
    if not isinstance(seen, Cluster) or seen.nodes is None:
        return None
    if each.machines is None:
        return 0
    if each.machines.role == "login" and each.since == "full":
        return 0  # they are counted with the others
    arrays = _arrays(plan, each.machines)
    return sum(
        node.status.casefold() not in _NO_VM
        for node in seen.nodes
        if (node.array or node.name) in arrays and node.machine_type in ("", each.what)
    )


def _arrays(plan: Plan, machines: Machines) -> set[str]:
    """The node arrays, or nodes, of some of the fleet."""
    if machines.role == "scheduler" or plan.slurm is None:
        return {"scheduler", "scheduler-ha"}
    if machines.role == "login":
        return {"login"}
    return {array.name for array in plan.slurm.node_arrays if array.partition == machines.partition}


# ---------------------------------------------------------------- all of them

Looks = list[Look | tuple[str, str]]
"""(name, reason) of those that could not be looked at."""


@contextmanager
def lookers(
    found: Sequence[Built],
    broken: Sequence[str] = (),
    *,
    wishes: Wishes = _NOTHING_MORE,
    subscription: str | None = None,
    password: Callable[[Plan], str] = lambda _: "",
) -> Iterator[Callable[[], Looks]]:
    """Look at several deployments at the same time, as often as it is called; `broken` have no plan.

    A single one that nobody is signed in for raises AzureRefused.
    """
    with ExitStack() as stack:
        each_of: list[Looker | tuple[str, str]] = [(name, "the definition has errors") for name in broken]
        for each in found:
            try:
                reader = stack.enter_context(closing(Reader(asking.session_of(each.plan, subscription))))
            except CycleForgeError as error:
                if len(found) == 1:
                    raise
                each_of.append((each.plan.name, error.message))
                continue
            looker = Looker(each, reader, site.login_of(each.plan, password(each.plan)), wishes, subscription)
            each_of.append(stack.enter_context(closing(looker)))

        def looks() -> Looks:
            with ThreadPoolExecutor(max(1, min(8, len(each_of)))) as pool:
                return list(pool.map(lambda each: each if isinstance(each, tuple) else each.look(), each_of))

        yield looks


def lines(found: Built, *, usage: bool) -> list[str]:
    plan = found.plan
    asked = [f"az deployment sub show --name {plan.deployment_name}"]
    if plan.server is not None:
        at = {"group": plan.resource_group, "name": plan.server.vm_name}
        asked += [compute.SERVER_VIEW(**at).az, compute.FIRST_BOOT(**at).az]
    if plan.slurm is not None:
        call = requests.STATUS({"nodes": "true"}, cluster=plan.slurm.cluster_name)
        server = ["ssh", "-F", str(way.config_of(found)), "server"]
        asked.append(shlex.join([*server, call.cli]))
        if usage:
            # No command of `cyclecloud` shows it. On the server nobody is in between; curl asks for the password.
            address = f"https://localhost{of_this_month(plan.slurm.cluster_name).address}"
            words = ["curl", "--insecure", "--user", plan.admin.username, address]
            asked.append(shlex.join([*server[:-1], "-t", server[-1], shlex.join(words)]))
    return asked


# ---------------------------------------------------------------- plain data


def as_json(look: Look) -> dict[str, object]:
    plan, now = look.found.plan, look.standing
    name = plan.definition_name
    more = {
        "usage": _said(look.usage, _usage_json),
        "cost": _said(look.spending, _cost_json),
        "drift": _said(look.drift, drifts.as_json),
    }
    return {
        "name": plan.name,
        "deployment": _said(
            now.record, lambda seen: {"state": seen.state, "began": seen.began, "content": look.content}
        ),
        "server": _said(now.server, str),
        "first_boot": _said(now.boot, lambda boot: {"state": boot.state, "error": boot.error, "hint": boot.hint}),
        "cluster": _said(look.cluster, _cluster_json, name),
        "site": _said(look.site, str, name),
        "failures": [
            {"partition": each.array, "nodes": list(each.nodes), "message": each.message, "words": each.words,
             "fix": each.fix}
            for each in look.reasons
        ],
        "conditions": [
            {"name": each.name, "status": each.status, "message": each.message, "nodes": each.count,
             "detail": list(each.detail), "recommendation": each.recommendation or None}
            for each in look.conditions
        ],
        **{key: value for key, value in more.items() if value is not None},
        "failed": look.has_failed,
        "known": not look.is_partial,
    }  # fmt: skip


def _said(value: _Value | Unknown | None, shown: Callable[[_Value], object], name: str = "NAME") -> object:
    """What is known, or why it is not; None for what was not asked."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason, "hint": value.hint and with_name(value.hint, name)}
    return None if value is None else shown(value)


def _usage_json(found: Usage) -> dict[str, object]:
    parts = [{"name": part.name, "core_hours": part.core_hours, "usd": part.usd} for part in found.parts]
    return {"timeframe": TIMEFRAME, "core_hours": found.core_hours, "usd": found.usd, "parts": parts}


def _cost_json(found: Spending) -> dict[str, object]:
    left_out = {"missing": list(found.missing), "not_known": list(found.not_known)}
    return {"currency": found.currency, "per_hour": round(found.per_hour, 4), **left_out}


def _cluster_json(seen: Cluster) -> dict[str, object]:
    rows = [
        {"name": node.name, "partition": node.array, "status": node.status, "target": node.target,
         "message": node.message}
        for node in seen.listed
    ]  # fmt: skip
    return {
        "name": seen.name,
        "state": seen.state,
        "target": seen.target,
        "partitions": [{"name": array.name, "most": array.most, "short": shortages(array)} for array in seen.arrays],
        "nodes": None if seen.nodes is None else rows,
    }
