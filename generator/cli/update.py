"""`cycleforge update`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from functools import partial

from ..errors import OK, ProblemsFound
from ..operate.decisions import Updating
from . import azure, common, upload

DESCRIPTION = """\
Bring a cluster to what was built: upload newer projects, import template and parameters, apply changed partitions and
scheduling policy to Slurm, list the old nodes, and replace them as they become idle. Running nodes stay until then.

What `cycleforge deploy` has deployed already is not uploaded and imported again. Every step checks first and may be
repeated: if it is interrupted, run the same command to continue. The replacement runs on the scheduler, not here.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=True)
    parser.add_argument("--now", action="store_true", help="stop old nodes at once, with their jobs, after asking")
    parser.add_argument("--end-jobs", action="store_true", help="with --now --yes: also when jobs run on them")


def run(args: Namespace) -> int:
    from ..operate import update

    with azure.cluster_at(args) as place:
        if args.print:
            common.emit("\n".join(update.lines(place)))
            return OK
        place.must_be_current(args.name)
        update.must_have_right_secrets(place.plan)
        return OK if update.update(place, _Asks(args)) else ProblemsFound.exit_code


class _Asks(Updating):
    def __init__(self, args: Namespace) -> None:
        shown = Namespace(json=False, no_color=getattr(args, "no_color", False))
        # Versions never change, so only newer ones are sent.
        send = partial(upload.send, [args.name], args=shown)
        super().__init__(args.name, send, now=args.now, end_jobs=args.end_jobs)
        self.asks, self.secrets, self.done = not args.yes, azure.Typed(), common.emit

    def agrees(self, question: str) -> bool:
        return not self.asks or azure.confirmed(question, "give --yes")
