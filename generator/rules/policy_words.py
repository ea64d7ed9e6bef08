"""What Slurm accepts as a name, a time and an amount of resources in the scheduling policy."""

from __future__ import annotations

import re

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}", re.ASCII)
"""Of accounts, users and QoS: slurmdbd keeps them in lower case, and our rows and commands need no quotes for these."""
PARTITION = re.compile(r"[a-z][a-z0-9_-]{0,30}", re.ASCII)
RESERVATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", re.ASCII)
USER_MAX = 32
"""Longest login name on Linux. Source: useradd(8)"""
TRES = ("billing", "cpu", "energy", "mem", "node", "pages", "vmem")
_AMOUNT = re.compile(r"\d{1,15}", re.ASCII)
_MEMORY = re.compile(r"\d{1,12}[KMGTP]?", re.ASCII)
_TYPE = re.compile(r"(?:gres|license|ic|bb|fs)/[a-z0-9][\w.:-]{0,62}", re.ASCII)
_START = re.compile(r"\d{4}-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d))?", re.ASCII)


def tres_fault(text: str) -> str | None:
    """Why a text is no list of resources as `cpu=64,mem=512G,gres/gpu=8`; None when it is one.

    Source: https://slurm.schedmd.com/tres.html
    """
    seen: set[str] = set()
    for part in text.split(","):
        name, sign, amount = part.partition("=")
        if not sign:
            return f"has no amount in '{part[:40]}'" if part else "has an empty part"
        if name in seen:
            return f"names {name} twice"
        seen.add(name)
        if not (name in TRES or _TYPE.fullmatch(name)):
            return f"has an unknown resource '{name[:40]}'"
        if not (_MEMORY if name in ("mem", "vmem") else _AMOUNT).fullmatch(amount):
            return f"has no whole number after {name}="
    return None


def start_fault(text: str) -> bool:
    """Whether a text is no moment `YYYY-MM-DDTHH:MM[:SS]`."""
    found = _START.fullmatch(text)
    if found is None:
        return True
    month, day, hour, minute, second = (int(part or 0) for part in found.groups())
    return not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60)
