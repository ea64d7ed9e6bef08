"""`projects/<project>/…`: every project of the plan, ready for `cyclecloud project upload`."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from generator.errors import CannotRead
from generator.plan.types import Plan, ProjectPlan
from generator.projects import contents, read_project
from generator.projects.content import shipped_project
from generator.render.files import Files


def render(plan: Plan, local_root: Path | None = None) -> Files:
    """All files of all projects. `local_root` is the folder of the definition, from which local projects are read."""
    files: Files = {}
    for project in plan.projects:
        for path, file in _contents(project, local_root).items():
            files[PurePosixPath("projects") / project.name / path] = file
    return files


def _contents(project: ProjectPlan, local_root: Path | None) -> Files:
    if not project.is_local:
        return shipped_project(project.name)[1]
    if local_root is None:
        raise CannotRead(f"project '{project.name}' lies beside the definition, whose folder is not known")
    return contents(read_project(local_root / project.source), shipped=False)
