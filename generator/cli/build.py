"""`cycleforge build`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from ..errors import OK, CannotWrite, ProblemsFound
from ..operate import reading
from ..problems.problem import fails
from ..words.counts import listed
from . import common

if TYPE_CHECKING:
    from ..operate.reading import Definition
    from ..output.changes import Changes
    from ..plan.deployment import Plan

DESCRIPTION = """\
Render the deployment folder of each definition into DIR/<name>.

All definitions are checked first, also against each other (two must not share a resource group), and all problems are
reported. Definitions without errors are built even if others have some; the exit code is then not 0.

A folder is replaced as a whole: if the build is interrupted, either the old or the new folder exists. A folder that is
up to date is not touched. A folder that CycleForge did not create is refused. Files that you added to a folder stay. If
you edited generated files, the folder is not built, the exit code is 1 and all of them are listed, unless you give
--force, which replaces them.
"""
_SHOWN = 20
"""Changed files that are listed per deployment; --json has all of them."""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAMES", "--out")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a folder is not up to date")
    parser.add_argument("--force", action="store_true", help="replace generated files that were edited")
    common.add(parser, "--all", "--json", "--strict")


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
                common.say(f"{each.filename}: not built")
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
            {"definition": each.filename, "folder": str(folder), **to_builtins(changes), "up_to_date": not changes.any}
        )
        if not args.json:
            common.emit("\n".join(_lines(folder, changes, check=args.check)))
    if not args.json:
        for note in reading.notes(
            first, args.out, (each.checked.plan.name for each in definitions if each.checked.plan)
        ):
            common.say(note)
    else:
        common.emit_json(
            {"ok": code == OK, "deployments": built, "problems": common.problems_json(definitions), "errors": errors}
        )
    return code


def _say_problems(definitions: Sequence[Definition], args: Namespace) -> None:
    common.print_problems(definitions, args)
    # A definition that silences the rule does not count.
    lacking = [
        each.checked.plan
        for each in definitions
        if each.checked.plan and any(found.rule_id == common.BLOBS_MISSING for found in each.checked.problems)
    ]
    if lacking:
        common.say("\n".join(_missing_blobs(lacking)))


def _missing_blobs(plans: Sequence[Plan]) -> Iterator[str]:
    """Say once what this machine lacks, for which definitions, and what nodes then do."""
    from ..rules.projects import consequences

    names = listed(dict.fromkeys(plan.name for plan in plans))
    text = "third-party files are missing on this machine, so nodes start without them"
    yield f"info {common.BLOBS_MISSING}: {text} ({names})"
    yield from (f"  {line}" for line in consequences(plans))
    yield "  hint: `cycleforge blobs fetch`, then build again"
    yield f"  more: cycleforge explain {common.BLOBS_MISSING}"


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
