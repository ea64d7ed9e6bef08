"""What the verbs share that drive a cluster: where it is, ways to its server and scheduler, doing a thing once."""

from __future__ import annotations

import os
import re
import shlex
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import AzureRefused, CannotRead, CycleForgeError
from ..operate.built import must_be_current
from . import azure, common, whereabouts

if TYPE_CHECKING:
    from ..azure.standing import Unknown
    from ..azure.writer import Writer
    from ..cyclecloud.cluster import Cluster
    from ..cyclecloud.command_line import CommandLine
    from ..cyclecloud.hide import Hide
    from ..cyclecloud.request import Call
    from ..cyclecloud.shell import Ran, Runs, Shell, Unreachable
    from ..cyclecloud.slurm import Queue
    from ..operate.built import Built
    from ..plan.types import Plan, SlurmPlan
    from .cluster_ways import Ways

_SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|(?:STORAGE|ACCESS|API|ACCOUNT)_KEY|CONNECTION_STRING")
"""Names of variables that hold something secret; the paths to a file in them are hidden as well."""
AGAIN = "type the same command again: it looks first"


def add_arguments(parser: ArgumentParser, *, changes: bool) -> None:
    """The flags of all of them."""
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    common.add_all(parser)
    azure.add_subscription(parser)
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; change nothing")
    if changes:
        parser.add_argument("--yes", action="store_true", help="do not ask")


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


# ---------------------------------------------------------------- ways


class _ByAzure:
    """The server where no network path leads to it."""

    def __init__(self, plan: Plan, writer: Writer) -> None:
        from ..azure.run_command import server_id

        self._plan, self._writer = plan, writer
        self._machine = server_id(plan, writer.subscription)

    def line(self, command: str = "", *, tty: bool = False) -> list[str]:
        """What a person types."""
        from ..azure.run_command import line

        return shlex.split(line(self._plan.access.server_arguments, command))

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
        """Run it to its end, as root."""
        from ..azure.refusals import NotAsked
        from ..azure.run_command import run
        from ..cyclecloud.shell import Ran, Unreachable

        try:
            return Ran(*run(self._writer, self._machine, command, input, limit_s + 120))
        except NotAsked as reason:
            raise Unreachable(reason.reason, reason.hint) from None


class Server:
    """ssh, and once that fails at the beginning, Azure's run command; a verb never changes the way in between."""

    def __init__(self, shell: Shell, otherwise: Callable[[], Runs]) -> None:
        self._shell, self._otherwise = shell, otherwise
        self._way: Runs | None = None
        self._lost: Unreachable | None = None

    def is_reached_by_ssh(self) -> bool:
        """Whether ssh leads there; asked at most once, with a command that changes nothing."""
        from ..cyclecloud.shell import Unreachable

        if self._way is None and self._lost is None:
            try:
                self._shell.run("true", limit_s=60)
                self._way = self._shell
            except Unreachable as lost:
                self._lost = lost
        return self.is_direct

    @property
    def is_direct(self) -> bool:
        """Whether a network path leads there; known once something was asked."""
        return self._way is self._shell

    def prove(self) -> None:
        """Find out which way leads there; raises Unreachable where none does."""
        self.run("true", limit_s=60)

    def line(self, command: str = "", *, tty: bool = False) -> list[str]:
        """What a person types."""
        return (self._way or self._shell).line(command, tty=tty)

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as Shell
        """Run it; the first command of a verb only reads, so that it may be sent a second time."""
        from ..cyclecloud.shell import Unreachable
        from ..cyclecloud.ssh_words import NotSignedIn

        if self._way is None and self._lost is None:
            try:
                ran = self._shell.run(command, input=input, limit_s=limit_s)
            except Unreachable as lost:
                self._lost = lost
            else:
                self._way = self._shell
                return ran
        if isinstance(self._lost, NotSignedIn):
            raise self._lost
        if self._way is None:
            self._way = self._otherwise()
            why = self._lost.reason if self._lost else ""
            say(f"{why}; going through Azure's run command: half a minute for each step, and short answers")
        return self._way.run(command, input=input, limit_s=limit_s)


