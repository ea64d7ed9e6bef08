"""`cycleforge diff`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..errors import OK, CannotRead
from ..operate import reading
from . import common

if TYPE_CHECKING:
    from ..output.diff import Change

DESCRIPTION = """\
Compare a definition with the folder that was built from it: which settings and derived values change, from what to
what, and what each change costs a running cluster.

  in place      deploy again; nothing stops
  node restart  running nodes keep the old value until they are started again
  by hand       Azure refuses it until you have changed or deleted something; nothing else is lost
  recreate      the resource or the cluster must be deleted and created again

The column "reaches" says where a change takes effect on a running cluster, once the new template is imported:

  running nodes                nothing has to restart; a change of partitions needs `azslurm scale`
  new nodes of PARTITION       nodes that start from now on; nodes.sh on the scheduler replaces the old ones when idle
  scheduler restart            lines of slurm.conf, which is written when a scheduler is installed; jobs continue
  cluster restart              scheduler and login nodes use it too: no job may run

If building and deploying again is not enough, it names the section of the folder's operations.md that says what is
lost, what to copy first and what to type.

With --deployed, Azure is asked instead: what is missing there, what someone changed, and what it still has of this
deployment that the definition no longer names. The folder must be up to date with the definition; build it first.

The exit code is 0 whether or not anything changes; `build --check` is for scripts.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME")
    parser.add_argument(
        "--deployed", action="store_true", help="compare with what is deployed in Azure; changes nothing there"
    )
    common.add(parser, "--subscription", "--print", "--out", "--all", "--json")


def run(args: Namespace) -> int:
    if args.deployed:
        return _deployed(args)
    if args.print:
        raise CannotRead("--print needs --deployed: otherwise Azure is not asked", "add --deployed")
    definition = reading.read([args.name])[0]
    common.tell(definition, args, quietly=True)
    from ..operate.diff import difference
    from ..output import diff

    found = difference(definition, args.out)
    files = found.files
    if args.json:
        common.emit_json(
            {
                "ok": True,
                "folder": str(found.folder),
                "is_new": files.is_new,
                "worst": found.worst,
                "changes": [_row(each, found.procedure_of(each)) for each in found.changes],
                "files": {name: getattr(files, name) for name in ("added", "changed", "removed", "edited")},
            }
        )
    elif files.is_new:
        common.emit(
            f"{found.folder} does not exist yet; `cycleforge build {args.name}` creates it, with {len(files.added)} "
            "files"
        )
    elif not files.any:
        common.emit(f"{found.folder} is up to date")
    else:
        cost = found.worst
        text = _text(found.changes) + diff.files_text(files)
        common.emit(text + (f"\nhighest cost: {cost}" if cost else ""))
        for step in found.steps:
            common.emit(f"see operations.md, '{step.title}': {', '.join(step.settings)}")
    return OK


def _deployed(args: Namespace) -> int:
    found = common.built(args)
    if args.print:
        from ..azure import az_lines

        plan = found.plan
        lines = [*az_lines.beginning(plan), az_lines.recorded(plan), az_lines.deployment(plan, "what-if")]
        common.emit("\n".join(lines))
        return OK
    from ..azure import drift
    from ..operate.questions import drift as compared

    result = compared(found, args.subscription)
    if args.json:
        common.emit_json({"ok": True, "deployment": found.plan.deployment_name, **drift.as_json(result)})
    else:
        common.emit(drift.text(result))
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
