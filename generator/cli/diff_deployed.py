"""`cycleforge diff --deployed`."""

from __future__ import annotations

import os
from argparse import Namespace

from ..errors import OK
from . import azure, common


def run(args: Namespace) -> int:
    """Ask Azure what it has, and compare."""
    from .built import built

    found = built(args)
    plan = found.plan
    if args.print:
        from ..azure import az_lines

        lines = [*az_lines.beginning(plan), az_lines.recorded(plan), az_lines.deployment(plan, "what-if")]
        common.emit("\n".join(lines))
        return OK
    from ..azure import deployment, drift, what_if_request
    from ..azure.reader import Reader

    with azure.refusals(plan):
        reader = Reader(azure.session_of(plan, args))
        try:
            last = deployment.last(plan, reader)
            answer = what_if_request.what_if(plan, reader, found.folder, os.environ)
        finally:
            reader.close()
    result = drift.drift(plan, answer, last, deployment.content_of(found.folder))
    if args.json:
        common.emit_json({"ok": True, "deployment": plan.deployment_name, **drift.as_json(result)})
    else:
        common.emit(drift.text(result))
    return OK
