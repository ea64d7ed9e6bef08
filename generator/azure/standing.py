"""How a deployment is, as far as Azure knows: its record, its server, its first boot; all asked at the same time.

What Azure refuses or does not answer stays unknown by itself and takes nothing else with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

from msgspec import Struct

from ..plan.deployment import Plan
from . import deployment
from .answers import below, listed_below
from .deployment import Seen
from .reader import Reader
from .refusals import NotAsked, Refused
from .requests import compute

_Answer = TypeVar("_Answer")
_POWER = "powerstate/"
BootState = Literal["done", "running", "failed", "none"]
_BOOT: Mapping[str, BootState] = {"succeeded": "done", "failed": "failed", "canceled": "failed"}


class Unknown(Struct, frozen=True):
    """What could not be asked, and why."""

    reason: str
    hint: str | None = None


class Boot(Struct, frozen=True):
    """The server's first boot, as the extension that runs it tells."""

    state: BootState
    """`none`: it was never begun."""
    error: str
    hint: str


class Standing(Struct, frozen=True):
    """Each part as it is, or why that is not known."""

    record: Seen | Unknown | None
    """None: never deployed, or the record is deleted."""
    server: str | Unknown
    """`running`, `deallocated`, …; `none` where there is no such VM."""
    boot: Boot | Unknown


def standing(plan: Plan, reader: Reader) -> Standing:
    """Ask Azure, in one round of requests."""
    if plan.server is None:
        not_ours = Unknown("the server is not this deployment's")
        return Standing(known(lambda: deployment.last(plan, reader)), not_ours, not_ours)
    at = {"group": plan.resource_group, "name": plan.server.vm_name}
    reader.forget()
    questions: list[Callable[[], Any]] = [
        lambda: known(lambda: deployment.last(plan, reader)),
        lambda: known(lambda: _power(reader.find(compute.SERVER_VIEW(**at)))),
        lambda: known(lambda: _boot(reader.find(compute.FIRST_BOOT(**at)))),
    ]
    seen, power, boot = reader.together(questions)
    return Standing(seen, power, boot)


def known(ask: Callable[[], _Answer]) -> _Answer | Unknown:
    """What Azure answers, or why that is not known."""
    try:
        return ask()
    except Refused as refused:
        return Unknown(f"Azure refused: {refused.code}: {refused.message}")
    except NotAsked as reason:
        return Unknown(reason.reason, reason.hint)


def _power(view: Mapping[str, Any] | None) -> str | Unknown:
    if view is None:
        return "none"
    for each in listed_below(view, "statuses"):
        code = str(each.get("code", "")).casefold()
        if code.startswith(_POWER):
            return code.removeprefix(_POWER)
    return Unknown("Azure does not say whether the VM runs")


def _boot(extension: Mapping[str, Any] | None) -> Boot:
    if extension is None:
        return Boot("none", "", "")
    state = _BOOT.get(str(below(extension, "properties", "provisioningState")).casefold(), "running")
    if state != "failed":
        return Boot(state, "", "")
    said = [str(each.get("message", "")) for each in listed_below(extension, "properties", "instanceView", "statuses")]
    return Boot(state, *_why("\n".join(said)))


def _why(said: str) -> tuple[str, str]:
    """The error and the hint that the first boot has printed last; else its last words."""
    lines = [line.strip() for line in said.replace("[stdout]", "\n").replace("[stderr]", "\n").splitlines()]
    lines = [line for line in lines if line]
    error = next((line.removeprefix("error: ") for line in reversed(lines) if line.startswith("error: ")), "")
    hint = next((line.removeprefix("hint: ") for line in reversed(lines) if line.startswith("hint: ")), "")
    return error or (lines[-1] if lines else "Azure does not say why"), hint
