"""A shell in which `az` is Microsoft's, signed in to the stand-in of Azure as its service principal."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import azure_cli
from tests.bed.arm import Arm
from tests.bed.limits import COMMAND_S

LOGIN = 'az login --service-principal -u "$AZURE_CLIENT_ID" -p "$AZURE_CLIENT_SECRET" -t "$AZURE_TENANT_ID"'
ELSEWHERE = "azcliprod.blob.core.windows.net"
"""Where `az` looks for a newer list of commands; it goes on without."""
_SETTINGS = {
    # Source: https://learn.microsoft.com/cli/azure/azure-cli-configuration
    "AZURE_CORE_COLLECT_TELEMETRY": "no",
    "AZURE_CORE_SURVEY_MESSAGE": "no",
    "AZURE_BICEP_CHECK_VERSION": "false",
    "AZURE_BICEP_USE_BINARY_FROM_PATH": "true",
    "AZURE_EXTENSION_USE_DYNAMIC_INSTALL": "no",
}


@dataclass(frozen=True)
class Az:
    program: Path


@dataclass(frozen=True)
class Typed:
    line: str
    code: int
    out: str
    err: str
    asked: tuple[str, ...]
    """Method and path of what Azure was asked."""


@contextmanager
def served(folder: Path, arm: Arm) -> Iterator[Az]:
    """Until the block ends; the first one on a machine installs azure-cli. `folder` takes the program.

    Which cloud there is, `az` asks when it is loaded.
    """
    program = folder / "az"
    words = [*azure_cli.az()[:1], str(Path(__file__).with_name("served.py")), str(folder / "socket"), str(program)]
    environment = {**os.environ, **arm.environment, **_SETTINGS}
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield Az(program)
        finally:
            process.stdin.close()
            process.wait(COMMAND_S)


def typed(az: Az, arm: Arm, line: str, folder: Path) -> Typed:
    """Bash runs it in a folder, in the environment of this process; the stand-in must know all that is asked."""
    before = len(arm.requests)
    environment = {**os.environ, **_SETTINGS, "PATH": f"{az.program.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=COMMAND_S,
        stdin=subprocess.DEVNULL, check=False,
    )  # fmt: skip
    unknown = [each for each in arm.refused if ELSEWHERE not in each]
    assert unknown == [], f"{line}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return Typed(line, done.returncode, done.stdout, done.stderr, tuple(each.line for each in arm.requests[before:]))
