"""`cycleforge what-if`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import azure, common

DESCRIPTION = """\
Ask Azure what deploying the built folder would do, and show it as a short list: what is deleted, changed (old → new)
and created, and what Azure cannot say. Nothing is changed.

What Azure is known to show although it does not happen is folded, and said at the end; that storage, a disk or a
database is deleted is never folded. Secrets are not needed and are not sent.

The exit code is 0 whether or not anything would change, and 4 when Azure refuses or cannot be reached.
"""


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_arguments(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    found = common.built(args)
    if args.print:
        from ..azure import az_lines

        common.emit("\n".join([*az_lines.beginning(found.plan), az_lines.deployment(found.plan, "what-if")]))
        return OK
    from ..azure import what_if_text
    from ..operate.what_if import what_if

    answer = what_if(found, args.subscription)
    if args.json:
        common.emit_json({"ok": True, "deployment": found.plan.deployment_name, **what_if_text.as_json(answer)})
    else:
        common.emit(what_if_text.text(answer))
    return OK
