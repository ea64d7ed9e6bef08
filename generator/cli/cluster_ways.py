"""Which way a question or a change takes to CycleCloud: it is chosen here and nowhere else.

Questions, the first way that leads there:
1. the documented request, where the administrator's password is exported: it says the most, and in one answer;
2. `cyclecloud` on the server through ssh, which needs a key and no password, so that nobody is asked for one;
3. for verbs that change something, or are to go on without a network path: the same through Azure's run command.

Starting, ending and retrying a cluster is documented for no request, so the order is another one:
1. `cyclecloud` on the server through ssh;
2. the undocumented request, where only ssh is missing; it is sent once;
3. `cyclecloud` through Azure's run command.

Whatever was sent is read back. Nodes of Slurm are started and ended by Slurm, whose azslurm asks CycleCloud.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..azure.standing import Unknown
from ..cyclecloud import cluster as clusters
from ..cyclecloud.cluster import Cluster
from ..cyclecloud.command_line import NotDone
from ..cyclecloud.conditions import Condition, conditions
from ..cyclecloud.refusals import Lost, NotAsked, Refused
from ..cyclecloud.request import Call
from ..cyclecloud.requests import undocumented
from ..cyclecloud.shell import Unreachable
from ..cyclecloud.site import Site
from .portal import Portal, login_of

if TYPE_CHECKING:
    from ..cyclecloud.command_line import CommandLine
    from ..operate.built import Built

_Answer = TypeVar("_Answer")


# ---------------------------------------------------------------- questions


def seen(
    site: Site | Unknown, name: str, otherwise: Callable[[], Cluster | Unknown | None], hint: str | None = None
) -> tuple[Cluster | Unknown, Unknown | None]:
    """The cluster, and where it is not the site that says it, why. `otherwise`: None where no other way is known."""
    found = site if isinstance(site, Unknown) else asked(lambda: clusters.cluster(site, name), name, hint)
    if isinstance(found, Cluster):
        assert isinstance(site, Site)
        if found.nodes is not None:
            return _with_messages(found, site), None
        other = otherwise()
        return (other, Unknown("the site does not list the nodes")) if isinstance(other, Cluster) else (found, None)
    other = otherwise()
    if isinstance(other, Cluster):
        return other, found
    if other is None or other.reason == found.reason:
        return found, None
    return Unknown(f"{found.reason}; nor through ssh: {other.reason}", found.hint or other.hint), None


def asked(ask: Callable[[], _Answer], name: str, hint: str | None = None) -> _Answer | Unknown:
    """What the site answers of a cluster, or why it does not; `hint` is for a site that is not reached."""
    try:
        return ask()
    except Refused as refused:
        if refused.is_missing:
            return Unknown(f"the site has no cluster {name}: {refused.message}")
        return Unknown(f"the site refused: {refused}")
    except NotAsked as reason:
        return Unknown(reason.reason, reason.hint or hint)


def _with_messages(found: Cluster, site: Site) -> Cluster:
    """The reasons of failed nodes that the documented answer leaves out."""
    if all(node.message for node in found.failed):
        return found
    try:
        rows = site.get(undocumented.nodes(found.name))
    except (Refused, NotAsked):
        return found
    said = {node.name: node.message for node in clusters.nodes_of(rows)}
    nodes = tuple(replace(node, message=node.message or said.get(node.name, "")) for node in found.listed)
    return replace(found, nodes=nodes)


# ---------------------------------------------------------------- verbs


class Server(Protocol):
    """The server as ssh or Azure's run command reach it."""

    def is_reached_by_ssh(self) -> bool:
        """Whether ssh leads there."""


class About(Protocol):
    """What a verb knows of its cluster."""

    @property
    def found(self) -> Built:
        """The deployment."""

    @property
    def name(self) -> str:
        """Of the cluster."""

    @property
    def server(self) -> Server:
        """Of CycleCloud."""

    @property
    def cyclecloud(self) -> CommandLine:
        """The command line on it."""

    def outputs(self) -> Mapping[str, Any] | Unknown:
        """What the last deployment has noted."""


class Ways:
    """Of a verb to the cluster that it is about."""

    def __init__(self, place: About, say: Callable[[str], None]) -> None:
        self._place, self._say = place, say
        self._portal = Portal(place.found, login_of(place.found, ask=False))
        self._silent: Unknown | None = None
        """Why the site is asked no more: a verb does not come back to a way that was lost."""

    def close(self) -> None:
        """End the way to the site."""
        self._portal.close()

    def look(self) -> Cluster:
        """The cluster and its nodes. Raises NotDone and Unreachable where the last way does not lead there either."""
        from ..cyclecloud import nodes

        found, why = seen(self._site(), self._place.name, lambda: nodes.look(self._place.cyclecloud, self._place.name))
        if isinstance(found, Unknown):
            raise NotDone(found.reason, found.hint)
        if why is not None and self._portal.can_ask and self._silent is None:
            self._silent = why
            self._say(f"{why.reason}; it was `cyclecloud` on the server that was asked")
        return found

    def conditions(self) -> tuple[Condition, ...]:
        """What only the site says of failed nodes; none where another way leads to the server."""
        site = self._site()
        return () if isinstance(site, Unknown) else conditions(site, self._place.name)

    def change(self, words: list[str], call: Call) -> None:
        """`words` of `cyclecloud`, or `call`, which does the same: one of them, once.

        Raises NotDone, and Unreachable where nobody knows whether it arrived.
        """
        site = self._site()
        if isinstance(site, Unknown) or self._place.server.is_reached_by_ssh():
            self._place.cyclecloud.change(words)
            return
        self._say("ssh does not lead to the server; sending a request to the site that is documented nowhere, once")
        try:
            site.change(call)
        except Lost as lost:
            raise Unreachable(lost.reason, lost.hint) from None
        except Refused as refused:
            raise NotDone(f"the site refused: {refused}") from None
        except NotAsked as reason:
            raise NotDone(f"{reason.reason}; nothing was done", reason.hint) from None

    def _site(self) -> Site | Unknown:
        """Azure is asked where it is only where somebody can sign in there."""
        if self._silent is not None:
            return self._silent
        if not self._portal.can_ask or self._place.found.plan.server is None:
            return self._portal.site({})
        outputs = self._place.outputs()
        return outputs if isinstance(outputs, Unknown) else self._portal.site(outputs)
