"""`README.md` with the commands of this deployment, and `.envrc.template` with the variables that it reads."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import PurePosixPath

from ..files.file import Files, text
from ..plan.types import Plan
from . import readme_cluster, readme_connect, readme_deploy, readme_upload

FilesSummary = Mapping[PurePosixPath, int]
"""Path → size in bytes of what else the folder holds; only folders named here are described as present."""


def render(plan: Plan, files_summary: FilesSummary) -> Files:
    """`README.md` and `.envrc.template`."""
    sections = (
        readme_deploy.overview(plan, files_summary),
        readme_deploy.prerequisites(plan),
        readme_deploy.deploy(plan),
        readme_deploy.watch(plan),
        readme_connect.connect(plan),
        readme_cluster.start(plan),
        readme_cluster.validate(plan),
        readme_cluster.train(plan),
        readme_cluster.update(plan),
        readme_upload.upload(plan),
        readme_cluster.delete(plan),
        readme_cluster.troubleshooting(plan),
    )
    return {
        PurePosixPath("README.md"): text("\n\n".join(section.strip() for section in sections if section)),
        PurePosixPath(".envrc.template"): text(_environment_template(plan)),
    }


def _environment_template(plan: Plan) -> str:
    lines = [
        f"# Variables of the deployment {plan.name}.",
        "# Copy this file to .envrc, fill it in, and read it with: source .envrc",
        "# Keep .envrc out of version control. A secret is better read from a vault than written here, for example:",
        '#   export NAME="$(az keyvault secret show --vault-name VAULT --name SECRET --query value --output tsv)"',
    ]
    asked = {value.variable for value in plan.asked}
    for variable in plan.variables:
        lines += ["", f"# {variable.description}"]
        if variable.secret:
            lines.append(f"export {variable.name}=''   # secret: do not write it here, read it from a vault")
            continue
        if variable.example:
            lines.append(f"# Example: {variable.example}")
        if variable.default is not None:
            lines.append(f"# Default: {variable.default or '(empty)'}")
        # What the deployment does not ask for is in this folder already.
        start = "" if variable.name in asked else "# "
        lines.append(f"{start}export {variable.name}={shlex.quote(variable.default or '')}")
    return "\n".join(lines)
