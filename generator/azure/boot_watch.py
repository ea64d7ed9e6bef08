"""Follows the first boot while the deployment that it is part of runs, beside the tree and never in its way.

The steps are in the log of the serial console. Where that says nothing, they are asked for with a run command. Whether
Azure answers one before the extension has ended is not documented; the agent is free by then, because the extension
leaves its script to a process of its own (misc/custom-script-shim of Azure/custom-script-extension-linux). So one that
is not answered yet is left alone, and a second one is not sent: Azure runs one at a time on a VM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from ..plan.deployment import Plan
from . import boot_steps, first_boot, serial_log
from .boot_steps import BootStep
from .clients import finished, outcome
from .operation_tree import Part
from .refusals import ODD, NotAsked, Refused
from .run_command import printed
from .writer import Writer

if TYPE_CHECKING:
    from .clients import Begun

_EXTENSION = "microsoft.compute/virtualmachines/extensions"
_SILENT_LOOKS = 3
"""So often the console may have nothing before a run command is sent."""
_TRIES = 6
"""At the end, while somebody else's run command is on the server."""
_CONFLICT = 409
Background = Callable[[Callable[[], None]], Callable[[], None]]
"""Does something beside everything else; what it returns waits until that is done."""


def in_thread(work: Callable[[], None]) -> Callable[[], None]:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread.join


class BootWatch:
    """Asks once in each look of the deployment, unless an answer is still awaited."""

    def __init__(self, plan: Plan, writer: Writer, background: Background | None = None) -> None:
        self._plan, self._writer, self._background = plan, writer, background or in_thread
        self._extension = ""
        self._steps: tuple[BootStep, ...] = ()
        self._awaited: Callable[[], None] = lambda: None
        self._is_asking = False
        self._may_read, self._may_send = True, True
        self._silent = 0
        self._command: Begun | None = None
        self._said: dict[str, None] = {}
        self._told = 0

    def look(self, parts: Iterable[Part]) -> list[str]:
        """Begin to ask if the first boot goes on; what is to be said, each sentence once."""
        running = _running(parts)
        if running is not None and self._plan.server is not None and not self._is_asking:
            self._extension, self._is_asking = running.resource.id, True
            began = running.began
            self._awaited = self._background(lambda: self._ask(began))
        news = list(self._said)[self._told :]
        self._told += len(news)
        return news

    def placed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        """The tree with the steps that are known."""
        return boot_steps.with_steps(parts, self._extension, self._steps) if self._steps else parts

    def end(self, pause: Callable[[], None]) -> str | None:
        """What the server says in the end; None without a server. Raises Refused and NotAsked."""
        self._awaited()
        if self._command is not None:
            text = printed(finished(self._command, first_boot.LIMIT_S))
            self._command = None
            if not boot_steps.is_going_on(text):
                return text
        for _ in range(_TRIES):
            try:
                return first_boot.steps(self._plan, self._writer)
            except Refused as refused:
                if refused.status != _CONFLICT:
                    raise
            pause()
        return first_boot.steps(self._plan, self._writer)

    def _ask(self, began: float) -> None:
        try:
            found = self._of_console(began) if self._may_read else ()
            self._silent = 0 if found else self._silent + 1
            if not found and self._may_send and (self._silent >= _SILENT_LOOKS or not self._may_read):
                found = self._of_command()
            self._steps = found or self._steps
        finally:
            self._is_asking = False

    def _of_console(self, began: float) -> tuple[BootStep, ...]:
        try:
            return boot_steps.of_console(serial_log.text(self._plan, self._writer), began)
        except Refused as refused:
            if not refused.is_missing:
                self._may_read = False
                self._say(f"the serial console of the server cannot be read: {refused.code}")
        except NotAsked as reason:
            self._say(reason.reason)
        except ODD as error:
            self._say(f"the serial console of the server cannot be read: {type(error).__name__}")
        return ()

    def _of_command(self) -> tuple[BootStep, ...]:
        try:
            if self._command is None:
                self._command = first_boot.begin(self._plan, self._writer)
            if self._command.done():
                done, self._command = self._command, None
                return boot_steps.of_status(printed(outcome(done.result)))
        except Refused as refused:
            self._command = None
            if refused.status != _CONFLICT and not refused.is_missing:
                self._may_send = False
                self._say(f"the server cannot be asked for its first boot: {refused.code}")
        except NotAsked as reason:
            self._say(f"the server cannot be asked for its first boot: {reason.reason}")
        except ODD as error:
            self._command = None
            self._say(f"the server cannot be asked for its first boot: {type(error).__name__}")
        return ()

    def _say(self, text: str) -> None:
        self._said[text] = None


def _running(parts: Iterable[Part]) -> Part | None:
    """The extension that runs the first boot, while it does."""
    for part in parts:
        if part.resource.type.lower() == _EXTENSION and part.state == "running":
            return part
        inside = _running(part.parts)
        if inside is not None:
            return inside
    return None
