"""`projects/<project>/…`: every project of the plan, ready for `cyclecloud project upload`.

A third-party blob travels when the plan found it in the store; otherwise neither the folder nor `project.ini`
names it, so that no manifest names a file that is not there.
"""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from ..blobs import pinned_of, store_of
from ..errors import CannotRead
from ..files.file import File, Files
from ..plan.deployment import Plan
from ..plan.projects import ProjectPlan
from ..projects.content import BLOBS, contents, shipped_project
from ..projects.ini import keep_blobs, read_project

INI = PurePosixPath("project.ini")


def render(plan: Plan, local_root: Path | None = None) -> Files:
    """All files of all projects. `local_root` is the folder of the definition, from which local projects are read."""
    files: Files = {}
    for project in plan.projects:
        for path, file in _contents(project, local_root).items():
            files[PurePosixPath("projects") / project.name / path] = file
    return files


def _contents(project: ProjectPlan, local_root: Path | None) -> Files:
    if not project.is_local:
        return _with_blobs(project)
    if local_root is None:
        raise CannotRead(f"project '{project.name}' is relative to the definition, whose folder is not known")
    return contents(read_project(local_root / project.source), shipped=False)


def _with_blobs(plan: ProjectPlan) -> Files:
    """A shipped project with the bytes of its blobs, which the store verifies, in the place of their pins."""
    project, files = shipped_project(plan.name)
    pins = pinned_of(plan.name)
    pinned = {name for name in project.blobs if name in pins}
    carried = {blob.file for blob in plan.blobs if blob.state == "present"}
    if not pinned:
        return files
    files = {path: file for path, file in files.items() if path not in {BLOBS / name for name in pinned - carried}}
    if carried:
        store = store_of(os.environ)
        files |= {BLOBS / name: File(store.read(pins[name])) for name in carried}
    if pinned - carried:
        ini = files[INI]
        files[INI] = File(keep_blobs(ini.content, set(project.blobs) - (pinned - carried)), ini.executable)
    return files
