"""Which section of `operations.md` says how a change is made that a deployment alone does not make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from .diff import ABSENT, Change
from .refusals import NEW_DATABASE, NO_LONGER, UPGRADE, judge

NEW_SERVER = "A new server"
PROCEDURES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("admin", "ssh_public_key"), "Another SSH key"),
    (("admin",), NEW_SERVER),
    (("server", "existing", "release"), UPGRADE),
    (("server", "existing"), "A second deployment"),
    (("server", "jumpbox", "vm_size"), "Another size of a VM"),
    (("server", "jumpbox"), "A new jumpbox"),
    (("server", "vm_size"), "Another size of a VM"),
    (("server", "release"), UPGRADE),
    (("server",), NEW_SERVER),
    (("security", "encryption_at_host"), "Encryption at host"),
    (("security", "infrastructure_encryption"), "A new locker"),
    (("security", "disk_encryption_set_id"), NEW_SERVER),
    (("storage", "locker"), "A new locker"),
    (("storage",), "A new file system"),
    (("slurm", "accounting"), NEW_DATABASE),
    (("slurm",), "A new cluster"),
    (("network",), "A second deployment"),
    (("azure",), "A second deployment"),
    (("name",), "A second deployment"),
    (("location",), "A second deployment"),
)
"""Beginning of a key of the definition, or of a derived value → title of the section; the first that fits."""

_ALWAYS = frozenset(
    {
        ("admin", "ssh_public_key"),
        ("server", "existing", "release"),
        ("server", "jumpbox", "vm_size"),
        ("server", "vm_size"),
        ("server", "release"),
        ("security", "encryption_at_host"),
    }
)
"""Those of these keys whose section a change needs whatever it costs; the others tell how to recreate."""
_MAY_STAY = (
    ("storage", "mounts"),
    ("storage", "home"),
    ("server", "jumpbox"),
    ("slurm", "accounting"),
    ("monitoring",),
)
"""What a deployment leaves in Azure when the definition does not name it any more."""


class Step(Struct, frozen=True):
    """A section, and the settings whose change needs it."""

    title: str
    settings: tuple[str, ...]


def procedure_of(change: Change, effective: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> str | None:
    """Title of the section that a change needs; None where building and deploying again is all.

    `effective` is the new plan, `before` the one that was built.
    """
    judged = judge(change, before or {}, effective)
    if judged is not None:
        return judged.title
    names = tuple(step for step in change.path[1:] if isinstance(step, str))
    if change.path[:1] == ("files",):
        return NEW_SERVER
    if change.new in (None, ABSENT) and any(names[: len(key)] == key for key in _MAY_STAY):
        return NO_LONGER
    key, title = next(((key, title) for key, title in PROCEDURES if names[: len(key)] == key), ((), None))
    if key not in _ALWAYS and change.cost != "recreate":
        return None
    home = effective.get("definition", {}).get("storage", {}).get("home") or {}
    if names[:2] == ("storage", "home") and home.get("type") == "nfs":
        return "A new cluster"  # the disk of its scheduler
    return title


def steps(
    changes: Sequence[Change], effective: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> tuple[Step, ...]:
    """The sections that these changes need, each once, in the order of the changes."""
    found: dict[str, list[str]] = {}
    for change in changes:
        title = procedure_of(change, effective, before)
        if title is not None:
            found.setdefault(title, []).append(
                change.where.split(".", 1)[-1] if change.path[0] != "files" else change.where
            )
    return tuple(Step(title, tuple(dict.fromkeys(settings))) for title, settings in found.items())
