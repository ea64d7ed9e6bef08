"""CycleCloud is updated when someone decides it, not together with the rest of the system.

On Ubuntu the user data keeps unattended upgrades away from it. On AlmaLinux, the marketplace image's system, `dnf`
would take it along: a newer CycleCloud changes the Slurm project that nodes get at their next start, and the site is
down meanwhile. The exclusion is a line of dnf's own configuration, which `dnf-automatic` reads too.
"""

import re
from pathlib import Path
from typing import Optional

from .core import Context, write_atomically

PACKAGES = ("cyclecloud*", "jetpack8")
"""Source: Azure/cyclecloud-slurm-workspace bicep/install.sh (`yum --exclude=cyclecloud*`, `apt-mark hold`)."""

KEY = "excludepkgs"
_LINE = re.compile(r"^(excludepkgs|exclude)\s*=(.*)$")


def _configuration(context: Context) -> Optional[Path]:
    """The file of dnf, or of yum where that is another; None on other systems."""
    for name in ("etc/dnf/dnf.conf", "etc/yum.conf"):
        path = context.paths.root / name
        if path.exists():
            return path
    return None


def is_held(context: Context) -> bool:
    """The system has no dnf, or its configuration excludes the packages."""
    path = _configuration(context)
    return path is None or _held(path.read_text(encoding="utf-8")) == path.read_text(encoding="utf-8")


def hold(context: Context) -> None:
    """Exclude the packages; what else is excluded stays so."""
    path = _configuration(context)
    if path is not None:
        target = path.resolve()
        write_atomically(target, _held(path.read_text(encoding="utf-8")).encode("utf-8"), target.stat().st_mode & 0o777)


def _held(text: str) -> str:
    """The configuration with our packages among the excluded ones of its section [main]."""
    lines = text.splitlines()
    section, main = "", None
    for number, line in enumerate(lines):
        if line.startswith("["):
            section = line.strip()
            if section == "[main]":
                main = number
        found = _LINE.match(line)
        if found and section == "[main]":
            there = re.split(r"[,\s]+", found.group(2).strip())
            missing = [name for name in PACKAGES if name not in there]
            if missing:
                lines[number] = "{}={}".format(found.group(1), " ".join([name for name in there if name] + missing))
            return "\n".join(lines) + "\n"
    ours = "{}={}".format(KEY, " ".join(PACKAGES))
    if main is None:
        return "\n".join(["[main]", ours, *lines]) + "\n"
    return "\n".join([*lines[: main + 1], ours, *lines[main + 1 :]]) + "\n"
