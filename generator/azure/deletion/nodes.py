"""Ends the cluster's machines: CycleCloud terminates them; where it does not, Azure deletes them behind its back.

CycleCloud takes orders only from a user who is logged in, and no password stays on the server (docs/first-boot.md).
So nothing here asks for one: a server that is going anyway is stopped, so that it starts no machine any more, and then
whatever carries the deployment's tag is deleted by documented requests. The server of someone else is never stopped.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Iterator
from functools import partial

from ...plan.deployment import Plan
from ..answers import below, listed_below
from ..refusals import Refused
from ..request import Call
from ..requests import compute, resource_manager
from ..resource_ids import name_of
from ..writer import Writer
from .decide import Going, Stopped, is_node, mark_of, removal_of
from .seen import Thing
from .survey import Place

_TRIES = 8
_NODES_S = 30 * 60
_MADE = ("fromimage", "empty")
"""How a disk comes with its machine; any other was there before, or nobody says."""


class Ending:
    """One go at it. `delete` deletes one thing and may find it gone; `pause` waits between two looks."""

    def __init__(
        self,
        plan: Plan,
        writer: Writer,
        server: str,
        say: Callable[[str], None],
        delete: Callable[[Going], None],
        pause: Callable[[], None],
        *,
        keeps: bool,
    ) -> None:
        self.plan, self.writer, self._server = plan, writer, server
        self._say, self._delete, self._pause, self._keeps = say, delete, pause, keeps
        self.marked: set[str] = set()
        """Parts of machines, which carry the tag from now on."""

    def run(self) -> None:
        """Return when no machine is left. Raises Stopped, Refused, NotAsked, NotDone."""
        if not self._server:
            self._through_azure()
        elif reason := self._through_cyclecloud():
            self._say(f"CycleCloud does not terminate the cluster: {reason}")
            self._through_azure()

    # ---- CycleCloud

    def _through_cyclecloud(self) -> str:
        """Why it did not work where there is another way, else nothing."""
        self._say(f"terminating the cluster: {len(self._machines())} machines")
        try:
            self._on_server("terminate_cluster")
        except (NotDone, Refused) as reason:
            if self.plan.server is None:
                raise
            return str(reason)
        end = time.monotonic() + _NODES_S
        while left := [each.name for each in self._machines()]:
            if time.monotonic() > end:
                text = f"these machines still exist: {', '.join(left)}"
                if self.plan.server is None:
                    raise Stopped(text, "look for them in the portal")
                return text
            self._say(f"waiting for {len(left)} machines")
            self._pause()
        if self.plan.existing_server:
            self._on_server("delete_cluster")
        return ""

    def _on_server(self, verb: str) -> None:
        """A command on the server, which takes one at a time: that of someone else, or of an earlier run, first."""
        for left in reversed(range(_TRIES)):
            try:
                run(self.plan, self.writer, self._server, verb)
            except Refused as refused:
                if not left or refused.code.casefold() != "conflict":
                    raise
                self._say("another command is running on the server; waiting for it")
                self._pause()
            else:
                return

    # ---- Azure

    def _through_azure(self) -> None:
        """A request that CycleCloud sent just before may still bring a machine; it carries the tag as well."""
        if self._server:
            name = name_of(self._server)
            said = f"stopped the CycleCloud server {name}, which `az vm start --ids {self._server}` starts again"
            self._delete(Going("mark", self._server, said, stop(self._server)))
        for _ in range(_TRIES):
            if not (machines := self._machines()):
                return
            self.writer.together([partial(self._end, each) for each in machines])
        raise Stopped(f"these machines keep coming back: {', '.join(each.name for each in machines)}", None)

    def _end(self, machine: Thing) -> None:
        """Delete it with its parts, which carry no tag yet: so a run that is ended here is continued by the next."""
        parts = list(self._parts(machine))
        for part, _ in parts:
            self.marked.add(part.casefold())
            self._delete(mark_of(self.plan, part))
        for each in (machine.id, *(part for part, is_data in parts if not (is_data and self._keeps))):
            self._delete(removal_of(each))

    def _parts(self, machine: Thing) -> Iterator[tuple[str, bool]]:
        """Interfaces, their public addresses and disks of a machine, and whether it is a data disk.

        Those of a scale set go with it. A disk that was there before the machine is nobody's part: it is left, and
        shown when everything is looked at once more.
        Source: https://learn.microsoft.com/rest/api/compute/virtual-machines/get (`DiskCreateOptionTypes`)
        """
        if machine.type.casefold() != "microsoft.compute/virtualmachines":
            return
        answer = self.writer.find(resource_manager.by_id(machine.id)) or {}
        for each in listed_below(answer, "properties", "networkProfile", "networkInterfaces"):
            yield from ((part, False) for part in self._interface(str(below(each, "id"))))
        storage = below(answer, "properties", "storageProfile") or {}
        for is_data, disk in (
            (False, below(storage, "osDisk")),
            *((True, each) for each in listed_below(storage, "dataDisks")),
        ):
            found = below(disk or {}, "managedDisk", "id")
            is_made = str(below(disk or {}, "createOption")).casefold() in _MADE
            if isinstance(found, str) and is_made:
                yield found, is_data

    def _interface(self, interface: str) -> Iterator[str]:
        yield interface
        answer = self.writer.find(resource_manager.by_id(interface)) or {}
        for each in listed_below(answer, "properties", "ipConfigurations"):
            found = below(each, "properties", "publicIPAddress", "id")
            if isinstance(found, str):
                yield found

    def _machines(self) -> list[Thing]:
        self.writer.forget()
        return [each for each in Place(self.plan, self.writer).resources() if is_node(self.plan, each)]


_EXIT = re.compile(r"^cycleforge-exit=(\w+)$", re.MULTILINE)
_LIMIT_S = 30 * 60
_SHOWN = 600


class NotDone(Exception):  # noqa: N818 - named by what happened
    """The server did not do it; the text says why, the hint what to type instead."""

    def __init__(self, text: str, hint: str) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


def command(plan: Plan, server: str, verb: str) -> Call:
    """`cyclecloud terminate_cluster` or `delete_cluster` on the server, as a user whose CLI is logged in.

    The answer names no exit status, so the script prints it.
    Source: https://learn.microsoft.com/azure/virtual-machines/linux/run-command
    """
    assert plan.slurm is not None
    body = {"commandId": "RunShellScript", "script": script(plan.admin.username, verb, plan.slurm.cluster_name)}
    return compute.RUN_COMMAND(id=server, body=body)


def stop(server: str) -> Call:
    """Stop the server and give its machine back; nothing is said to a machine that is stopped already."""
    return compute.STOP(id=server)


def script(user: str, verb: str, cluster: str) -> list[str]:
    """Lines for a POSIX shell, run by root. The CLI keeps its login in the home of whoever logged in."""
    return [
        'PATH="$PATH:/usr/local/bin:/usr/local/cyclecloud-cli/bin:/root/bin"',
        "program=$(command -v cyclecloud)",
        f"for user in {shlex.quote(user)} root; do",
        '  home=$(getent passwd "$user" | cut -d: -f6)',
        '  if [ -n "$program" ] && [ -n "$home" ] && [ -f "$home/.cycle/config.ini" ]; then',
        f'    sudo -H -u "$user" "$program" {verb} {shlex.quote(cluster)} 2>&1',
        '    echo "cycleforge-exit=$?"',
        "    exit 0",
        "  fi",
        "done",
        'echo "cycleforge-exit=nobody"',
    ]


def run(plan: Plan, writer: Writer, server: str, verb: str) -> None:
    """Do it; raises NotDone, Refused and NotAsked."""
    assert plan.slurm is not None
    words = f"cyclecloud {verb} {plan.slurm.cluster_name}"
    by_hand = f"ssh {plan.access.ssh} {words}"
    rows = below(writer.do(command(plan, server, verb), _LIMIT_S), "value")
    said = "\n".join(str(below(each, "message")) for each in rows) if isinstance(rows, list) else ""
    found = _EXIT.search(said)
    if found is None:
        raise NotDone("the server's answer does not say whether the command succeeded", by_hand)
    if found[1] == "nobody":
        login = "cyclecloud initialize --force --url=https://localhost"
        raise NotDone(
            "no user is logged in to CycleCloud on the server",
            f"ssh -t {plan.access.ssh} {login} --username={plan.admin.username} --verify-ssl=false, or terminate the "
            "cluster in the portal; then run the same command again",
        )
    if found[1] != "0":
        text = " ".join(said.partition("[stdout]")[2].partition("cycleforge-exit=")[0].split())
        raise NotDone(f"`{words}` failed on the server with {found[1]}: {text[:_SHOWN]}", by_hand)
