"""`cycleforge project`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from generator import assets
from generator.cli import common
from generator.errors import OK, CannotRead
from generator.problems import suggestion

DESCRIPTION = """\
Give a changed cluster-init project a new version and record its digest in projects.lock.json. A released version never
changes, because nodes remember what has run by name and version, not by content.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    parser.add_argument("action", choices=("bump",), help="what to do")
    parser.add_argument(
        "name", metavar="NAME", help="a project that CycleForge brings, or the path of a project folder"
    )
    parser.add_argument(
        "--part", choices=("major", "minor", "patch"), default="patch", help="which number rises (default: patch)"
    )
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Bump."""
    from generator.projects.lock import bump

    folder, shipped = _folder(args.name)
    done = bump(folder, args.part, shipped=shipped)
    if args.json:
        common.emit_json({"changed": done is not None, **(asdict(done) if done else {})})
    elif done is None:
        common.emit(f"{folder.name}: nothing has changed since its version was recorded")
    elif done.old == done.new:
        common.emit(f"{done.project}: recorded version {done.new}")
    else:
        common.emit(f"{done.project}: {done.old} is now {done.new}")
    return OK


def _folder(word: str) -> tuple[Path, bool]:
    """The project's folder, and whether it is one that CycleForge brings."""
    root = assets.folder("projects")
    path = Path(word)
    if len(path.parts) == 1 and (root / word / "project.ini").is_file():
        return root / word, True
    if (path / "project.ini").is_file():
        return path, path.resolve().parent == root.resolve()
    known = sorted(each.parent.name for each in root.glob("*/project.ini"))
    raise CannotRead(f"there is no project '{word}'", suggestion(word, known) or f"projects: {', '.join(known)}")
