"""`cycleforge preflight` beside the requests that must wait for one another, with Azure 300 ms away.

The stand-in of Azure Resource Manager answers each request after 300 ms, over TLS, with a list of VM sizes as long as
that of a large region. A part of preflight needs three answers one after the other at most; everything else happens at
the same time. Start-up and the token are measured apart. The memory is that of the whole command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.table import Limit, Ratio
from benchmarks.upload import MEMORY_LIMIT_MIB, PEAK
from tests.bed.arm import Arm, running_arm
from tests.bed.arm.exchange import Asked
from tests.bed.arm.offers import SKUS
from tests.bed.plans import KEY

NAME = "gpt3-h100"
ANSWER_S, CHAIN, LIMIT = 0.3, 3, 1.5
SIZES = 1500
"""VM sizes, disks and others that the list of a large region has."""
ROUNDS = 3
_TIMED = """\
import json, os, sys, time
from pathlib import Path
from generator.azure.check import Local
from generator.azure.preflight import preflight
from generator.azure.reader import Reader
from generator.operate.asking import session_of
from generator.operate.reading import read
plan = read([sys.argv[1]])[0].plan
reader = Reader(session_of(plan))
reader.session.get_token()
begun = time.monotonic()
report = preflight(plan, reader, Local(Path(sys.argv[2]) / plan.name, os.environ))
print(json.dumps([time.monotonic() - begun, [each.message for each in report.findings]]))
"""


class Answered(list[Asked]):
    """Requests, without those for tokens, and when each was answered."""

    def __init__(self) -> None:
        super().__init__()
        self.moments: list[float] = []

    def append(self, asked: Asked) -> None:
        """One more."""
        self.moments.append(time.monotonic())
        super().append(asked)


def preflight_figures() -> Iterator[Ratio | Limit]:
    """Time beside the longest chain, the length of the chain, and the memory."""
    with tempfile.TemporaryDirectory(prefix="preflight.") as name, running_arm(Path(name)) as arm:
        environment = _place(arm, Path(name))
        times, chains = zip(*(_timed(arm, environment, name) for _ in range(ROUNDS)), strict=True)
        chain = min(chains)
        label = f"preflight of {NAME}"
        yield Limit(f"{label}: answers waited for one after the other", float(chain), "answers", float(CHAIN))
        yield Ratio(label, min(times), f"{chain} answers of {ANSWER_S * 1000:.0f} ms", chain * ANSWER_S, LIMIT)
        yield Limit(f"memory of {label}", _peak_mib(environment, name), "MiB", MEMORY_LIMIT_MIB)


def _place(arm: Arm, folder: Path) -> dict[str, str]:
    """A built folder, a `bicep`, and the environment of someone who is signed in."""
    _answer_at_once(arm.bicep)
    listed: Any = arm.state.documents[SKUS]
    first = listed[0]
    listed += [first | {"name": f"Standard_Other{number}"} for number in range(SIZES - len(listed))]
    environment = dict(os.environ) | arm.environment | {"CYCLECLOUD_SSH_PUBLIC_KEY": KEY, "PATH": arm.path}
    arm.answer_s = ANSWER_S
    build = [sys.executable, "-m", "generator", "build", NAME, "--out", str(folder / "output")]
    subprocess.run(build, env=environment, capture_output=True, check=True, timeout=120)
    return environment


def _answer_at_once(bicep: Path) -> None:
    """An empty template: how long compiler and validation take is not ours, and theirs here is not Azure's."""
    schema = "https://schema.management.azure.com/schemas/2018-05-01/subscriptionDeploymentTemplate.json#"
    names = ("adminPassword", "databasePassword")
    parameters = {name: {"type": "securestring", "defaultValue": ""} for name in names}
    template = {"$schema": schema, "contentVersion": "1.0.0.0", "parameters": parameters, "resources": []}
    both = {"parametersJson": json.dumps({"parameters": {}}), "templateJson": json.dumps(template)}
    bicep.with_name("answer.json").write_text(json.dumps(both))
    version = "[ \"$1\" = --version ] && exec echo 'Bicep CLI version 0.46.1 (abcdef0123)'"
    bicep.write_text(f"#!/bin/sh\n{version}\nexec cat '{bicep.with_name('answer.json')}'\n")


def _timed(arm: Arm, environment: dict[str, str], folder: str) -> tuple[float, int]:
    """Seconds of one preflight, and its longest chain of answers that waited for one another."""
    arm.requests = answered = Answered()
    words = [sys.executable, "-c", _TIMED, NAME, f"{folder}/output"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=120)
    seconds, findings = json.loads(done.stdout)
    if findings or arm.refused:
        raise RuntimeError(f"a healthy subscription has findings: {findings} {arm.refused}")
    return seconds, chain_of(answered.moments)


def chain_of(moments: list[float]) -> int:
    """How many answers fit one after the other, each as long after the one before as an answer takes."""
    length, free = 0, 0.0
    for moment in sorted(moments):
        if moment >= free:
            length, free = length + 1, moment + ANSWER_S
    return length


def _peak_mib(environment: dict[str, str], folder: str) -> float:
    """Of the whole command."""
    words = [sys.executable, "-m", "generator", "preflight", NAME, "--out", f"{folder}/output"]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *words], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    return int(done.stdout) / 1024
