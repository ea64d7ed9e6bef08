"""`cycleforge init`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import OK, CannotRead, CannotWrite
from ..operate import definitions
from ..words.suggestions import suggestion
from . import common

DESCRIPTION = "Write a short commented definition to start from, or a copy of one that CycleForge ships."
SCHEMA = "definition.schema.json"
"""The file that the first line of a definition names, beside it."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "name", metavar="NAME", nargs="?", default="my-cluster", help="name of the deployment (default: my-cluster)"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        help=f"file to write, - for standard output (default: {definitions.FOLDER}/NAME.yaml, or NAME.yaml)",
    )
    parser.add_argument(
        "--preset", metavar="PRESET", default="starter", help="starter (default), or a definition that CycleForge ships"
    )


def run(args: Namespace) -> int:
    from ..definition.pages.starter import presets, starter

    if args.preset not in presets():
        hint = suggestion(args.preset, presets()) or f"presets: {', '.join(presets())}"
        raise CannotRead(f"there is no preset '{args.preset}'", hint)
    text = starter(args.name, args.preset)
    _check_name(args.name, text)
    if args.out == "-":
        common.emit(text)
        return OK
    folder = Path(definitions.FOLDER)
    path = Path(args.out) if args.out else (folder if folder.is_dir() else Path()) / f"{args.name}.yaml"
    _write(path, text)
    text = f"wrote {path}\nnext: edit it, then `cycleforge build {path}`"
    if not (path.parent / SCHEMA).exists():
        text += f"\nfor an editor that checks it: `cycleforge schema --out {path.parent / SCHEMA}`"
    common.emit(text)
    return OK


def _write(path: Path, text: str) -> None:
    """A file that is there stays."""
    from ..disk import file
    from ..disk.reasons import refusing

    with refusing(f"cannot write {path}", "choose another --out", unchanged=False):
        try:
            file.write(path, text.encode(), replace=False)
        except FileExistsError:
            raise CannotWrite(
                f"{path} already exists and is left unchanged", "choose another name, or --out FILE"
            ) from None


def _check_name(name: str, text: str) -> None:
    """The rules for names apply before a file is there."""
    from ..pipeline import check

    checked = check(text.encode(), f"{name}.yaml", {}, Path())
    data = checked.source.data
    if data is None or data.get("name") != name:
        raise CannotRead(f"'{name}' is not a valid name for a deployment", "use lower-case letters, digits and hyphens")
    for problem in checked.problems:
        if problem.level == "error" and problem.path == ("name",):
            raise CannotRead(problem.message, problem.hint)
