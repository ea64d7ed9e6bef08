"""A living cluster: its server, its scheduler, and which way a question or a change takes to them.

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

import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from ..azure import refusals as azure
from ..azure import run_command
from ..azure.deployment import last
from ..azure.resource_ids import server_id
from ..azure.standing import Unknown
from ..azure.writer import Writer
from ..cyclecloud import cluster, slurm
from ..cyclecloud.cluster import Cluster
from ..cyclecloud.command_line import CommandLine, NotDone, line
from ..cyclecloud.hide import Hide
from ..cyclecloud.reasons import Condition, conditions
from ..cyclecloud.requests import Call
from ..cyclecloud.shell import NotSignedIn, Ran, Runs, Shell, Unreachable
from ..cyclecloud.site import Site
from ..cyclecloud.slurm import Queue
from ..cyclecloud.wire import Lost, NotAsked, Refused
from ..errors import AzureRefused, CannotRead
from ..plan.cluster import SlurmPlan
from ..plan.deployment import Plan
from ..words.terminal import printable
from . import asking, site, way, whereabouts
from .built import Built, Tell, looked_for, must_be_current
from .reading import Target

_SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|(?:STORAGE|ACCESS|API|ACCOUNT)_KEY|CONNECTION_STRING")
"""Names of variables that hold something secret; the paths to a file in them are hidden as well."""
AGAIN = "type the same command again: it looks first"
Say = Callable[[str], None]
"""Hears what goes on."""


def silent(_: object) -> None:
    """Hear nothing."""


class _ByAzure:
    """The server where no network path leads to it."""

    def __init__(self, plan: Plan, writer: Writer) -> None:
        self._writer, self._machine = writer, server_id(plan, writer.subscription)

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
        """Run it to its end, as root."""
        try:
            return Ran(*run_command.run(self._writer, self._machine, command, input, limit_s + 120))
        except azure.NotAsked as reason:
            raise Unreachable(reason.reason, reason.hint) from None


class Server:
    """ssh, and once that fails at the beginning, Azure's run command; a verb never changes the way in between."""

    def __init__(self, shell: Shell, otherwise: Callable[[], Runs], say: Say) -> None:
        self._shell, self._otherwise, self._say = shell, otherwise, say
        self._way: Runs | None = None
        self._lost: Unreachable | None = None

    def is_reached_by_ssh(self) -> bool:
        """Whether ssh leads there; asked at most once, with a command that changes nothing."""
        self._by_ssh("true", b"", 60)
        return self.is_direct

    @property
    def is_direct(self) -> bool:
        """Whether a network path leads there; known once something was asked."""
        return self._way is self._shell

    def prove(self) -> None:
        """Find out which way leads there; raises Unreachable where none does."""
        self.run("true", limit_s=60)

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
        """Run it; the first command of a verb only reads, so that it may be sent a second time."""
        ran = self._by_ssh(command, input, limit_s)
        if ran is not None:
            return ran
        if isinstance(self._lost, NotSignedIn):
            raise self._lost
        if self._way is None:
            self._way = self._otherwise()
            why = self._lost.reason if self._lost else ""
            self._say(f"{why}; going through Azure's run command: half a minute for each step, and short answers")
        return self._way.run(command, input=input, limit_s=limit_s)

    def _by_ssh(self, command: str, given: bytes, limit_s: float) -> Ran | None:
        """The first command of all finds out whether ssh leads there; None for any other, and where it does not."""
        if self._way is not None or self._lost is not None:
            return None
        try:
            ran = self._shell.run(command, input=given, limit_s=limit_s)
        except Unreachable as lost:
            self._lost = lost
            return None
        self._way = self._shell
        return ran


