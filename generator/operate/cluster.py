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
from . import asking, site, way
from .built import Built, Tell, looked_for, must_be_current
from .reading import Target

_SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|(?:STORAGE|ACCESS|API|ACCOUNT)_KEY|CONNECTION_STRING")
"""Names of variables that hold something secret; the paths to a file in them are hidden as well."""
AGAIN = "run the same command again: it looks first"
Say = Callable[[str], None]
"""Gets progress, in sentences."""


def silent(_: object) -> None:
    """Ignore progress."""


class _ByAzure:
    """Runs commands on the server where no network path leads to it; they run as root."""

    def __init__(self, plan: Plan, writer: Writer) -> None:
        self._writer, self._machine = writer, server_id(plan, writer.subscription)

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
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
        """Return True when ssh reaches the server. It is tried at most once, with a command that changes nothing."""
        self._by_ssh("true", b"", 60)
        return self.is_direct

    @property
    def is_direct(self) -> bool:
        """True when ssh has reached the server; False before the first command."""
        return self._way is self._shell

    def prove(self) -> None:
        """Find out which way reaches the server. Raises Unreachable when none does."""
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
            self._say(f"{why}; using Azure's run command instead: each step takes half a minute, and answers are short")
        return self._way.run(command, input=input, limit_s=limit_s)

    def _by_ssh(self, command: str, given: bytes, limit_s: float) -> Ran | None:
        """Try ssh with the first command of all; return None for any later one, and when ssh fails."""
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
        return Shell(self.config, host)

    @cached_property
    def cyclecloud(self) -> CommandLine:
        admin = self.plan.admin.username
        words = ["cyclecloud", "initialize", "--force", "--url=https://localhost", f"--username={admin}",
                 "--verify-ssl=false"]  # fmt: skip
        return CommandLine(self.server, admin, f"{shlex.join(self.node('server').line(tty=True))} {shlex.join(words)}")

    @cached_property
    def writer(self) -> Writer:
        return Writer(asking.session_of(self.plan, self._subscription))

    @property
    def generations(self) -> list[str]:
        """What nodes of each node array are started from now, as the records of nodes name it."""
        return [array.generation for array in self.slurm.node_arrays]

    @property
    def has_records(self) -> bool:
        """True when nodes tell the scheduler what they started from, and it has the program that replaces them."""
        roles = [self.slurm.scheduler.specs, *(array.specs for array in self.slurm.node_arrays)]
        return all(any(spec.project == "misc_ubuntu" for spec in specs) for specs in roles)

    def must_be_current(self, name: str) -> None:
        """Raise ProblemsFound when the folder is not what the definition says now."""
        must_be_current(self.found, f"`cycleforge build {name}` builds it", name)

    def hide(self) -> Hide:
        """Return what hides the secrets of this deployment and of this user's environment."""
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
        """Return the cluster and its nodes. Raises NotDone and Unreachable when the last way fails, too."""
        found, why = site.seen(self._site(), self.name, lambda: cluster.look(self.cyclecloud, self.name))
        if isinstance(found, Unknown):
            raise NotDone(found.reason, found.hint)
        if why is not None and self._portal.can_ask and self._silent is None:
            self._silent = why
            self.say(f"{why.reason}; `cyclecloud` on the server was asked instead")
        return found

    def conditions(self) -> tuple[Condition, ...]:
        """Return what only the site says of failed nodes; empty when it was not the site that answered."""
        found = self._site()
        return () if isinstance(found, Unknown) else conditions(found, self.name)

    def queue(self, seen: Cluster) -> tuple[Queue | None, str]:
        """Return what Slurm says, or why it does not; neither when no scheduler has a VM."""
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
        """Return the site. Azure is asked for its address only when the password is known."""
        if self._silent is not None:
            return self._silent
        if not self._portal.can_ask or self.plan.server is None:
            return self._portal.site({})
        return self._outputs if isinstance(self._outputs, Unknown) else self._portal.site(self._outputs)

    # ---- changes

    def changed_once(
        self, words: list[str], call: Call, is_done: Callable[[Cluster], bool], *, may_stay: bool = False
    ) -> Cluster:
        """Do once what `words` of `cyclecloud`, or `call`, do; then read the state. Raises AzureRefused.

        A lost connection says nothing about what arrived: the server is asked, and nothing is sent again.
        `may_stay`: nothing need have changed yet once the server has accepted it.
        """
        lost = False
        try:
            self._change(words, call)
        except Unreachable as error:
            lost = True
            self.say(f"{printable(error.reason)}; checking whether `{line(words)}` arrived")
        seen = self.look()
        if is_done(seen) or (may_stay and not lost):
            return seen
        if lost:
            raise AzureRefused(f"it is unknown whether `{line(words)}` arrived; the cluster is '{seen.way}'", AGAIN)
        raise AzureRefused(f"`{line(words)}` succeeded, but the cluster is still '{seen.way}'", AGAIN)

    def _change(self, words: list[str], call: Call) -> None:
        """Send the change. Raises NotDone, and Unreachable when it is unknown whether it arrived."""
        found = self._site()
        if isinstance(found, Unknown) or self.server.is_reached_by_ssh():
            self.cyclecloud.change(words)
            return
        self.say("ssh does not reach the server; sending an undocumented request to the site, once")
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
    """Open the cluster of a definition. Raises AzureRefused for what a server, a host or Azure refuses in the block."""
    found = looked_for(target, tell)
    if found.plan.slurm is None:
        raise CannotRead(f"{target.name} has no cluster: its definition has no `slurm`")
    way.shell_of(found, "server")  # its `ssh_config` is there
    way.tell_ssh(found, target)
    place = Place(found, found.plan.slurm, target.subscription, say)
    with closing(place), way.refusals(), asking.refusals(place.plan, AGAIN):
        yield place
