"""A new user at a shell, signed in to the stand-in of Azure, in an empty folder."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from generator.files import assets
from tests.bed.arm import running_arm
from tests.bed.cyclecloud import PASSWORD
from tests.bed.limits import COMMAND_S
from tests.bed.plans import KEY
from tests.tutorial.machines import machines_of
from tests.tutorial.shown import shown

SETTINGS = {
    "CYCLECLOUD_SSH_PUBLIC_KEY": KEY,
    "CYCLECLOUD_ADMIN_PASSWORD": PASSWORD,
    "LANG": "C.UTF-8",
    "NO_COLOR": "1",
}
DAY = datetime.datetime(2026, 11, 2, 9, 30, tzinfo=datetime.UTC)
"""When all of it happens."""
QUOTA_VCPUS = 100
"""Of the nodes' family: enough for the deployment of the page, and what a new subscription has."""
IMPATIENT = """\
#!{}
# The command as it is installed, which does not pause between two looks, and does one thing after the other.
from generator.azure import deployment, reader
from generator.azure.deletion import carry_out
from generator.cli import process

deployment.PAUSE_S = carry_out.PAUSE_S = 0
reader.CONNECTIONS = 1
process()
"""
IN_AZURE = ("init", "validate", "plan", "build", "preflight", "what-if", "deploy", "diff", "delete")
"""Verbs that do not use the cluster; the others change nothing in Azure."""


@contextmanager
def at_a_shell(folder: Path) -> Iterator[Callable[[str], str]]:
    """What a command prints, on standard output and error, until the user has gone; `folder` is empty before."""
    here = folder / "here"
    here.mkdir()
    with running_arm(folder) as arm, machines_of(folder / "machines", arm) as machines:
        program = machines.programs / "cycleforge"
        program.write_text(IMPATIENT.format(sys.executable))
        program.chmod(0o755)
        environment = {**SETTINGS, **arm.environment, **machines.environment, "PYTHONPATH": str(assets.root())}
        environment["PATH"] = f"{machines.programs}:{arm.path}"
        arm.state.pace, arm.state.began_at = 5, DAY
        usages = arm.state.documents["/providers/microsoft.compute/locations/southcentralus/usages"]
        assert isinstance(usages, list)
        for usage in usages:
            if usage["name"]["value"].lower() == "standarddadsv5family":
                usage["limit"] = QUOTA_VCPUS

        def typed(command: str) -> str:
            machines.minutes_pass()
            changes = len(arm.changes)
            done = subprocess.run(
                machines.words("bash", "-c", command), cwd=here, env=environment, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, timeout=COMMAND_S, check=False,
            )  # fmt: skip
            if command.partition(" ")[0] == "cycleforge" and command.split()[1] not in IN_AZURE:
                assert len(arm.changes) == changes, f"Azure was only asked by {command}"
            return shown(done.stdout)

        yield typed
        assert arm.refused == []
        assert machines.tunnels() == [], "no tunnel is left"
