"""`cycleforge project new`."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from pathlib import Path

from ..errors import OK, CannotRead
from . import common


def run(args: Namespace) -> int:
    """Write the project and say what to do with it."""
    from ..projects.find import SHIPPED
    from ..projects.skeleton import create

    if args.name in SHIPPED:
        raise CannotRead(f"CycleForge brings a project '{args.name}'", "choose another name, or build that one")
    folder = create(args.name, args.spec, args.parent)
    if args.json:
        files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        common.emit_json({"name": args.name, "spec": args.spec, "folder": str(folder), "files": files})
    else:
        common.emit(_next(folder, args.name, args.spec))
    return OK


def _next(folder: Path, name: str, spec: str) -> str:
    """What comes next. A definition names the folder relative to itself."""
    script = folder / "specs" / spec / "cluster-init/scripts/10-example.sh"
    path = Path(os.path.relpath(folder, common.FOLDER)).as_posix()
    word, reference = shlex.quote(str(folder)), name if spec == "default" else f"{name}:{spec}"
    return f"""\
wrote {folder}; begin with {script}

  cycleforge project info {word}
  cycleforge project build {word}
  cycleforge upload {word}

To run it on nodes, add to a definition in {common.FOLDER}/:

  projects:
    - {{name: {name}, path: {path}}}
  slurm:
    partitions:
      - {{…, extra_projects: [{reference}]}}
"""
