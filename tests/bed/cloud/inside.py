"""Commands in the namespaces of an emulated machine, with as few processes around them as it takes: tests ask a lot."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

from tests.bed.machines.overlay import PATH

ENVIRONMENT = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": "/root"}
NAMESPACES = {"net": "net", "mount": "mnt", "uts": "uts", "pid": "pid_for_children"}
"""By option of nsenter: the file of a process that has made them, which itself stays among the host's processes."""
TIME_IS_OVER = 124
"""As `timeout` ends."""
GRACE_S = 5.0


def bash(script: str, *arguments: str) -> list[str]:
    return ["bash", "-c", f"set -o pipefail; {script}", "bash", *arguments]


def inside(
    holder: int, command: Sequence[str], timeout_s: float, environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    """Run a program in the namespaces that a process of the host holds. Code 124: it did not end in time."""
    spaces = (f"--{kind}=/proc/{holder}/ns/{file}" for kind, file in NAMESPACES.items())
    # Its own group, so that what it has started ends with it.
    with subprocess.Popen(
        ["nsenter", *spaces, "--", *command], env=environment, start_new_session=True, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        for limit_s, at_its_end in ((timeout_s, signal.SIGTERM), (GRACE_S, signal.SIGKILL), (None, None)):
            try:
                said, errors = process.communicate(timeout=limit_s)
                break
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, at_its_end or signal.SIGKILL)
    code = process.returncode if at_its_end is signal.SIGTERM else TIME_IS_OVER
    return subprocess.CompletedProcess(command, code, said, errors)
