"""The steps of the server's first boot, through Azure's run command, which needs no way into the network.

Source: https://learn.microsoft.com/azure/virtual-machines/linux/run-command
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..plan.deployment import Plan
from .clients import finished
from .refusals import NotAsked
from .requests.deployments import RUN_COMMAND
from .run_command import printed, server_id
from .writer import Writer

if TYPE_CHECKING:
    from .clients import Begun

SHOW = "/usr/local/sbin/cycleforge-bootstrap status"
LIMIT_S = 600


def steps(plan: Plan, writer: Writer) -> str | None:
    """What the server says of them; None where this deployment has no server. Raises Refused and NotAsked."""
    return None if plan.server is None else printed(finished(begin(plan, writer), LIMIT_S))


def begin(plan: Plan, writer: Writer) -> Begun:
    """Ask for them; Azure runs one command at a time on a VM, and none can be taken back."""
    if plan.server is None:
        raise NotAsked("the deployment has no server of its own")
    body = {"commandId": "RunShellScript", "script": [SHOW]}
    return writer.begin(RUN_COMMAND(id=server_id(plan, writer.subscription), body=body))
