"""Released versions of the shipped projects: what a node runs is what was reviewed."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.types import Plan
from ..problems.problem import Problem
from .capacity import PlanRule


class ChangedWithoutVersion(PlanRule):
    id = "E1590"
    summary = "A shipped project has changed without a new version."
    why = "Nodes and lockers know a project by its version; two contents under one version cannot be told apart."
    fix = "cycleforge project bump NAME"
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/projects"

    def check_plan(self, plan: Plan) -> Iterator[Problem]:
        """Compares the digests of the plan with the lock beside the projects."""
        from ..projects import shipped_problems

        names = [project.name for project in plan.projects if not project.is_local]
        for found in shipped_problems(names):
            yield self.problem(("slurm",), found.message, found.fix, on_key=True)
