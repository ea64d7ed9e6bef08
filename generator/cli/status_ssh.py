"""The cluster as the server's own command line shows it, through ssh: no password is needed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from ..azure.standing import Unknown
from ..cyclecloud import nodes
from ..cyclecloud.cluster import Array, Cluster
from ..cyclecloud.command_line import CommandLine, NotDone
from ..cyclecloud.shell import Shell, Unreachable
from ..errors import CycleForgeError
from ..operate.built import Built
from ..plan.types import SlurmPlan
from ..words.terminal import printable
from .portal import QUIET
from .whereabouts import path_with_us


class Quiet(Shell):
    """Asks nobody for anything."""

    def __init__(self, config: Path, host: str, told: Mapping[str, str]) -> None:
        super().__init__(config, host)
        self.told = told

    def line(self, command: str = "", *, tty: bool = False) -> list[str]:
        """The words of ssh."""
        ssh, flag, config, *rest = super().line(command, tty=tty)
        return [ssh, flag, config, *QUIET, *rest]


def through_ssh(found: Built, slurm: SlurmPlan, told: Mapping[str, str]) -> Cluster | Unknown | None:
    """Ask it; None where the folder has no `ssh_config`."""
    config = found.folder / "ssh_config"
    if not config.is_file():
        return None
    path_with_us()
    server = Quiet(config, "server", told)
    try:
        seen = nodes.look(CommandLine(server, found.plan.admin.username, ""), slurm.cluster_name)
    except NotDone as not_done:
        return Unknown(printable(not_done.text), not_done.hint)
    except Unreachable as lost:
        return Unknown(printable(lost.reason), lost.hint)
    except CycleForgeError as error:
        return Unknown(error.message, error.hint)
    # The most nodes are the definition's: the command line does not say what the server allows.
    arrays = tuple(Array(array.name, array.max_nodes, ()) for array in slurm.node_arrays)
    return replace(seen, arrays=arrays)
