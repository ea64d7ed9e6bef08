"""`ssh_config` for `ssh -F`, and `ssh_hosts` for an `Include` in the user's own."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from ..files.file import Files, text
from ..plan.deployment import Plan
from ..plan.ssh_config import ssh_plan
from .templates import environment

_PARTS = Path(__file__).resolve().parent / "ssh_parts"


def render(plan: Plan) -> Files:
    template = environment(_PARTS).get_template("ssh_config.j2")
    ssh = ssh_plan(plan)
    return {
        PurePosixPath(name): text(template.render(ssh=ssh, is_include=is_include))
        for name, is_include in zip(ssh.file_names, (False, True), strict=True)
    }
