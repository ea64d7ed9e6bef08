"""All artefacts of one deployment folder, in the order in which they need each other."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Any

from ..files.file import MANIFEST, File, Files, manifest_file, text
from ..plan.deployment import Plan
from ..plan.effective import effective
from ..version import __version__
from . import bicep, bootstrap, cluster_template, firewall, jobs, projects, prove, readme, ssh_config

_HEADER = "# The definition with all defaults, and everything that follows from it. Written by cycleforge build.\n"


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
    files[PurePosixPath("effective.yaml")] = _yaml_file(effective(plan))
    files[MANIFEST] = manifest_file(files, __version__)
    return dict(sorted(files.items()))


def _yaml_file(value: dict[str, Any]) -> File:
    """The plan as plain data, with a line that says what it is; neither aliases nor folded lines, which hide a diff."""
    import yaml

    dumper: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    without_aliases = type("WithoutAliases", (dumper,), {"ignore_aliases": lambda *_: True})
    return text(
        _HEADER
        + yaml.dump(
            value, Dumper=without_aliases, sort_keys=False, allow_unicode=True, width=100_000, default_flow_style=False
        )
    )
