"""The first boot of the server, followed without a way into its network while the deployment runs.

The steps are in the log of the serial console. Where that says nothing, a run command asks for them. Whether Azure
answers one before the extension has ended is not documented; the agent is free by then, because the extension leaves
its script to a process of its own (misc/custom-script-shim of Azure/custom-script-extension-linux). So one that is not
answered yet is left alone, and a second one is not sent: Azure runs one at a time on a VM.
Sources: https://learn.microsoft.com/azure/virtual-machines/linux/run-command,
https://learn.microsoft.com/azure/virtual-machines/boot-diagnostics and
https://learn.microsoft.com/rest/api/compute/virtual-machines/retrieve-boot-diagnostics-data
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..blobs.download import DownloadFailed, Limits, download
from ..plan.deployment import Plan
from .clients import finished, outcome
from .operation_tree import Part, State
from .reader import Reader
from .refusals import ODD, NotAsked, Refused
from .requests.compute import RUN_COMMAND, SERIAL_LOG
from .resource_ids import server_id
from .run_command import printed
from .writer import Writer

if TYPE_CHECKING:
    from .clients import Begun


SHOW = "/usr/local/sbin/cycleforge-bootstrap status"
LIMIT_S = 600


def status(plan: Plan, writer: Writer) -> str | None:
    """Return what the server says of its first boot; None without a server. Raises Refused and NotAsked."""
    return None if plan.server is None else printed(finished(begin_status(plan, writer), LIMIT_S))


def begin_status(plan: Plan, writer: Writer) -> Begun:
    """Ask for the status; Azure runs one command at a time on a VM, and none can be taken back."""
    if plan.server is None:
        raise NotAsked("the deployment has no server of its own")
    body = {"commandId": "RunShellScript", "script": [SHOW]}
    return writer.begin(RUN_COMMAND(id=server_id(plan, writer.subscription), body=body))


_LIMITS = Limits(answer_s=20, total_s=30, tries=1)
_MOST_BYTES = 16 * 2**20


def console_log(plan: Plan, reader: Reader) -> str:
    """Return the log of the serial console; empty until the server writes to it. Raises Refused and NotAsked.

    Azure gives the address of the log with a signature in it, which is a secret: it is neither kept nor printed.
    """
    if plan.server is None:
        raise NotAsked("the deployment has no server of its own")
    answer = reader.get_secret(SERIAL_LOG(group=plan.resource_group, name=plan.server.vm_name))
    address = answer.get("serialConsoleLogBlobUri")
    if not isinstance(address, str) or urlsplit(address).scheme != "https":
        raise NotAsked("Azure returned no address for the server's serial log")
    try:
        return download(address, _MOST_BYTES, _LIMITS).decode("utf-8", "replace")
    except DownloadFailed as failed:
        # No address in a message: the signature is in it.
        reason = "it leads elsewhere" if "://" in failed.reason else failed.reason
    raise NotAsked(f"the server's serial log: {reason}")


_CONSOLE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) cycleforge-bootstrap: "
    r"step (\d+)/\d+ (running|done|warning|failed)(?: after (\d+) s)?: ([^\r\n]+)\r?\n"
)
"""A whole line as bootstrap/cycleforge_bootstrap/runner.py writes it, whatever the kernel wrote before it."""
_STATUS = re.compile(r"^  (running|done|warning|failed) +(\d+) s  (.+?)(?:  .*)?$", re.MULTILINE)
"""As `summary` of bootstrap/cycleforge_bootstrap/status.py writes it."""
_GOING_ON = re.compile(r"^CycleForge bootstrap of \S+: running$", re.MULTILINE)
_STATES: Mapping[str, State] = {"running": "running", "done": "done", "warning": "done", "failed": "failed"}
_SKEW_S = 60.0
"""By so much the clock of a new server may be behind Azure's."""


class BootStep(Struct, frozen=True):
    """One step that has begun."""

    title: str
    state: State
    seconds: float | None
    began: float


def of_console(log: str, since: float) -> tuple[BootStep, ...]:
    """The steps in a serial log, of the last run since a time in seconds since 1970; half a line is none."""
    found: dict[int, BootStep] = {}
    for stamp, number, state, seconds, title in _CONSOLE.findall(log):
        at = datetime.fromisoformat(stamp).timestamp()
        if at + _SKEW_S < since:
            continue
        if state == "running":  # a program that was killed begins anew
            found = {key: step for key, step in found.items() if key < int(number)}
        found[int(number)] = _step(title, state, seconds, at)
    return tuple(found[number] for number in sorted(found))


def of_status(text: str) -> tuple[BootStep, ...]:
    """The steps in what `cycleforge-bootstrap status` prints while a run goes on; one that has ended may be older."""
    if not is_going_on(text):
        return ()
    return tuple(_step(title, state, seconds, 0) for state, seconds, title in _STATUS.findall(text))


def is_going_on(text: str) -> bool:
    """Whether what `cycleforge-bootstrap status` prints is of a run that has not ended."""
    return _GOING_ON.search(text) is not None


def _step(title: str, state: str, seconds: str, began: float) -> BootStep:
    shown = f"{title} (with a warning)" if state == "warning" else title
    return BootStep(shown, _STATES[state], float(seconds) if seconds and state != "running" else None, began)


def with_steps(parts: Iterable[Part], extension: str, steps: Iterable[BootStep]) -> tuple[Part, ...]:
    """The tree with the steps below the extension of this id that runs them."""
    return tuple(
        replace(part, parts=_parts(part, steps))
        if part.resource.id.lower() == extension.lower()
        else replace(part, parts=with_steps(part.parts, extension, steps))
        for part in parts
    )


def _parts(extension: Part, steps: Iterable[BootStep]) -> tuple[Part, ...]:
    return tuple(
        Part(
            replace(extension.resource, id=f"{extension.resource.id}/step {number}"),
            step.state, step.seconds, (), (), step.began, step.title,
        )
        for number, step in enumerate(steps, 1)
    )  # fmt: skip


_EXTENSION = "microsoft.compute/virtualmachines/extensions"
_SILENT_LOOKS = 3
"""So often the console may have nothing before a run command is sent."""
_TRIES = 6
"""At the end, while someone else's run command is on the server."""
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
        """Start to ask while the first boot continues; return what is new to tell, each sentence once."""
        running = _running(parts)
        if running is not None and self._plan.server is not None and not self._is_asking:
            self._extension, self._is_asking = running.resource.id, True
            began = running.began
            self._awaited = self._background(lambda: self._ask(began))
        news = list(self._said)[self._told :]
        self._told += len(news)
        return news

    def placed(self, parts: tuple[Part, ...]) -> tuple[Part, ...]:
        return with_steps(parts, self._extension, self._steps) if self._steps else parts

    def end(self, pause: Callable[[], None]) -> str | None:
        """Return what the server says in the end; None without a server. Raises Refused and NotAsked."""
        self._awaited()
        if self._command is not None:
            text = printed(finished(self._command, LIMIT_S))
            self._command = None
            if not is_going_on(text):
                return text
        for _ in range(_TRIES):
            try:
                return status(self._plan, self._writer)
            except Refused as refused:
                if refused.status != _CONFLICT:
                    raise
            pause()
        return status(self._plan, self._writer)

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
            return of_console(console_log(self._plan, self._writer), began)
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
                self._command = begin_status(self._plan, self._writer)
            if self._command.done():
                done, self._command = self._command, None
                return of_status(printed(outcome(done.result)))
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
