"""`cycleforge support`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import OK, ProblemsFound
from . import azure, common

DESCRIPTION = """\
Collect what is needed to diagnose a problem in one archive: versions, plan, operations of the deployment, first boot,
states and events of the cluster, what Slurm says, logs, results of health checks. Nothing is changed.

Passwords, keys, tokens and signatures are removed from every file; names and addresses stay. What could not be fetched
is listed in the archive's index with the reason, and the exit code is then 1. It holds the last 2,000 lines of each
log, at most 1 MB, and at most 64 MB before it is packed. Look through it before you send it.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=False)
    parser.add_argument("--into", metavar="FILE", type=Path, help="the archive (default: NAME-support.tar.gz)")
    parser.add_argument(
        "--node",
        metavar="NODE",
        action="append",
        default=[],
        help="also take the logs of this node; those of failed nodes are always taken",
    )


def run(args: Namespace) -> int:
    from ..operate import support
    from ..words.counts import counted

    with azure.cluster_at(args) as place:
        if args.print:
            common.emit("\n".join(support.lines(place)))
            return OK
        target = args.into or Path(f"{place.plan.name}-support.tar.gz")
        _must_be_free(target)
        bundle = support.bundle_of(place, args.node)
    _write(target, bundle.content())
    for name, why in sorted(bundle.missing.items()):
        common.say(f"missing: {name}: {why}")
    common.emit(f"{target}: {counted(len(bundle.names), 'file')}; look through it before you send it")
    return ProblemsFound.exit_code if bundle.missing else OK


def _must_be_free(target: Path) -> None:
    from ..errors import CannotWrite

    if target.exists() or target.is_symlink():
        raise CannotWrite(f"{target} already exists", "choose a different file with --into")


def _write(target: Path, content: bytes) -> None:
    """Write the archive for its owner alone, as a whole or not at all."""
    import os

    from ..disk import file
    from ..disk.reasons import refusing

    with refusing(f"cannot write {target}", "choose a different file with --into"):
        before = os.umask(0o077)
        try:
            file.write(target, content, mode=0o600, replace=False)
        finally:
            os.umask(before)
