"""How ssh reaches a deployment: what `ssh_config` and `ssh_hosts` of the built folder say, and `connect` keeps to."""

from __future__ import annotations

import re
import shlex

from msgspec import Struct

from .deployment import Plan
from .nodes import NodeArrayPlan

SERVER = "server"
ROLES = (SERVER, "scheduler", "login")
"""Hosts that every deployment with a cluster has, whatever they are called there."""


class SshPlan(Struct, frozen=True):
    """The contents of both files."""

    file_names: tuple[str, str] = ("ssh_config", "ssh_hosts")
    """For `ssh -F`, which takes any name of a node, and for an `Include`, whose names begin with the deployment's."""
    user: str = ""
    proxy: str = ""
    """The command whose standard input and output are the connection."""
    known_hosts: str = ""
    """Of this deployment alone, in the user's home; only the server's keys are kept."""
    key_alias: str = ""
    """Under which name they are kept: the server's address may be another one tomorrow."""
    own_options: str = ""
    """What the user may write, such as `IdentityFile`; no file is no fault."""
    aliases: tuple[str, ...] = ()
    """Patterns of the names that begin with the deployment's, the server's first."""


def ssh_plan(plan: Plan) -> SshPlan:
    """What is decided; no path of the machine that builds is in it."""
    stem = f"~/.ssh/cycleforge-{plan.name}"
    roles = ROLES if plan.slurm else ROLES[:1]
    prefix = f"{plan.name}-"
    nodes = [f"{each}*" for each in node_stems(plan)]
    names = [*roles, *(["login-*"] if plan.slurm else []), *nodes]
    return SshPlan(
        user=plan.admin.username,
        proxy=f"cycleforge connect {shlex.quote(plan.definition_name).replace('%', '%%')} %n --stdio",
        known_hosts=f"{stem}.known_hosts",
        key_alias=f"cycleforge-{plan.name}-{SERVER}",
        own_options=f"{stem}.config",
        aliases=(*(f"{prefix}{each}" for each in names), *(each for each in nodes if each.startswith(prefix))),
    )


def node_stems(plan: Plan) -> tuple[str, ...]:
    """What the names of nodes begin with, up to their number."""
    arrays = plan.slurm.node_arrays if plan.slurm else ()
    return tuple(dict.fromkeys(stem for array in arrays for stem in _stems(array)))


def host_of(plan: Plan, word: str) -> str:
    """The host that a name on the command line of ssh means: it may begin with the deployment's name.

    A node may be called `lab-hpc-1` in a deployment `lab`, so a name is taken as it is wherever it is one.
    """
    if word.startswith(node_stems(plan)):
        return word
    rest = word.removeprefix(f"{plan.name}-")
    is_alias = rest in ROLES or rest.startswith(("login-", *node_stems(plan)))
    return rest if is_alias else word


def _stems(array: NodeArrayPlan) -> list[str]:
    sizes = [size.name_start for size in array.sizes]
    return sizes or [re.sub(r"(\[1-[0-9]+\]|1)$", "", array.host_list)]
