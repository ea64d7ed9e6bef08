"""`cycleforge support`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import OK, ProblemsFound
from . import cluster, common

DESCRIPTION = """\
Collect what someone who helps needs, in one archive: versions, plan, operations of the deployment, first boot, states
and events of the cluster, what Slurm says, logs, results of health checks. Changes nothing.

Passwords, keys, tokens and signatures are taken out of every file; names and addresses stay. What could not be had is
named in the archive's index, with the reason, and the exit code is 1 then. Of each log it takes the last 2,000 lines,
1 MB at most; the whole has 64 MB at most before it is packed. Look through it before you send it.
"""


def add_arguments(parser: ArgumentParser) -> None:
    cluster.add_arguments(parser, changes=False)
    parser.add_argument("--into", metavar="FILE", type=Path, help="the archive (default: NAME-support.tar.gz)")
    parser.add_argument(
        "--node", metavar="NODE", action="append", default=[], help="logs of this node as well; failed ones are taken"
    )


def run(args: Namespace) -> int:
    from ..operate import support
    from ..words.counts import counted

    with cluster.at(args) as place:
        if args.print:
            common.emit("\n".join(support.lines(place)))
            return OK
        target = args.into or Path(f"{place.plan.name}-support.tar.gz")
        _must_be_free(target)
        bundle = support.bundle_of(place, args.node)
    _write(target, bundle.content())
    for name, why in sorted(bundle.missing.items()):
        cluster.say(f"not in it: {name}: {why}")
    common.emit(f"{target}: {counted(len(bundle.names), 'file')}; look through it before you send it")
    return ProblemsFound.exit_code if bundle.missing else OK


def _must_be_free(target: Path) -> None:
    from ..errors import CannotWrite

    if target.exists() or target.is_symlink():
        raise CannotWrite(f"{target} is there already", "--into names another file")


def _write(target: Path, content: bytes) -> None:
    """For its owner alone, as a whole or not at all."""
    import os

    from ..disk import file
    from ..disk.reasons import refusing

    with refusing(f"cannot write {target}", "--into names another file"):
        before = os.umask(0o077)
        try:
            file.write(target, content, mode=0o600, replace=False)
        finally:
            os.umask(before)
