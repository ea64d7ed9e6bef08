"""A partition proved by prove.sh: copied, started once, followed, reported. It runs on the scheduler by itself."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ..cyclecloud.jobs.proofs import RUNNING, Proofs
from ..errors import AzureRefused, CannotRead, ProblemsFound
from ..pages.shell import write
from ..records import record
from ..validation.assess import assess
from ..validation.gather import gather
from ..validation.page import report_page
from ..words.terminal import printable
from . import way, whereabouts
from .built import Built, Tell, looked_for
from .cluster import Say, silent
from .reading import Target
from .run import Show, connection_of, fetched, whoami


@record
class Proving:
    """prove.sh on a cluster, with these words, as it was looked at."""

    proofs: Proofs
    options: Sequence[str]
    must_start: bool
    """It neither runs nor waits to be told."""
    plan: tuple[str, ...] | None = None
    """What would run, and what that may cost; None where the user has agreed to it before."""


def look(target: Target, options: Sequence[str], *, say: Say = silent, tell: Tell = silent) -> Proving:
    """How it is, and where it has to be started, what it would do. Raises ProblemsFound where another one runs."""
    found = _built(target, tell)
    proofs = Proofs(connection_of(found), found.folder / "jobs")
    proof = proofs.look()
    same = proof.options == " ".join(options)
    if proof.status == RUNNING:
        say(f"{proof.who} has started it with `{proof.options}`, and it runs; this command follows it")
        if not same:
            raise ProblemsFound(
                f"prove.sh runs with other options: {proof.options}",
                "wait for its end, or follow it with the same options",
            )
        return Proving(proofs, options, must_start=False)
    if same and proof.exit_status is not None and not proof.is_told:
        say(f"{proof.who} has started it, and it has ended: this is its result")
        return Proving(proofs, options, must_start=False)
    if same and proof.status and not proof.is_told:
        say(f"{proof.who} has started it, and it was ended; it goes on where it was")
        return Proving(proofs, options, must_start=True)
    return Proving(proofs, options, must_start=True, plan=proofs.plan(options, is_there=bool(proof.name)).plan)


def follow(proving: Proving, *, say: Say = silent, show: Show = silent) -> int:
    """The exit status of prove.sh, which is started where it must be.

    It begins with its plan: lines that the user has seen are not shown again.
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
        say("\nprove.sh goes on; the same command attaches to it again")
        raise
    status = proofs.look().exit_status
    if status is None:
        raise AzureRefused("prove.sh was ended before its end", "the same command goes on where it was")
    return status


def report(proving: Proving, page: Path, fetch: Path | None, *, say: Say = silent) -> bool:
    """Write the page of all its runs, whose records `fetch` keeps; whether there are any."""
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
    whereabouts.tell(found, target)
    return found
