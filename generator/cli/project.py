"""`cycleforge project`; what `list` and `info` show is in project_show.py."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import to_builtins

from ..errors import OK, CannotRead, CannotWrite, CycleForgeError
from ..operate import definitions
from ..words.counts import counted, size
from . import common, project_show
from .project_show import total_bytes

if TYPE_CHECKING:
    from ..projects.local import Located
    from ..projects.package import Package

DESCRIPTION = """\
Package cluster-init projects as CycleCloud's own command does, show them, start a new one, or give a changed one a
new version.

  cycleforge project new site                 a project folder that works, projects/site
  cycleforge project info site                its specs, scripts in the order in which they run, blobs, manifest
  cycleforge project build                    the project of this folder, else all that CycleForge ships
  cycleforge project build site PATH          projects by name, or any CycleCloud project folder
  cycleforge project list                     what CycleForge ships and what is in projects/
  cycleforge project bump site --part minor   record a change as a new version (default: the last number rises)

A released version never changes, because nodes remember what has run by name and version, not by content. The format,
and every decision where it leaves a choice: docs/projects.md.
"""
_BUILD = """\
Write what `cyclecloud project build` writes: <out>/<project>/manifest.json and the specs, byte for byte. The folder is
replaced in one step, and not touched when it is up to date. Project blobs stay where they are.
"""
_INFO = """\
Show everything about one project: what runs on a node and in which order, what travels with it, and its manifest.
"""
_LIST = """\
List the projects that CycleForge ships and those in projects/, with their state: released, changed (bump it), or not
recorded in projects.lock.json yet.
"""
_NEW = """\
Write a project folder that works: one spec with an example script, and README files that explain what belongs where.
Existing files are not changed.
"""
_BUMP = """\
Give a changed project a new version and record its digest in projects.lock.json. A version that is not recorded yet is
recorded as it is, unless --taken says that a locker holds different content under it.
"""
_NAME = "a project that CycleForge ships, one in projects/, or the path of a project folder"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    build = common.add_action(actions, "build", "build projects", _BUILD)
    build.add_argument(
        "names", metavar="NAME", nargs="*", help=f"{_NAME}; default: the one in this folder, else all of CycleForge's"
    )
    build.add_argument(
        "--out", metavar="DIR", type=Path, default=Path("build"), help="folder of the builds (default: build)"
    )
    show = common.add_action(actions, "list", "list projects and their state", _LIST)
    info = common.add_action(actions, "info", "show everything about one project", _INFO)
    info.add_argument("name", metavar="NAME", help=_NAME)
    new = common.add_action(actions, "new", "start a project", _NEW)
    new.add_argument("name", metavar="NAME", help="its name: letters, digits, '.', '_' and '-'")
    new.add_argument(
        "--in", dest="parent", metavar="DIR", type=Path, default=Path("projects"),
        help="folder of the project's folder (default: projects)",
    )  # fmt: skip
    new.add_argument("--spec", metavar="SPEC", default="default", help="name of its spec (default: default)")
    bump = common.add_action(actions, "bump", "give a changed project a new version", _BUMP)
    bump.add_argument("name", metavar="NAME", help=_NAME)
    bump.add_argument(
        "--part", choices=("major", "minor", "patch"), default="patch", help="which number rises (default: patch)"
    )
    bump.add_argument(
        "--taken",
        action="store_true",
        help="a locker has different content under this version: make the next one anyway",
    )
    for action in (build, show, info, new, bump):
        common.add(action, "--json")


def run(args: Namespace) -> int:
    actions = {
        "build": _build, "list": project_show.show_all, "info": project_show.show_one, "new": _new, "bump": _bump,
    }  # fmt: skip
    return actions[args.action](args)


def _bump(args: Namespace) -> int:
    from ..projects.local import find_project
    from ..projects.lock import bump

    found = find_project(args.name)
    done = bump(found.folder, args.part, shipped=found.is_shipped, taken=args.taken)
    if args.json:
        common.emit_json({"changed": done is not None, **(to_builtins(done) if done else {})})
    elif done is None:
        common.emit(f"{found.folder.name}: nothing has changed since its version was recorded")
    elif done.old == done.new:
        common.emit(f"{done.project}: recorded version {done.new}")
    else:
        common.emit(f"{done.project}: {done.old} is now {done.new}")
    return OK


def _new(args: Namespace) -> int:
    from ..projects.local import SHIPPED
    from ..projects.skeleton import create

    if args.name in SHIPPED:
        raise CannotRead(f"CycleForge ships a project '{args.name}'", "choose another name, or build that one")
    folder = create(args.name, args.spec, args.parent)
    if args.json:
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        common.emit_json({"name": args.name, "spec": args.spec, "folder": str(folder), "files": files})
    else:
        common.emit(_next_text(folder, args.name, args.spec))
    return OK


def _next_text(folder: Path, name: str, spec: str) -> str:
    """What comes next. A definition names the folder relative to itself."""
    script = folder / "specs" / spec / "cluster-init/scripts/10-example.sh"
    path = Path(os.path.relpath(folder, definitions.FOLDER)).as_posix()
    word, reference = shlex.quote(str(folder)), name if spec == "default" else f"{name}:{spec}"
    return f"""\
