"""`cycleforge validate`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..operate import reading
from . import common

DESCRIPTION = "Check definitions and report all problems of all files at once. Nothing is written."


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAMES", "--all", "--json", "--strict")


def run(args: Namespace) -> int:
    definitions = reading.read(args.names)
    code = common.exit_code(definitions, strict=args.strict)
    if args.json:
        common.emit_json(
            {
                "ok": code == 0,
                "files": [each.filename for each in definitions],
                "problems": common.problems_json(definitions),
            }
        )
        return code
    common.print_problems(definitions, args)
    for each in definitions:
        if not common.shown_by_file(each.checked.problems):
            common.emit(f"{each.filename}: no problems")
    return code
