"""A partition proved by prove.sh, which runs on the scheduler by itself: copy, start once, follow, report."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from ..cyclecloud.jobs.proofs import RUNNING, Proofs
from ..errors import AzureRefused, CannotRead, ProblemsFound
from ..pages.shell import write
from ..validation.assess import assess
from ..validation.gather import gather
from ..validation.page import report_page
from ..words.terminal import printable
from . import way
from .built import Built, Tell, looked_for
from .cluster import Say, silent
from .reading import Target
from .run import Show, connection_of, fetched, whoami


class Proving(Struct, frozen=True):
    proofs: Proofs
    options: Sequence[str]
    must_start: bool
    """False when it runs, or has ended and its result was not shown."""
    plan: tuple[str, ...] | None = None
    """What would run, and what that may cost; None where the user has agreed to it before."""


def look(target: Target, options: Sequence[str], *, say: Say = silent, tell: Tell = silent) -> Proving:
    """Look whether prove.sh runs, else ask for its plan. Raises ProblemsFound when it runs with other options."""
    found = _built(target, tell)
    proofs = Proofs(connection_of(found), found.folder / "jobs")
    proof = proofs.look()
    same = proof.options == " ".join(options)
    if proof.status == RUNNING:
        say(f"{proof.who} started it with `{proof.options}`, and it is running; this command follows it")
        if not same:
            raise ProblemsFound(
                f"prove.sh runs with other options: {proof.options}",
                "wait for its end, or follow it with the same options",
            )
        return Proving(proofs, options, must_start=False)
    if same and proof.exit_status is not None and not proof.is_told:
        say(f"{proof.who} started it, and it has ended: this is its result")
        return Proving(proofs, options, must_start=False)
    if same and proof.status and not proof.is_told:
        say(f"{proof.who} started it, and it was interrupted; it continues where it stopped")
        return Proving(proofs, options, must_start=True)
    return Proving(proofs, options, must_start=True, plan=proofs.plan(options, is_there=bool(proof.name)).plan)


def follow(proving: Proving, *, say: Say = silent, show: Show = silent) -> int:
    """Start prove.sh if it must be started, and follow it. Returns its exit status.

    Its output begins with its plan; lines of it that the user has seen are not shown again.
    """
    proofs, left = proving.proofs, list(proving.plan or ())
    if proving.must_start:
        proofs.start(proving.options, whoami())
    try:
        for line in proofs.follow():
            if left and line.kind == "log" and printable(line.words[-1].expandtabs()) == left[0]:
                del left[0]
                continue
            left = [] if line.kind == "log" else left
            show(line)
    except KeyboardInterrupt:
        say("\nprove.sh continues; run the same command to reattach")
        raise
    status = proofs.look().exit_status
    if status is None:
        raise AzureRefused("prove.sh was stopped before it had ended", "run the same command to continue")
    return status


def report(proving: Proving, page: Path, fetch: Path | None, *, say: Say = silent) -> bool:
    """Write the page of all its runs, and keep their records in `fetch`. Returns False when there are none."""
    with tempfile.TemporaryDirectory(prefix="cycleforge-") as scratch:
        records = fetch if fetch is not None else Path(scratch, "runs")
        try:
            fetched(proving.proofs.fetch, records, say)
        except AzureRefused as none:
            # Nothing has run: prove.sh has said why.
            say(f"no report: {none.message}")
            return False
        gathered = gather([str(records)])
        if not gathered.runs and not gathered.problems:
            say("no report: no job has left a record")
            return False
        write(page, report_page(assess(gathered), None), "--html")
    return True


def lines(target: Target, options: Sequence[str], *, tell: Tell = silent) -> list[str]:
    found = _built(target, tell)
    config = str(way.config_of(found))
    ssh, scp = shlex.join(["ssh", "-F", config]), shlex.join(["scp", "-r", "-F", config])
    words = shlex.join(["./prove.sh", *options])
    return [
        f"{scp} {shlex.quote(str(found.folder / 'jobs'))} scheduler:",
        f"{ssh} -t scheduler {shlex.quote(f'cd jobs && {words}')}",
        f"{scp} scheduler:jobs/runs .",
        "cycleforge report runs",
    ]


def _built(target: Target, tell: Tell) -> Built:
    found = looked_for(target, tell)
    script = found.folder / "jobs" / "prove.sh"
    if not script.is_file():
        raise CannotRead(f"{script} is not built", f"cycleforge build {target.name}")
    way.tell_ssh(found, target)
    return found
