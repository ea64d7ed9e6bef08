"""`cycleforge what-if`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import common

DESCRIPTION = """\
Ask Azure what deploying the built folder would do, and show it as a short list: what is deleted, changed (old → new)
and created, and what Azure cannot say. Nothing is changed.

Changes that Azure is known to report although they do not happen are only counted, at the end. The deletion of storage,
a disk or a database is always shown. Secrets are not needed and are not sent.

The exit code is 0 whether or not anything would change, and 4 when Azure refuses or cannot be reached.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--out", "--all", "--subscription", "--print")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    found = common.built(args)
    if args.print:
        from ..azure import az_lines

        common.emit("\n".join([*az_lines.beginning(found.plan), az_lines.deployment(found.plan, "what-if")]))
        return OK
    from ..azure import what_if_text
    from ..operate.questions import what_if

    answer = what_if(found, args.subscription)
    if args.json:
        common.emit_json({"ok": True, "deployment": found.plan.deployment_name, **what_if_text.as_json(answer)})
    else:
        common.emit(what_if_text.text(answer))
    return OK
