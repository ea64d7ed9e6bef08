"""Where a definition is, for the command in `ssh_config`: it knows a name only, and ssh is used from anywhere."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..operate import definitions
from ..records import record

if TYPE_CHECKING:
    from ..operate.built import Built

_TOLD = "CYCLEFORGE_CONNECT"
"""What ssh's ProxyCommand is told by the command of ours that starts ssh."""


@record
class _Place:
    definition: str = ""
    out: str = ""
    subscription: str | None = None
    deployment: str | None = None
    """Its name; the definition may have another one by now."""


def tell(args: Namespace, found: Built) -> None:
    """The ssh that this command starts finds this definition and its folder again, and `cycleforge` itself."""
    if args.name == "-":
        raise CannotRead("a definition from standard input has no name to connect by", "give it a file")
    os.environ |= told(Path(found.definition.filename), args.out, getattr(args, "subscription", None), found.plan.name)
    path_with_us()


def told(definition: Path, out: Path, subscription: str | None, deployment: str) -> dict[str, str]:
    """The same for one ssh alone, where one command starts several for several deployments."""
    place = _Place(str(definition.resolve()), str(out.resolve()), subscription, deployment)
    return {_TOLD: json.dumps(asdict(place))}


def path_with_us() -> None:
    """ssh finds `cycleforge` although nobody has put its folder into PATH."""
    here = Path(sys.argv[0]).resolve().parent
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if (here / "cycleforge").is_file() and str(here) not in folders:
        os.environ["PATH"] = os.pathsep.join([str(here), *folders])


def remember(name: str) -> None:
    """What was told last, for whoever uses `ssh_config`, `ssh_hosts` or the lines of --print from elsewhere.

    Only a convenience: a failure is none.
    """
    try:
        note = _note(name)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(os.environ[_TOLD], encoding="utf-8")
    except (OSError, CannotRead):
        return


def find(args: Namespace) -> None:
    """Set `args` to what whoever started ssh said, else to what is here, else to where it was used last."""
    place = _read(os.environ.get(_TOLD, ""))
    if Path(place.definition).stem != args.name:
        if _is_here(args.name):
            return
        place = _noted(args.name)
    args.name, args.out, args.deployment = place.definition, Path(place.out), place.deployment
    args.subscription = args.subscription or place.subscription


def _is_here(name: str) -> bool:
    """One that CycleForge brings is not meant by a name that was used for another one."""
    noted = bool(_noted(name).definition)
    try:
        found = definitions.find(name)
    except CannotRead:
        if noted:
            return False
        hint = f"use `cycleforge connect {name}` once in the folder that has the definition"
        raise CannotRead(f"there is no definition '{name}' here", hint) from None
    return not (found is not None and definitions.is_shipped(found) and noted)


def _note(name: str) -> Path:
    from ..disk.user_cache import user_cache

    return user_cache(os.environ) / "connect" / f"{name}.json"


def _noted(name: str) -> _Place:
    try:
        return _read(_note(name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return _Place()


def _read(said: str) -> _Place:
    try:
        place = json.loads(said or "{}")
        return _Place(str(place["definition"]), str(place["out"]), place.get("subscription"), place.get("deployment"))
    except (ValueError, KeyError, TypeError):
        return _Place()
