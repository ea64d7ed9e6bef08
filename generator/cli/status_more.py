"""What `cycleforge status` finds out only when it is asked to: drift, and what is billed now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..azure.deployment import Seen, content_of
from ..azure.standing import Standing, Unknown, known
from ..cyclecloud.cluster import Cluster
from ..errors import CycleForgeError
from ..plan.billing import Billed
from ..plan.fleet import partition_title

if TYPE_CHECKING:
    from ..azure.drift import Drift
    from ..azure.reader import Reader
    from ..operate.built import Built
    from ..plan.types import Plan
    from ..prices.spending import Spending

_NO_VM = frozenset({"off", "terminated", "deallocated", "acquiring", "validation", "allocation"})
"""States in which a node has no VM that is billed."""
_SERVER = "CycleCloud server"


def drift_of(found: Built, reader: Reader, last: Seen | Unknown | None) -> Drift | Unknown:
    """What Azure has, compared with the built folder."""
    from ..azure import drift, what_if_request

    if isinstance(last, Unknown):
        return last
    try:
        answer = known(lambda: what_if_request.what_if(found.plan, reader, found.folder, os.environ))
        if isinstance(answer, Unknown):
            return answer
        return drift.drift(found.plan, answer, last, content_of(found.folder))
    except CycleForgeError as error:
        return Unknown(error.message, error.hint)
    except OSError:
        return Unknown("nothing is built here", f"cycleforge build {found.plan.definition_name}")


def spending_of(plan: Plan, now: Standing, seen: Cluster | Unknown | None) -> Spending | Unknown:
    """What is billed by the hour now, at public prices."""
    from ..prices.costs import costs_of
    from ..prices.kept import kept_prices
    from ..prices.service import PriceList
    from ..prices.spending import spending

    if plan.cloud != "public":
        return Unknown("Azure publishes no price list for this cloud")
    if now.record is None:
        return Unknown("nothing is deployed")
    costs = costs_of(plan, PriceList(kept_prices(os.environ)), "USD")
    if costs.failures and not costs.days:
        return Unknown(f"the price list was not reached: {costs.failures[0]}")
    return spending(costs, lambda each: _there(plan, now, seen, each))


def _there(plan: Plan, now: Standing, seen: Cluster | Unknown | None, each: Billed) -> int | None:
    """How many of a thing are there."""
    if each.title == _SERVER:
        return None if isinstance(now.server, Unknown) else each.quantity if now.server != "deallocated" else 0
    if each.since == "deployed":
        return each.quantity
    if not isinstance(seen, Cluster) or seen.nodes is None:
        return None
    if each.title == "more login nodes":
        return 0  # they are counted with the others
    arrays = _arrays(plan, each.title)
    return sum(
        node.status.casefold() not in _NO_VM
        for node in seen.nodes
        if (node.array or node.name) in arrays and node.machine_type in ("", each.what)
    )


def _arrays(plan: Plan, title: str) -> set[str]:
    """The node arrays, or nodes, of what is billed under a title."""
    slurm = plan.slurm
    if title == "scheduler" or slurm is None:
        return {"scheduler", "scheduler-ha"}
    if title == "login nodes":
        return {"login"}
    return {array.name for array in slurm.node_arrays if partition_title(array.partition) == title}