class Place:
    """A cluster, its server and its scheduler. Nothing is connected yet."""

    def __init__(self, found: Built, slurm: SlurmPlan, args: Namespace) -> None:
        self.found, self.plan, self.slurm, self._args = found, found.plan, slurm, args
        self._writer: Writer | None = None
        self._outputs: Mapping[str, Any] | Unknown | None = None

    @property
    def name(self) -> str:
        """Of the cluster."""
        return self.slurm.cluster_name

    @property
    def config(self) -> Path:
        """What ssh reads."""
        return self.found.folder / "ssh_config"

    @cached_property
    def server(self) -> Server:
        """The CycleCloud server."""
        from ..cyclecloud.shell import Shell

        return Server(Shell(self.config, "server"), lambda: _ByAzure(self.plan, self.writer()))

    @cached_property
    def scheduler(self) -> Shell:
        """Where Slurm's commands are."""
        return self.node("scheduler")

    def node(self, host: str) -> Shell:
        """Any host that `ssh_config` knows."""
        from ..cyclecloud.shell import Shell

        return Shell(self.config, host)

    @cached_property
    def cyclecloud(self) -> CommandLine:
        """The command line on the server."""
        from ..cyclecloud.command_line import CommandLine

        admin = self.plan.admin.username
        words = ["cyclecloud", "initialize", "--force", "--url=https://localhost", f"--username={admin}",
                 "--verify-ssl=false"]  # fmt: skip
        return CommandLine(self.server, admin, f"{shlex.join(self.node('server').line(tty=True))} {shlex.join(words)}")

    @cached_property
    def ways(self) -> Ways:
        """To the cluster."""
        from .cluster_ways import Ways

        return Ways(self, say)

    def look(self) -> Cluster:
        """The cluster and its nodes, on the first way that leads there."""
        return self.ways.look()

    def outputs(self) -> Mapping[str, Any] | Unknown:
        """What the last deployment has noted, or why it is not known; Azure is asked once."""
        if self._outputs is None:
            self._outputs = self._asked_outputs()
        return self._outputs

    def _asked_outputs(self) -> Mapping[str, Any] | Unknown:
        from ..azure.deployment import last
        from ..azure.standing import Unknown, known

        try:
            seen = known(lambda: last(self.plan, self.writer()))
        except CycleForgeError as error:
            return Unknown(error.message, error.hint)
        if seen is None:
            return Unknown(f"{self.plan.name} is not deployed")
        return seen if isinstance(seen, Unknown) else seen.outputs

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
        from ..cyclecloud.hide import Hide

        names = {secret.variable for secret in self.plan.secrets}
        names |= {name for name in os.environ if _SECRET.search(name)}
        values = [os.environ.get(name, "") for name in sorted(names)]
        return Hide(value for value in values if not value.startswith("/subscriptions/"))

    def lines(self, *commands: Sequence[str], host: str = "server") -> list[str]:
        """What `--print` prints."""
        return [shlex.join([*self.node(host).line(), shlex.join(words)]) for words in commands]

    def writer(self) -> Writer:
        """Azure, asked for only where something needs it."""
        from ..azure.writer import Writer

        if self._writer is None:
            self._writer = Writer(azure.session_of(self.plan, self._args))
        return self._writer

    def close(self) -> None:
        """Whatever was opened."""
        if "ways" in vars(self):
            self.ways.close()
        if self._writer is not None:
            self._writer.close()


def found(args: Namespace) -> Place:
    """The cluster that `args.name` names."""
    from .built import looked_for

    there = looked_for(args)
    if there.plan.slurm is None:
        raise CannotRead(f"{args.name} has no cluster: its definition has no `slurm`")
    place = Place(there, there.plan.slurm, args)
    if not place.config.is_file():
        raise CannotRead(f"there is no {place.config}", f"cycleforge build {args.name}")
    whereabouts.tell(args, there)
    whereabouts.remember(there.plan.definition_name)
    return place


@contextmanager
def refusals(place: Place) -> Iterator[None]:
    """What a server, a host or Azure does not do, as an error of the command; closes what was opened."""
    from ..cyclecloud.command_line import NotDone
    from ..cyclecloud.shell import Unreachable
    from ..words.terminal import printable

    try:
        with azure.refusals(place.plan, AGAIN):
            yield
    except NotDone as not_done:
        raise AzureRefused(printable(not_done.text), not_done.hint) from None
    except Unreachable as lost:
        raise AzureRefused(printable(lost.reason), lost.hint) from None
    finally:
        place.close()


def queue(place: Place, seen: Cluster) -> tuple[Queue | None, str]:
    """What Slurm says, or why it does not; neither where there is no scheduler that could have jobs."""
    from ..cyclecloud import slurm
    from ..cyclecloud.command_line import NotDone
    from ..cyclecloud.shell import Unreachable

    if not any(node.name == "scheduler" and node.is_there for node in seen.listed):
        return None, ""
    try:
        return slurm.look(place.scheduler), ""
    except NotDone as not_done:
        return None, not_done.text
    except Unreachable as lost:
        return None, lost.reason


# ---------------------------------------------------------------- changes


def changed_once(
    place: Place, words: list[str], call: Call, is_done: Callable[[Cluster], bool], *, may_stay: bool = False
) -> Cluster:
    """Do what `words` of `cyclecloud`, or `call`, do, once; then read what is true. Raises AzureRefused.

    A connection that is lost says nothing about what arrived: the server is asked, and nothing is sent again.
    `may_stay`: where the server has taken it, nothing need have changed yet.
    """
    from ..cyclecloud.command_line import line
    from ..cyclecloud.shell import Unreachable
    from ..words.terminal import printable

    lost = None
    try:
        place.ways.change(words, call)
    except Unreachable as error:
        lost = error
        say(f"{printable(error.reason)}; looking whether `{line(words)}` arrived")
    seen = place.look()
    if is_done(seen) or (may_stay and lost is None):
        return seen
    if lost is not None:
        raise AzureRefused(f"`{line(words)}` may have arrived or not, and the cluster is '{seen.way}'", AGAIN)
    raise AzureRefused(f"`{line(words)}` ended well, and the cluster is still '{seen.way}'", AGAIN)
