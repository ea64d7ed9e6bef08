"""How releases of the CycleCloud CLI behave at the login, each with the public evidence for it.

Nobody publishes the CLI. Where a transcript, a log or a fixture shows a behaviour, the release has it; where nothing is
published, `UNKNOWN` plays every plausible one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal

Initialize = Literal["works", "refuses", "writes what it cannot read", "asks in spite of --batch"]
Absent = Literal["on stdout", "on stderr", "in other words"]


@dataclass(frozen=True)
class Release:
    """One behaviour of the CLI. `build` is what `--version` prints after `CycleCloud `."""

    build: str
    evidence: str
    initialize: Initialize = "works"
    reads_cycleserver: bool = True
    """Whether a `[cycleserver]` that someone else wrote with the CLI's own encoding is a login."""
    encodes: bool = True
    """Whether the Python beside the CLI has `cyclecli.util.encode`."""
    absent: Absent = "on stdout"
    """Where `account show` of an account that does not exist says so; its exit status is 0. Other words than those of
    the log of 8.2.2 are no proof of a login, so `unknown` does not play them: a test of its own does."""

    def __str__(self) -> str:
        return self.build


# `initialize --batch` without an account: "CycleCloud configuration stored in /root/.cycle/config.ini", exit 0; then
# `account show azure`: "Account not found", exit 0. The file's section is that of code derived from the 7.x CLI.
CLI_8_2_2 = Release(
    build="8.2.2-1902",
    evidence="Azure/HPC-Accelerator@7d46e65 scenarios/deeplearning, 07_cc_install_managed_identity.log; "
    "Azure/cyclecloud-scalelib@34aa308 ccbindings/legacy.py",
    reads_cycleserver=False,
)
CLI_8_4_2 = Release(
    build="8.4.2-3186",
    evidence="public transcript of a Slurm lab; az-hop's role cyclecloud runs `initialize --force --batch`",
    reads_cycleserver=False,
)
CLI_8_6_1 = Release(
    build="8.6.1-3248",
    evidence="public transcript; `cyclecloud --version` there; Azure/cyclecloud-slurm-workspace cyclecloud_install.py",
    reads_cycleserver=False,
)
CLI_8_10 = Release(
    build="8.10.0-1",
    evidence="gingi/cyclecloud-agent-plugin tests/python/test_official_cli.py: the official program accepts this file; "
    "whether `initialize` works there is not published, so it is the other way that must carry",
    initialize="refuses",
)
KNOWN = (CLI_8_2_2, CLI_8_4_2, CLI_8_6_1, CLI_8_10)


def unknown() -> Iterator[Release]:
    """Every plausible CLI of 8.9, of which nothing about the login is published."""
    evidence = "none: docs release-notes/8-9-*.md do not mention it"
    initializes: tuple[Initialize, ...] = (
        "works", "refuses", "writes what it cannot read", "asks in spite of --batch",
    )  # fmt: skip
    absents: tuple[Absent, ...] = ("on stdout", "on stderr")
    for initialize, reads, encodes, absent in product(initializes, (True, False), (True, False), absents):
        # Without the code there is no file to read: those two are one.
        if encodes or not reads:
            yield Release("8.9.1-0", evidence, initialize, reads, encodes, absent)


def works(release: Release) -> bool:
    return release.initialize == "works" or (release.reads_cycleserver and release.encodes)
