"""What several verbs share: find and read definitions, print problems, print results."""

from __future__ import annotations

import json
import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..errors import OK, CannotRead, CannotWrite, CycleForgeError, ProblemsFound
from ..operate.definitions import FOLDER, OUT
from ..problems.problem import Problem, Source, fails
from . import answer

if TYPE_CHECKING:  # `--help` reads no definition
    from ..operate.built import Built
    from ..operate.reading import Definition, Target

BLOBS_MISSING = "I1591"
SHOWN_PROBLEMS = 50
"""Problems per file that are printed as text: more are read by nobody, and the first ones often cause the rest."""


_NAME = f"name of a definition here or in {FOLDER}/, path of a YAML file, or - for standard input"
_SHARED: dict[str, dict[str, Any]] = {
    "NAME": {"metavar": "NAME", "help": _NAME},
    "NAMES": {"metavar": "NAME", "nargs": "*", "help": f"{_NAME}; default: all definitions of this folder"},
    "--out": {
        "metavar": "DIR", "type": Path, "default": OUT, "help": f"folder for the deployment folders (default: {OUT})",
    },
    "--all": {
        "action": "store_true",
        "help": f"print every problem, not only the {SHOWN_PROBLEMS} most severe of each file; --json always has all",
    },
    "--subscription": {
        "metavar": "ID",
        "help": "id of the subscription; default: the definition's, AZURE_SUBSCRIPTION_ID, or what `az account set` "
        "chose",
    },
    "--print": {"action": "store_true", "help": "print the `az` lines that ask, or do, the same"},
    "--json": {"action": "store_true", "help": "print the result as JSON on standard output"},
    "--strict": {"action": "store_true", "help": "warnings fail too"},
}  # fmt: skip
"""Arguments that several verbs have."""


def add(parser: ArgumentParser, *names: str) -> None:
    """Add arguments that other verbs have as well, in this order of the help."""
    for name in names:
        parser.add_argument(name.lower(), **_SHARED[name])


def add_action(actions: object, name: str, summary: str, description: str) -> ArgumentParser:
    """The parser of one action of a verb; `actions` is what `add_subparsers` returned."""
    parser: ArgumentParser = actions.add_parser(  # type: ignore[attr-defined]
        name, help=summary, description=description, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--no-color", action="store_true", default=SUPPRESS, help="no colors, as with NO_COLOR")
    parser.set_defaults(action_parser=parser)
    return parser


# ---------------------------------------------------------------- problems


def print_problems(definitions: Sequence[Definition], args: Namespace) -> None:
    """Print the problems of all files on standard error, each file followed by its count.

    --all lifts the limit per file. That third-party files are missing on this machine is said by `build` alone.
    """

    for each in definitions:
        print_file(shown_by_file(each.checked.problems), each.checked.source, args)


def shown_by_file(problems: Sequence[Problem]) -> list[Problem]:
    """Leave out the blobs that this machine lacks: `build` lists them once for all definitions."""
    return [problem for problem in problems if problem.rule_id != BLOBS_MISSING]


def print_file(problems: Sequence[Problem], source: Source, args: Namespace) -> None:
    """The problems of one file, and their count; nothing without problems."""
    from ..problems.text import render, summary

    if problems:
        limit = None if args.all else SHOWN_PROBLEMS
        text = render(problems, source, color=use_color(sys.stderr, args), limit=limit)
        print(f"{text}{summary(problems, source.filename)}", file=sys.stderr)


def target_of(args: Namespace) -> Target:
    """What the command line names."""
    from ..operate.reading import Target

    known = Target.__struct_fields__
    return Target(**{name: value for name, value in vars(args).items() if name in known})


def tell(definition: Definition, args: Namespace, *, quietly: bool = False) -> None:
    """Show where a definition is from, and its problems; with --json, or quietly, only those that leave no plan."""
    tell_note(definition)
    is_json = getattr(args, "json", False)
    if definition.checked.plan is None and is_json:
        emit_json({"ok": False, "problems": problems_json([definition])})
    elif not is_json and not (quietly and definition.checked.plan):
        print_problems([definition], args)


def tell_note(definition: Definition) -> None:
    """Show what the user should know of where it is from."""
    if definition.note:
        print(f"note: {definition.note}", file=sys.stderr)


def read_one(args: Namespace, *, is_deployed: bool = False) -> Definition:
    """The definition that `args.name` names, its problems shown. Raises HasErrors."""
    from ..operate import reading

    definition = reading.deployed(target_of(args)) if is_deployed else reading.read([args.name])[0]
    tell(definition, args)
    if definition.checked.plan is None:
        raise reading.HasErrors(definition)
    return definition


def built(args: Namespace) -> Built:
    """The built folder of the definition that `args.name` names, which is what the definition says now."""
    from ..operate import built as building

    return building.built(target_of(args), partial(tell, args=args))


def problems_json(definitions: Sequence[Definition]) -> list[dict[str, object]]:
    """All problems of all files as plain data."""
    from ..problems.text import as_json

    return [row for each in definitions for row in as_json(each.checked.problems, each.checked.source)]


def exit_code(definitions: Sequence[Definition], *, strict: bool = False) -> int:
    """2 if a file could not be understood, 1 if one breaks rules, else 0."""
    if any(each.checked.source.data is None for each in definitions):
        return CannotRead.exit_code
    if any(fails(each.checked.problems, strict=strict) for each in definitions):
        return ProblemsFound.exit_code
    return OK


def use_color(stream: TextIO, args: Namespace) -> bool:
    """Colour only on a terminal that can, and unless the user says no. Source: https://no-color.org"""
    if getattr(args, "no_color", False) or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


# ---------------------------------------------------------------- results


def say(text: str) -> None:
    """Print progress on standard error."""
    print(text, file=sys.stderr, flush=True)


def emit(text: str) -> None:
    """Print a result on standard output."""
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise CannotWrite(f"cannot write the result to standard output: {reason}") from error


def emit_json(value: object) -> None:
    """Answer with `value` as the data of the envelope, which `emit_answer` prints when the exit code is known."""
    answer.now.data, answer.now.is_given = value, True


def emit_answer(exit_code: int, error: dict[str, str | None] | None = None) -> None:
    """Print what the verb has answered as JSON, or the error that has ended it, on standard output."""
    found = answer.now.envelope(exit_code, error)
    # What another encoding has no letter for would be written as `\xf6`, which is no JSON.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    shown = found["data"] if os.environ.get(answer.OLD) == "0" else found
    answer.now.is_printed = True
    emit(json.dumps(shown, indent=2, ensure_ascii=not is_utf8))


def print_error(error: CycleForgeError) -> None:
    """What is wrong and what to do, on standard error."""
    print(f"cycleforge: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def error_json(error: CycleForgeError) -> dict[str, object]:
    """The same as plain data."""
    return {"message": error.message, "hint": error.hint}
