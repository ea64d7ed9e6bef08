"""What `cycleforge status` finds out about one deployment: Azure first, then its site: two answers in a row.

More come only where nodes have failed, which the site is asked for the reasons of, and for what was asked besides.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ..azure.deployment import Seen, content_of
from ..azure.standing import Standing, Unknown, standing
from ..cyclecloud.cluster import Cluster
from ..cyclecloud.conditions import Condition, conditions
from ..cyclecloud.reasons import Reason, reasons
from ..cyclecloud.site import Site
from ..cyclecloud.usage import Usage, usage
from ..cyclecloud.wire import Login
from ..operate.built import Built
from ..records import record
from . import cluster_ways
from .portal import Portal
from .status_more import drift_of, spending_of
from .status_ssh import through_ssh
from .whereabouts import told

if TYPE_CHECKING:
    from ..azure.drift import Drift
    from ..azure.reader import Reader
    from ..prices.spending import Spending

_UP = ("running", "starting")
"""States of the server in which its site may answer."""
NO_CLUSTER = "the definition has no cluster"
_Answer = TypeVar("_Answer")


@record
class Look:
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
        """Whether something is not known. That somebody else's server is not asked does not count."""
        parts: list[object] = [self.standing.record, self.cluster, self.drift, self.spending, self.usage]
        if self.found.plan.server is not None:
            parts += [self.standing.server, self.standing.boot]
        return any(isinstance(each, Unknown) for each in parts)


class Looker:
    """Looks at one deployment again and again, with the connections and the login of the first time."""

    def __init__(
        self,
        found: Built,
        reader: Reader,
        login: Login | Unknown,
        *,
        drift: bool = False,
        cost: bool = False,
        usage: bool = False,
        subscription: str | None = None,
    ) -> None:
        self._found, self._reader = found, reader
        self._told = told(Path(found.definition.filename), found.folder.parent, subscription, found.plan.name)
        self._portal = Portal(found, login, self._told)
        self._drift, self._cost, self._usage = drift, cost, usage

    def close(self) -> None:
        """End the way to the site."""
        self._portal.close()

    def look(self) -> Look:
        """Ask everything anew."""
        now = standing(self._found.plan, self._reader)
        site = self._site(now)
        seen, other = self._cluster(now, site)
        failed = seen.failed if isinstance(seen, Cluster) else ()
        said = conditions(site, seen.name) if failed and isinstance(site, Site) and isinstance(seen, Cluster) else ()
        why = reasons(failed, self._found.plan.definition_name)
        look = Look(self._found, now, seen, why, self._content(now.record), other, conditions=said)
        if self._usage and seen is not None:
            look = replace(look, usage=self._used(site))
        if self._drift:
            look = replace(look, drift=drift_of(self._found, self._reader, now.record))
        return replace(look, spending=spending_of(self._found.plan, now, seen)) if self._cost else look

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

    def _cluster(self, now: Standing, site: Site | Unknown | None) -> tuple[Cluster | Unknown | None, Unknown | None]:
        """The cluster, and where it is not the site that says it, why."""
        slurm = self._found.plan.slurm
        if site is None or slurm is None:
            return None, None
        found, other = cluster_ways.seen(site, slurm.cluster_name, lambda: self._through_ssh(now), self._way())
        if self._portal.is_forwarded and (other is not None or isinstance(found, Unknown)):
            self._portal.close()  # the way may have been lost; the next look opens another one
        return found, other

    def _used(self, site: Site | Unknown | None) -> Usage | Unknown:
        """Only the site has counted it."""
        slurm = self._found.plan.slurm
        assert site is not None
        assert slurm is not None
        name = slurm.cluster_name
        return site if isinstance(site, Unknown) else cluster_ways.asked(lambda: usage(site, name), name, self._way())

    def _through_ssh(self, now: Standing) -> Cluster | Unknown | None:
        """Where there may be a server that answers; Azure need not have been asked with success."""
        slurm = self._found.plan.slurm
        may_answer = now.server in _UP or isinstance(now.server, Unknown)
        return through_ssh(self._found, slurm, self._told) if may_answer and slurm is not None else None

    def _way(self) -> str | None:
        if self._found.plan.access.tunnel is not None:
            return f"cycleforge connect {self._found.plan.definition_name} portal opens the tunnel to it"
        return None if self._found.plan.access.is_public else "the site has a private address: connect your VPN"