class Place:
    """A cluster, its server and its scheduler. Nothing is connected yet."""

    def __init__(self, found: Built, slurm_plan: SlurmPlan, subscription: str | None, say: Say) -> None:
        self.found, self.plan, self.slurm, self.say = found, found.plan, slurm_plan, say
        self._subscription = subscription
        self._portal = site.Portal(found, site.login_of(found.plan))
        self._silent: Unknown | None = None
        """Why the site is asked no more: a verb does not come back to a way that was lost."""

    @property
    def name(self) -> str:
        return self.slurm.cluster_name

    @property
    def config(self) -> Path:
        return way.config_of(self.found)

    @cached_property
    def server(self) -> Server:
        return Server(self.node("server"), lambda: _ByAzure(self.plan, self.writer), self.say)

    @cached_property
    def scheduler(self) -> Shell:
        return self.node("scheduler")

    def node(self, host: str) -> Shell:
        """Any host that `ssh_config` knows."""
        return Shell(self.config, host)

    @cached_property
    def cyclecloud(self) -> CommandLine:
        admin = self.plan.admin.username
        words = ["cyclecloud", "initialize", "--force", "--url=https://localhost", f"--username={admin}",
                 "--verify-ssl=false"]  # fmt: skip
        return CommandLine(self.server, admin, f"{shlex.join(self.node('server').line(tty=True))} {shlex.join(words)}")

    @cached_property
    def writer(self) -> Writer:
        """Azure, asked for only where something needs it."""
        return Writer(asking.session_of(self.plan, self._subscription))

    @property
    def generations(self) -> list[str]:
        """What each node array's nodes are started from now, as records of nodes name it."""
        return [array.generation for array in self.slurm.node_arrays]

    @property
    def has_records(self) -> bool:
        """Whether nodes tell the scheduler what they started from, and it has the program that replaces them."""
        roles = [self.slurm.scheduler.specs, *(array.specs for array in self.slurm.node_arrays)]
        return all(any(spec.project == "misc_ubuntu" for spec in specs) for specs in roles)

    def must_be_current(self, name: str) -> None:
        """Raises ProblemsFound where the folder is not what the definition says now."""
        must_be_current(self.found, f"`cycleforge build {name}` builds it", name)

    def hide(self) -> Hide:
        """Knows the secrets of this deployment, and of this user's environment, as far as they are given."""
        names = {secret.variable for secret in self.plan.secrets}
        names |= {name for name in os.environ if _SECRET.search(name)}
        values = [os.environ.get(name, "") for name in sorted(names)]
        return Hide(value for value in values if not value.startswith("/subscriptions/"))

    def lines(self, *commands: Sequence[str], host: str = "server") -> list[str]:
        return [shlex.join([*self.node(host).line(), shlex.join(words)]) for words in commands]

    def close(self) -> None:
        self._portal.close()
        if "writer" in vars(self):
            self.writer.close()

    # ---- questions

    def look(self) -> Cluster:
        """The cluster and its nodes. Raises NotDone and Unreachable where the last way does not lead there either."""
        found, why = site.seen(self._site(), self.name, lambda: cluster.look(self.cyclecloud, self.name))
        if isinstance(found, Unknown):
            raise NotDone(found.reason, found.hint)
        if why is not None and self._portal.can_ask and self._silent is None:
            self._silent = why
            self.say(f"{why.reason}; it was `cyclecloud` on the server that was asked")
        return found

    def conditions(self) -> tuple[Condition, ...]:
        """What only the site says of failed nodes; none where another way leads to the server."""
        found = self._site()
        return () if isinstance(found, Unknown) else conditions(found, self.name)

    def queue(self, seen: Cluster) -> tuple[Queue | None, str]:
        """What Slurm says, or why it does not; neither where there is no scheduler that could have jobs."""
        if not any(node.name == "scheduler" and node.is_there for node in seen.listed):
            return None, ""
        try:
            return slurm.look(self.scheduler), ""
        except NotDone as not_done:
            return None, not_done.text
        except Unreachable as lost:
            return None, lost.reason

    @cached_property
    def _outputs(self) -> Mapping[str, Any] | Unknown:
        seen = way.known(lambda: last(self.plan, self.writer))
        if seen is None:
            return Unknown(f"{self.plan.name} is not deployed")
        return seen if isinstance(seen, Unknown) else seen.outputs

    def _site(self) -> Site | Unknown:
        """Azure is asked where it is only where somebody can sign in there."""
        if self._silent is not None:
            return self._silent
        if not self._portal.can_ask or self.plan.server is None:
            return self._portal.site({})
        return self._outputs if isinstance(self._outputs, Unknown) else self._portal.site(self._outputs)

    # ---- changes

    def changed_once(
        self, words: list[str], call: Call, is_done: Callable[[Cluster], bool], *, may_stay: bool = False
    ) -> Cluster:
        """Do what `words` of `cyclecloud`, or `call`, do, once; then read what is true. Raises AzureRefused.

        A connection that is lost says nothing about what arrived: the server is asked, and nothing is sent again.
        `may_stay`: where the server has taken it, nothing need have changed yet.
        """
        lost = False
        try:
            self._change(words, call)
        except Unreachable as error:
            lost = True
            self.say(f"{printable(error.reason)}; looking whether `{line(words)}` arrived")
        seen = self.look()
        if is_done(seen) or (may_stay and not lost):
            return seen
        if lost:
            raise AzureRefused(f"`{line(words)}` may have arrived or not, and the cluster is '{seen.way}'", AGAIN)
        raise AzureRefused(f"`{line(words)}` ended well, and the cluster is still '{seen.way}'", AGAIN)

    def _change(self, words: list[str], call: Call) -> None:
        """Raises NotDone, and Unreachable where nobody knows whether it arrived."""
        found = self._site()
        if isinstance(found, Unknown) or self.server.is_reached_by_ssh():
            self.cyclecloud.change(words)
            return
        self.say("ssh does not lead to the server; sending a request to the site that is documented nowhere, once")
        try:
            found.change(call)
        except Lost as lost:
            raise Unreachable(lost.reason, lost.hint) from None
        except Refused as refused:
            raise NotDone(f"the site refused: {refused}") from None
        except NotAsked as reason:
            raise NotDone(f"{reason.reason}; nothing was done", reason.hint) from None


@contextmanager
def at(target: Target, say: Say = silent, tell: Tell = silent) -> Iterator[Place]:
    """The cluster of a definition; whatever a server, a host or Azure does not do is an error of the verb."""
    found = looked_for(target, tell)
    if found.plan.slurm is None:
        raise CannotRead(f"{target.name} has no cluster: its definition has no `slurm`")
    way.shell_of(found, "server")  # its `ssh_config` is there
    whereabouts.tell(found, target)
    place = Place(found, found.plan.slurm, target.subscription, say)
    with closing(place), way.refusals(), asking.refusals(place.plan, AGAIN):
        yield place
