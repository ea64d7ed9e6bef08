"""Where a definition is, for the command in `ssh_config`: it knows a name only, and ssh is used from anywhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from ..disk.user_cache import user_cache
from ..errors import CannotRead
from . import definitions
from .built import Built
from .reading import Target

_TOLD = "CYCLEFORGE_CONNECT"
"""What ssh's ProxyCommand is told by the command of ours that starts ssh."""


class _Place(msgspec.Struct):
    definition: str
    out: str
    subscription: str | None = None
    deployment: str | None = None
    """Its name; the definition may have another one by now."""


def tell(found: Built, target: Target) -> None:
    """The ssh that this process starts finds this definition and its folder again, and `cycleforge` itself.

    It is noted as well, for whoever uses `ssh_config`, `ssh_hosts` or the lines of --print from elsewhere. That is only
    a convenience: a failure is none.
    """
    if target.name == "-":
        raise CannotRead("a definition from standard input has no name to connect by", "give it a file")
    os.environ |= told(found, target.subscription)
    path_with_us()
    try:
        note = _note(found.plan.definition_name)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(os.environ[_TOLD], encoding="utf-8")
    except (OSError, CannotRead):
        return


def told(found: Built, subscription: str | None) -> dict[str, str]:
    """What one ssh alone is told, where one command starts several for several deployments."""
    definition, out = Path(found.definition.filename).resolve(), found.folder.parent.resolve()
    place = _Place(str(definition), str(out), subscription, found.plan.name)
    return {_TOLD: msgspec.json.encode(place).decode()}


def path_with_us() -> None:
    """ssh finds `cycleforge` although nobody has put its folder into PATH."""
    here = Path(sys.argv[0]).resolve().parent
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if (here / "cycleforge").is_file() and str(here) not in folders:
        os.environ["PATH"] = os.pathsep.join([str(here), *folders])


def find(target: Target) -> Target:
    """What whoever started ssh said, else what is here, else what was used last."""
    place = _read(os.environ.get(_TOLD, ""))
    if place is None or Path(place.definition).stem != target.name:
        place, here = _noted(target.name), _here(target.name)
        # One that CycleForge brings is not meant by a name that was used for another one.
        if here is not None and (place is None or not definitions.is_shipped(here)):
            return target
        if place is None:
            hint = f"use `cycleforge connect {target.name}` once in the folder that has the definition"
            raise CannotRead(f"there is no definition '{target.name}' here", hint)
    return Target(place.definition, Path(place.out), target.subscription or place.subscription, place.deployment)


def _here(name: str) -> Path | None:
    try:
        return definitions.look(name)
    except CannotRead:
        return None


def _note(name: str) -> Path:
    return user_cache(os.environ) / "connect" / f"{name}.json"


def _noted(name: str) -> _Place | None:
    try:
        return _read(_note(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, CannotRead):
        return None


def _read(said: str) -> _Place | None:
    try:
        return msgspec.json.decode(said, type=_Place)
    except (msgspec.DecodeError, ValueError):
        return None
