"""The logs of a server, a scheduler and a node: where they are, and how their ends are read.

Sources: https://learn.microsoft.com/azure/cyclecloud/common-issues (jetpack, cluster-init), Azure/cyclecloud-slurm
azure-slurm-install (azslurm, slurmctld, slurmd), https://github.com/mej/nhc (nhc.log), bootstrap/ and projects/ here.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from .command_line import NotDone
from .shell import Runs

Role = Literal["server", "scheduler", "node"]
HEALTH = "/sched/cycleforge-health"
MOST_BYTES = 1_000_000
"""Of one file: what a program writes in a loop must not fill a disk here."""
CUT = "[the beginning was cut off]"
_LIMIT_S = 180.0
_JETPACK = (
    "/opt/cycle/jetpack/logs/jetpack.log",
    "/opt/cycle/jetpack/logs/chef-client.log",
    "/opt/cycle/jetpack/logs/cluster-init/*/*/scripts/*.out",
    "/var/log/azure-slurm-install.log",
)
PATHS: dict[Role, tuple[str, ...]] = {
    "server": (
        "/var/log/cycleforge/bootstrap.log",
        "/opt/cycle_server/logs/cycle_server.log",
        "/opt/cycle_server/logs/catalina.err",
    ),
    "scheduler": (
        "/var/log/slurmctld/slurmctld.log",
        "/opt/azurehpc/slurm/logs/*.log",
        *_JETPACK,
    ),
    "node": ("/var/log/slurmd/slurmd.log", "/var/log/nhc.log", "/opt/healthagent/*.log", *_JETPACK),
}


class Log(Struct, frozen=True):
    path: str
    text: str


def role_of(host: str) -> Role:
    """What a host is, from its name in `ssh_config`; login nodes are nodes."""
    return "server" if host == "server" else "scheduler" if host == "scheduler" else "node"


def line(role: Role, lines: int) -> str:
    """What a person types to see the ends of all of them. Only root's shell finds what has a pattern for a name."""
    tail = f"tail --lines={lines} {' '.join(PATHS[role])}"
    return f'sudo sh -c "{tail}"' if "*" in tail else f"sudo {tail}"


def command(paths: Sequence[str], lines: int, most: int = MOST_BYTES) -> str:
    """For a POSIX shell. Only root may list some of the folders, so root's shell finds the files."""
    inner = (
        f'for file in {" ".join(paths)}; do if [ -f "$file" ]; then printf \'\\036%s\\n\' "$file"; '
        f'tail -n {lines} "$file" | tail -c {most}; printf "\\n"; fi; done'
    )
    return f"sudo -n sh -c {shlex.quote(inner)}"


def follow_command(paths: Sequence[str], lines: int) -> str:
    """Their ends, and what is added; files that are created later are not seen."""
    inner = (
        f'set --; for file in {" ".join(paths)}; do if [ -f "$file" ]; then set -- "$@" "$file"; fi; done; '
        f'[ "$#" -gt 0 ] || exit 1; exec tail -n {lines} -F -- "$@"'
    )
    return f"sudo -n sh -c {shlex.quote(inner)}"


def read(host: Runs, paths: Sequence[str], lines: int, most: int = MOST_BYTES) -> tuple[Log, ...]:
    """The ends of those that are there; raises NotDone and Unreachable."""
    ran = host.run(command(paths, lines, most), limit_s=_LIMIT_S)
    if ran.status != 0 and not ran.out:
        raise NotDone(f"the logs cannot be read: {' '.join(ran.err.split())[:300] or f'status {ran.status}'}")
    found = []
    for part in ran.out.split("\036")[1:]:
        path, _, text = part.partition("\n")
        if len(text.encode()) > most:
            # The first line was cut: a name before a secret may be gone, and what has no name is not found.
            text = f"{CUT}\n{text.partition(chr(10))[2]}"
        found.append(Log(path, text.rstrip("\n")))
    return tuple(found)
