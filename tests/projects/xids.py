"""The two programs that read XIDs, called as checks-xid.sh calls them, and lines of the kernel's log.

Sample lines are those of leptonai/gpud (components/accelerator/nvidia/xid and sxid) and of NVIDIA/NVSentinel's issues.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from typing import NamedTuple

from generator.files import assets
from tests.bed import kernel_log

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
T0 = 1_795_000_000
"""The time of a line that has none of its own, epoch seconds."""
AWKS = sorted({os.path.realpath(path) for name in ("mawk", "gawk", "awk") if (path := shutil.which(name))})
"""Ubuntu's awk is mawk, that of EL is gawk."""


class Finding(NamedTuple):
    """One line of what is wrong."""

    cure: str
    kind: str
    code: int
    name: str
    address: str
    gpu: str
    times: int
    first: int
    note: str


class Judged(NamedTuple):
    """What a run says, and what the next one gets."""

    findings: list[Finding]
    programs: list[tuple[int, str, int]]
    """Code, address, how often."""
    needs: set[str]
    past: str


def log(*lines: str, at: int = T0) -> str:
    """`journalctl --dmesg --output=json`; a message may have a time of its own before it, `+SECONDS message`."""
    text = ""
    for line in lines:
        moment, message = at, line
        if line.startswith("+"):
            after, _, message = line.partition(" ")
            moment += int(after)
        text += kernel_log.record(message, moment) + "\n"
    return text


def xid(code: int | str, rest: str = "pid=7, name=python3, x", bus: int = 1) -> str:
    """One XID of the GPU at this bus."""
    return f"NVRM: Xid (PCI:0000:{bus:02x}:00): {code}, {rest}"


def read(text: str, awk: str = AWKS[0], since: int = 0, btime: int = 0, past: str = "",
         devices: str | None = None) -> str:  # fmt: skip
    """What xids-read.awk makes of a log, after what earlier runs have noted; all addresses in it are NVIDIA's."""
    if devices is None:
        shown = re.sub(r"\[([0-9,]+)\]", lambda each: bytes(map(int, each[1].split(","))).decode("latin-1"), text)
        found = re.findall(r"(?<![0-9a-f])0*([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2})(?![0-9a-f])", shown, re.IGNORECASE)
        devices = " ".join(sorted({address.lower() for address in found}))
    command = [awk, "-v", f"btime={btime}", "-v", f"since={since}", "-v", f"devices={devices}",
               "-f", "kernel-log.awk", "-f", "xids-read.awk", "xids.tsv", "-"]  # fmt: skip
    lines = _run(command, past + text).splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(("said", "stray")))


def judge(events: str, generation: str = "h100", *, awk: str = AWKS[0], boot: str = "b1", now: int = T0 + 60,
          since: int = 0, look_back_h: int = 24, **more: str | int) -> Judged:  # fmt: skip
    """What xids-judge.awk makes of events and what is known beside them."""
    values = {"generation": generation, "boot": boot, "now": now, "since": since, "look_back_h": look_back_h, **more}
    variables = [word for key, value in values.items() for word in ("-v", f"{key}={value}")]
    rows = [
        line.split("\t")
        for line in _run([awk, *variables, "-f", "xids-judge.awk", "xids.tsv", "-"], events).splitlines()
    ]
    return Judged(
        [Finding(r[1], r[2], int(r[3]), r[4], r[5], r[7], int(r[8]), int(r[9]), r[10]) for r in rows if r[0] == "find"],
        [(int(r[1]), r[2], int(r[4])) for r in rows if r[0] == "app"],
        {r[1] for r in rows if r[0] == "need"},
        "".join("\t".join(row) + "\n" for row in rows if row[0] == "past"),
    )


def found(*lines: str, generation: str = "h100") -> dict[str, str]:
    """Cure by `CODE` or `SXid CODE`, of one log."""
    return cures(judge(read(log(*lines)), generation).findings)


def cures(findings: Iterable[Finding]) -> dict[str, str]:
    """Cure by code."""
    return {("SXid " if each.kind == "sxid" else "") + str(each.code): each.cure for each in findings}


def _run(command: list[str], text: str) -> str:
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}
    ran = subprocess.run(command, input=text.encode("utf-8", "surrogateescape"), capture_output=True, cwd=FILES,
                         env=environment, check=False, timeout=60)  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, b""), ran.stderr
    return ran.stdout.decode("ascii")
