"""Ends the cluster's machines: CycleCloud terminates them; where it does not, Azure deletes them behind its back.

CycleCloud takes orders only from somebody who is logged in, and no password stays on the server (docs/first-boot.md).
So nothing here asks for one: a server that is going anyway is stopped, so that it starts no machine any more, and then
whatever carries the deployment's tag is deleted by documented requests. The server of somebody else is never stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial

from ...plan.deployment import Plan
from ..answers import below, listed_below
from ..refusals import Refused
from ..requests import resource_manager
from ..writer import Writer
from . import cluster, ids
from .decide import is_node, mark_of
from .decision import Going, Stopped
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
        except (cluster.NotDone, Refused) as reason:
            if self.plan.server is None:
                raise
            return str(reason)
        end = time.monotonic() + _NODES_S
        while left := [each.name for each in self._machines()]:
            if time.monotonic() > end:
                text = f"these machines are still there: {', '.join(left)}"
                if self.plan.server is None:
                    raise Stopped(text, "look for them in the portal")
                return text
            self._say(f"waiting for {len(left)} machines")
            self._pause()
        if self.plan.existing_server:
            self._on_server("delete_cluster")
        return ""

    def _on_server(self, verb: str) -> None:
        """A command on the server, which takes one at a time: that of somebody else, or of an earlier run, first."""
        for left in reversed(range(_TRIES)):
            try:
                cluster.run(self.plan, self.writer, self._server, verb)
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
            name = ids.name_of(self._server)
            said = f"stopped the CycleCloud server {name}, which `az vm start --ids {self._server}` starts again"
            self._delete(Going("mark", self._server, said, cluster.stop(self._server)))
        for _ in range(_TRIES):
            if not (machines := self._machines()):
                return
            self.writer.together([partial(self._end, each) for each in machines])
        raise Stopped(f"these machines come again and again: {', '.join(each.name for each in machines)}", None)

    def _end(self, machine: Thing) -> None:
        """Delete it with its parts, which carry no tag yet: so a run that is ended here is continued by the next."""
        parts = list(self._parts(machine))
        for part, _ in parts:
            self.marked.add(part.casefold())
            self._delete(mark_of(self.plan, part))
        for each in (machine.id, *(part for part, is_data in parts if not (is_data and self._keeps))):
            call = ids.removal_of(each)
            if call is None:
                raise ValueError(f"nothing deletes {each}")
            self._delete(Going("resource", each, f"{ids.type_of(each)} {ids.name_of(each)}", call))

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
