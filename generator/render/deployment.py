"""All artefacts of one deployment folder, in the order in which they need each other."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..files.file import MANIFEST, Files, manifest_file
from ..plan.deployment import Plan
from ..plan.effective import effective
from ..version import __version__
from . import bicep, bootstrap, cluster_template, firewall, jobs, projects, prove, readme, ssh_config
from .effective import yaml_file


def deployment_files(plan: Plan, folder: Path) -> Files:
    """Path → file of the whole folder; `folder` is where the definition is (its local projects are below it)."""
    carried = cluster_template.render(plan) | projects.render(plan, folder)
    late = cluster_template.late_parameters(plan)
    boot = bootstrap.render(plan, carried, late)
    files = carried | boot | jobs.render(plan) | prove.render(plan)
    if boot:
        files |= bicep.render(
            plan, bootstrap.payload_chunks(boot), bootstrap.content_hash(boot), bootstrap.payload_sha256(boot)
        )
    else:
        files |= bicep.render(plan, late=late)
    files |= readme.render(plan) | firewall.render(plan) | ssh_config.render(plan)
    files[PurePosixPath("effective.yaml")] = yaml_file(effective(plan))
    files[MANIFEST] = manifest_file(files, __version__)
    return dict(sorted(files.items()))