wrote {folder}; begin with {script}

  cycleforge project info {word}
  cycleforge project build {word}
  cycleforge upload {word}

To run it on nodes, add to a definition in {definitions.FOLDER}/:

  projects:
    - {{name: {name}, path: {path}}}
  slurm:
    partitions:
      - {{…, extra_projects: [{reference}]}}
"""


# ---------------------------------------------------------------- build


def _build(args: Namespace) -> int:
    """Package all first, so that nothing is written when one of them cannot be."""
    from ..projects import build as writing

    done, failures = project_show.packaged(_wanted(args.names))
    rows: list[dict[str, object]] = []
    stopped: CycleForgeError | None = None
    if not failures:
        _demand_distinct(done)
        for _, package in done:
            try:
                is_changed = writing.build(package, args.out)
            except (CannotRead, CannotWrite) as error:
                if not args.json:
                    raise
                stopped = error
                break
            rows.append(_row(package, args.out, is_changed=is_changed))
            if not args.json:
                common.emit(_text(package, args.out, is_changed=is_changed))
    if args.json:
        errors = project_show.errors_json(failures) + ([common.error_json(stopped)] if stopped else [])
        common.emit_json({"ok": not errors, "projects": rows, "errors": errors})
    else:
        project_show.print_failures(failures)
    if stopped is not None:
        return stopped.exit_code
    return CannotRead.exit_code if failures else OK


def _wanted(words: Sequence[str]) -> list[Located]:
    from ..projects.local import all_shipped, find_project, located

    if words:
        return list({found.folder.resolve(): found for found in map(find_project, words)}.values())
    return [located(Path())] if Path("project.ini").is_file() else all_shipped()


def _demand_distinct(done: Sequence[tuple[Located, Package]]) -> None:
    folders: dict[str, Path] = {}
    for found, package in done:
        other = folders.setdefault(package.project.name, found.folder)
        if other != found.folder:
            raise CannotRead(
                f"{found.folder} and {other} are both named '{package.project.name}'", "build them into two folders"
            )


def _row(package: Package, out: Path, *, is_changed: bool) -> dict[str, object]:
    return {
        "name": package.project.name,
        "version": package.project.version,
        "path": str(out / package.project.name),
        "changed": is_changed,
        "files": len(package.files),
        "bytes": total_bytes(package.files),
        "blobs": [{"path": str(path), "bytes": each.size_bytes, "md5": each.md5.hex()}
                  for path, each in package.blobs.items()],
        "left_out": [str(path) for path in package.left_out],
    }  # fmt: skip


def _text(package: Package, out: Path, *, is_changed: bool) -> str:
    project = package.project
    parts = [f"version {project.version}", counted(len(package.files), "file"), size(total_bytes(package.files))]
    if package.blobs:
        parts.append(f"{counted(len(package.blobs), 'blob')} of {size(total_bytes(package.blobs))} beside it")
    lines = [f"{out / project.name}: {', '.join(parts)}{'' if is_changed else ', up to date'}"]
    if package.left_out:
        lines.append(f"  left out: {project_show.named(package.left_out)}")
    return "\n".join(lines)
