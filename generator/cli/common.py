"""What several verbs share: find and read definitions, print problems, print results."""

from __future__ import annotations

import json
import os
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ..errors import OK, CannotRead, CannotWrite, CycleForgeError, ProblemsFound
from ..problems.problem import Problem, Source, fails
from ..records import record
from . import answer, definitions, renamed
from .definitions import OUT

if TYPE_CHECKING:
    from ..pipeline import Checked

SHOWN_PROBLEMS = 50
"""Problems per file that are printed as text: more are read by nobody, and the first ones often cause the rest."""


@record
class Definition:
    """A definition that was read and checked; `filename` is how the user would call it."""

    filename: str
    folder: Path
    checked: Checked


def add_definitions(parser: ArgumentParser, *, many: bool) -> None:
    """The positional argument NAME."""
    text = f"name of a definition here or in {definitions.FOLDER}/, path of a YAML file, or - for standard input"
    if many:
        parser.add_argument("names", metavar="NAME", nargs="*", help=f"{text}; default: all definitions of this folder")
    else:
        parser.add_argument("name", metavar="NAME", help=text)


def add_action(actions: object, name: str, summary: str, description: str) -> ArgumentParser:
    """The parser of one action of a verb; `actions` is what `add_subparsers` returned."""
    parser: ArgumentParser = actions.add_parser(  # type: ignore[attr-defined]
        name, help=summary, description=description, formatter_class=RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--no-color", action="store_true", default=SUPPRESS, help="no colors, as with NO_COLOR")
    parser.set_defaults(action_parser=parser)
    return parser


def read_at_most(word: str, most: int) -> bytes:
    """A file that the user named, - for standard input; a byte more than `most`, so that an endless one is noticed."""
    if word == "-":
        return sys.stdin.buffer.read(most + 1)
    try:
        with Path(word).open("rb") as file:
            return file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise CannotRead(f"cannot read {word}: {reason.lower()}") from error


def add_json(parser: ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print the result as JSON on standard output")


def add_strict(parser: ArgumentParser) -> None:
    """--strict."""
    parser.add_argument("--strict", action="store_true", help="warnings fail too")


def add_all(parser: ArgumentParser) -> None:
    """--all."""
    text = f"print every problem, not only the {SHOWN_PROBLEMS} most severe of each file; --json always has all"
    parser.add_argument("--all", action="store_true", help=text)


def add_out(parser: ArgumentParser) -> None:
    """--out."""
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=OUT,
        help=f"folder for the deployment folders (default: {OUT})",
    )


# ---------------------------------------------------------------- definitions


def read_definitions(names: Sequence[str], environment: Mapping[str, str] = os.environ) -> list[Definition]:
    """Read and check the named definitions, or all of this folder."""
    from ..pipeline import check, check_together

    paths = [definitions.find(name) for name in names] if names else definitions.here()
    found = []
    for path in dict.fromkeys(paths):
        if path is None:
            filename, folder, text = "<stdin>", Path(), sys.stdin.buffer.read(_read_limit())
        else:
            filename, folder, text = str(path), path.parent, _read(path)
        found.append(Definition(filename, folder, check(text, filename, environment, folder)))
    together = check_together([each.checked for each in found])
    return [replace(each, checked=checked) for each, checked in zip(found, together, strict=True)]


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_read_limit())
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {(error.strerror or 'error').lower()}") from error


def _read_limit() -> int:
    """One byte more than is allowed, so that an endless device is noticed as too large."""
    from ..definition.text.source import MAX_BYTES

    return MAX_BYTES + 1


# ---------------------------------------------------------------- problems


def print_problems(definitions: Sequence[Definition], args: Namespace) -> None:
    """Print the problems of all files on standard error, each file followed by its count.

    --all lifts the limit per file. That third-party files are missing on this machine is said by `build` alone.
    """
    from . import missing_blobs

    for each in definitions:
        print_file(missing_blobs.others(each.checked.problems), each.checked.source, args)


def print_file(problems: Sequence[Problem], source: Source, args: Namespace) -> None:
    """The problems of one file, and their count; nothing without problems."""
    from ..problems.text import render, summary

    if problems:
        limit = None if args.all else SHOWN_PROBLEMS
        text = render(problems, source, color=use_color(sys.stderr, args), limit=limit)
        print(f"{text}{summary(problems, source.filename)}", file=sys.stderr)


def deployed(word: str, args: Namespace, environment: Mapping[str, str] = os.environ) -> Definition:
    """Read a definition for a verb on what it has deployed.

    A word that no definition has as its name, and a built folder has, means that deployment, as it was built.
    `args.deployment` is the name where it is known already.
    """
    from ..pipeline import check_source

    out: Path = getattr(args, "out", OUT)
    name: str | None = getattr(args, "deployment", None)
    if name is None:
        file = None if word == "-" else definitions.look(word)
    else:
        file = Path(word) if Path(word).is_file() else None
    folder = renamed.folder_of(name or word, file, out)
    if folder is None:
        return read_definitions([word], environment)[0]
    source, place = renamed.as_built(folder)
    if name is None:
        now = definitions.name_in(place / source.filename)
        says = f"has the name '{now}' by now" if now else "is not here any more"
        print(f"note: this is '{folder.name}' as {folder} was built; {source.filename} {says}", file=sys.stderr)
    return Definition(str(place / source.filename), place, check_source(source, environment, place))


def read_one(args: Namespace, *, is_deployed: bool = False) -> Definition:
    """The definition that `args.name` names, its problems shown; with --json only where they leave no plan."""
    definition = deployed(args.name, args) if is_deployed else read_definitions([args.name])[0]
    if not getattr(args, "json", False):
        print_problems([definition], args)
    elif definition.checked.plan is None:
        emit_json({"ok": False, "problems": problems_json([definition])})
    return definition


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
    """Print a result as JSON on standard output."""
    # What another encoding has no letter for would be written as `\xf6`, which is no JSON.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    answer.is_told = True
    emit(json.dumps(value, indent=2, ensure_ascii=not is_utf8))


def print_error(error: CycleForgeError) -> None:
    """What is wrong and what to do, on standard error."""
    print(f"cycleforge: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  hint: {error.hint}", file=sys.stderr)


def error_json(error: CycleForgeError) -> dict[str, object]:
    """The same as plain data."""
    return {"message": error.message, "hint": error.hint}
