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
from tests.bed.limits import COMMAND_S
from tests.bed.plans import KEY

SETTINGS = {
    "CYCLECLOUD_SSH_PUBLIC_KEY": KEY,
    "CYCLECLOUD_ADMIN_PASSWORD": "not-a-Real-password-1",
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


@contextmanager
def at_a_shell(folder: Path) -> Iterator[Callable[[str], str]]:
    """What a command prints, on standard output and error, until the user has gone; `folder` is empty before."""
    here = folder / "here"
    here.mkdir()
    with running_arm(folder) as arm:
        program = folder / "programs/cycleforge"
        program.parent.mkdir()
        program.write_text(IMPATIENT.format(sys.executable))
        program.chmod(0o755)
        environment = {**SETTINGS, **arm.environment, "PYTHONPATH": str(assets.root())}
        environment["PATH"] = f"{program.parent}:{arm.path}"
        arm.state.pace, arm.state.began_at = 5, DAY
        usages = arm.state.documents["/providers/microsoft.compute/locations/southcentralus/usages"]
        assert isinstance(usages, list)
        for usage in usages:
            if usage["name"]["value"].lower() == "standarddadsv5family":
                usage["limit"] = QUOTA_VCPUS

        def typed(command: str) -> str:
            done = subprocess.run(
                ["bash", "-c", command], cwd=here, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, text=True, timeout=COMMAND_S, check=False,
            )  # fmt: skip
            return done.stdout

        yield typed
        assert arm.refused == []
