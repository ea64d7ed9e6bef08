"""All artefacts of one deployment folder, in the order in which they need each other."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from generator.output import manifest_file
from generator.plan.effective import effective
from generator.plan.types import Plan
from generator.render import bicep, bootstrap, cluster_template, jobs, projects, readme
from generator.render.effective import yaml_file
from generator.render.files import Files
from generator.version import __version__


def deployment_files(plan: Plan, folder: Path) -> Files:
    """Path → file of the whole folder; `folder` is where the definition lies (its local projects are below it)."""
    carried = cluster_template.render(plan) | projects.render(plan, folder)
    boot = bootstrap.render(plan, carried, cluster_template.late_parameters(plan))
    files = carried | boot | jobs.render(plan)
    files |= bicep.render(
        plan, bootstrap.payload_chunks(boot), bootstrap.content_hash(boot), bootstrap.payload_sha256(boot)
    )
    files |= readme.render(plan, {})
    files[PurePosixPath("effective.yaml")] = yaml_file(effective(plan))
    files[PurePosixPath("manifest.json")] = manifest_file(files, __version__)
    return dict(sorted(files.items()))
