"""`cycleforge diff`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from ..errors import OK, CannotRead
from ..operate import reading
from . import azure, common

if TYPE_CHECKING:
    from ..output.diff import Change

DESCRIPTION = """\
Compare a definition with the folder that was built from it: which settings and derived values change, from what to
what, and what each change costs a running cluster.

  in place      deploy again; nothing stops
  node restart  running nodes keep the old value until they are started again
  by hand       Azure refuses it until you have changed or deleted something; nothing else is lost
  recreate      the resource or the cluster must be deleted and created again

The column "reaches" says where a change arrives on a cluster that runs, once the new template is imported:

  running nodes                nothing has to start again; a change of partitions needs `azslurm scale`
  new nodes of PARTITION       nodes that start from now on; nodes.sh on the scheduler replaces the old ones when idle
  scheduler restart            lines of slurm.conf, which is written when a scheduler is installed; jobs go on
  cluster restart              scheduler and login nodes have it too: no job may run

Where building and deploying again is not all, the section of the folder's operations.md is named that says what is
lost, what to copy first and what to type.

With --deployed, Azure is asked instead: what is missing there, what someone changed, and what it has of this
deployment that the definition does not name any more. The folder must be what the definition says; build it first.

The exit code is 0 whether or not anything changes; `build --check` is for scripts.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    parser.add_argument(
        "--deployed", action="store_true", help="compare with what is deployed in Azure; changes nothing there"
    )
    azure.add_subscription(parser)
    azure.add_print(parser)
    common.add_out(parser)
    common.add_all(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Compare."""
    if args.deployed:
        from . import diff_deployed

        return diff_deployed.run(args)
    if args.print:
        raise CannotRead("without --deployed nothing is asked of Azure", "--print goes with --deployed")
    definition = reading.read([args.name])[0]
    common.tell(definition, args, quietly=True)
    plan = definition.plan
    from .. import pipeline
    from ..definition.pages.schema import cost_of
    from ..output import diff, procedures, reach, refusals
    from ..output import folder as output
    from ..render.bootstrap import CLOUD_INIT

    folder: Path = args.out / plan.name
    files = pipeline.render(plan, definition.folder)
    changes = output.check(folder, files)
    # Both sides go through the same YAML, so that the way of writing cannot look like a change.
    new = _plain(files[PurePosixPath("effective.yaml")].content, "effective.yaml")
    old = None if changes.is_new else _plain(_read(folder / "effective.yaml"), str(folder / "effective.yaml"))
    values: tuple[Change, ...] = ()
    if old is not None:
        found = diff.compare(old, new, partial(cost_of, effective=new, before=old))
        values = reach.with_reach(refusals.refine(found, old, new), old, new)
        values += diff.custom_data(changes, str(CLOUD_INIT)) if plan.server is not None else ()
    needed = procedures.steps(values, new, old)
    if args.json:
        common.emit_json(
            {
                "ok": True,
                "folder": str(folder),
                "is_new": changes.is_new,
                "worst": diff.worst(values),
                "changes": [
                    each.as_json()
                    | ({"procedure": title} if (title := procedures.procedure_of(each, new, old)) else {})
                    for each in values
                ],
                "files": {name: getattr(changes, name) for name in ("added", "changed", "removed", "edited")},
            }
        )
    elif changes.is_new:
        common.emit(
            f"{folder} does not exist yet; `cycleforge build {args.name}` creates it, with {len(changes.added)} files"
        )
    elif not changes.any:
        common.emit(f"{folder} is up to date")
    else:
        cost = diff.worst(values)
        common.emit(_text(values) + diff.files_text(changes) + (f"\nhighest cost: {cost}" if cost else ""))
        for step in needed:
            common.emit(f"see operations.md, '{step.title}': {', '.join(step.settings)}")
    return OK


def _row(change: Change, title: str | None) -> dict[str, object]:
    return change.as_json() | ({"procedure": title} if title else {})


def _text(values: Sequence[Change]) -> str:
    """What the author changed, then what follows from it; the cost is said where it is decided."""
    from ..output import diff

    parts = []
    titles = (("definition", "in the definition"), ("derived", "follows from it"), ("files", "in files"))
    for section, title in titles:
        rows = [
            replace(each, where=each.where.removeprefix(f"{section}.")) for each in values if each.path[0] == section
        ]
        if section == "derived":
            rows = [replace(each, cost="" if each.cost == "in place" else each.cost) for each in rows]
        if rows:
            parts.append(diff.table(rows, title))
    return "\n".join(parts) + "\n" if parts else "no setting changes\n"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise CannotRead(f"cannot read {path}: {reason}", "`cycleforge build` writes it again") from error


def _plain(content: bytes, filename: str) -> dict[str, Any]:
    from ..definition.text.source import load

    source = load(content, filename, None)
    if source.data is None or source.problems:
        message = f"{filename} is damaged: {source.problems[0].message}"
        raise CannotRead(message, "`cycleforge build --force` writes it again")
    return source.data
