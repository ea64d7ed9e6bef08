"""`cycleforge build`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK, CannotWrite, ProblemsFound
from ..operate import reading, renamed
from ..problems.problem import fails
from . import common, missing_blobs

if TYPE_CHECKING:
    from ..operate.reading import Definition
    from ..output.changes import Changes

DESCRIPTION = """\
Render the deployment folder of each definition into DIR/<name>.

All definitions are checked first and all their problems reported, also those that two of them have with each other,
such as one resource group for both. Those without errors are built even when another one has errors; the exit code is
then not 0.

A folder is replaced as a whole: if the build is interrupted, either the old or the new folder is there. A folder that
is up to date is not touched. A folder that CycleForge did not create is refused. Files that you added to a folder
stay. A folder in which you edited generated files is not built again, with exit code 1 and the names of all of them,
unless --force is given, which replaces them.
"""
_SHOWN = 20
"""Changed files that are listed per deployment; --json has all of them."""


def add_arguments(parser: ArgumentParser) -> None:
    common.add_definitions(parser, many=True)
    common.add_out(parser)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a folder is not up to date")
    parser.add_argument("--force", action="store_true", help="replace generated files that were edited")
    common.add_all(parser)
    common.add_json(parser)
    common.add_strict(parser)


def run(args: Namespace) -> int:
    from ..operate.built import build

    definitions = reading.read(args.names)
    if not args.json:
        _say_problems(definitions, args)
    code = common.exit_code(definitions, strict=args.strict)
    built: list[dict[str, object]] = []
    first: dict[str, str] = {}
    """Deployments that have no folder yet, and their files."""
    errors: list[dict[str, object]] = []
    for each in definitions:
        if each.checked.plan is None or fails(each.checked.problems, strict=args.strict):
            if not args.json:
                print(f"{each.filename}: not built", file=sys.stderr)
            continue
        folder: Path = args.out / each.checked.plan.name
        try:
            changes = build(each, args.out, check=args.check, force=args.force)
        except (CannotWrite, ProblemsFound) as error:
            code = max(code, error.exit_code)
            errors.append({"definition": each.filename, **common.error_json(error)})
            if not args.json:
                common.print_error(error)
            continue
        if changes.is_new:
            first[each.checked.plan.name] = each.checked.plan.definition
        if args.check and changes.any and code == OK:
            code = ProblemsFound.exit_code
        built.append(
            {"definition": each.filename, "folder": str(folder), **asdict(changes), "up_to_date": not changes.any}
        )
        if not args.json:
            common.emit("\n".join(_lines(folder, changes, check=args.check)))
    if not args.json:
        for note in renamed.notes(first, args.out, _names(definitions)):
            print(note, file=sys.stderr)
    else:
        common.emit_json(
            {"ok": code == OK, "deployments": built, "problems": common.problems_json(definitions), "errors": errors}
        )
    return code


def _say_problems(definitions: Sequence[Definition], args: Namespace) -> None:
    common.print_problems(definitions, args)
    missing = missing_blobs.message([each.checked for each in definitions])
    if missing:
        print(missing, file=sys.stderr)


def _names(definitions: Sequence[Definition]) -> Iterator[str]:
    return (each.checked.plan.name for each in definitions if each.checked.plan)


def _lines(folder: Path, changes: Changes, *, check: bool) -> Iterator[str]:
    """What happened, for people: a headline, then the files that changed."""
    if not changes.any:
        yield f"{folder}: up to date, {len(changes.unchanged)} files"
        return
    if changes.is_new:
        yield f"{folder}: {'would be created' if check else 'created'}, {len(changes.added)} files"
        return
    counts = (
        (changes.added, "added"),
        (changes.changed, "changed"),
        (changes.removed, "removed"),
        (changes.unchanged, "unchanged"),
    )
    state = "not up to date: " if check else ""
    yield f"{folder}: {state}" + ", ".join(f"{len(paths)} {word}" for paths, word in counts if paths)
    marked = [
        *(("+", path) for path in changes.added),
        *(("~", path) for path in changes.changed),
        *(("-", path) for path in changes.removed),
    ]
    for sign, path in marked[:_SHOWN]:
        yield f"  {sign} {path}"
    if len(marked) > _SHOWN:
        yield f"  … and {len(marked) - _SHOWN} more; --json lists all"
    for path in changes.edited:
        yield f"  ! {path} was edited{'; only `build --force` replaces it' if check else ', and is replaced'}"
