"""`cycleforge template`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK, CannotRead, ProblemsFound
from ..operate.definitions import read_at_most
from ..problems.problem import fails
from . import common

DESCRIPTION = "Check any CycleCloud cluster template, whoever wrote it. Nothing is written, and no server is contacted."
_CHECK = """\
Check a CycleCloud cluster template: sections, attributes, expressions, parameters, inheritance, references to
projects, and what azslurm needs of Slurm clusters. All problems are reported at once, each with its line and column;
`cycleforge explain ID` says more. The exit code is 2 for a file that cannot be parsed, 1 for other errors.
"""


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    check = common.add_action(actions, "check", "check a template and its parameter file", _CHECK)
    check.add_argument(
        "file", metavar="FILE", help="the template, for example templates/slurm.txt; - for standard input"
    )
    check.add_argument(
        "--parameters",
        metavar="JSON",
        help="the parameter file that the import is to use: its names, types and required values are checked, too",
    )
    common.add(check, "--all", "--json", "--strict")


def run(args: Namespace) -> int:
    from ..cctemplate.files import check_files
    from ..problems.text import as_json

    if args.file == args.parameters == "-":
        raise CannotRead("standard input cannot be the template and its parameter file at once")
    template = _read(args.file)
    files = check_files(template, None if args.parameters is None else _read(args.parameters))
    problems = [problem for each in files for problem in each.problems]
    code = ProblemsFound.exit_code if fails(problems, strict=args.strict) else OK
    if not all(each.is_understood for each in files):
        code = CannotRead.exit_code
    if args.json:
        rows = [row for each in files for row in as_json(each.problems, each.source)]
        names = [each.source.filename for each in files]
        common.emit_json({"ok": code == OK, "files": names, "problems": rows})
        return code
    for each in files:
        common.print_file(each.problems, each.source, args)
        if not each.problems:
            common.emit(f"{each.source.filename}: no problems")
    return code


def _read(word: str) -> tuple[str, bytes]:
    """Name and content."""
    from ..cctemplate.files import MAX_BYTES

    return "<stdin>" if word == "-" else word, read_at_most(word, MAX_BYTES)
