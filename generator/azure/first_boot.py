"""The steps of the server's first boot, through Azure's run command, which needs no way into the network.

Source: https://learn.microsoft.com/azure/virtual-machines/linux/run-command
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..plan.types import Plan
from .clients import finished
from .refusals import NotAsked
from .requests import deployments
from .writer import Writer

if TYPE_CHECKING:
    from .clients import Begun

SHOW = "/usr/local/sbin/cycleforge-bootstrap status"
LIMIT_S = 600
_OUT, _ERR = "[stdout]\n", "\n[stderr]"


def steps(plan: Plan, writer: Writer) -> str | None:
    """What the server says of them; None where this deployment has no server. Raises Refused and NotAsked."""
    return None if plan.server is None else printed(finished(begin(plan, writer), LIMIT_S))


def begin(plan: Plan, writer: Writer) -> Begun:
    """Ask for them; Azure runs one command at a time on a VM, and none can be taken back."""
    if plan.server is None:
        raise NotAsked("the deployment has no server of its own")
    server = (
        f"/subscriptions/{writer.subscription}/resourceGroups/{plan.resource_group}"
        f"/providers/Microsoft.Compute/virtualMachines/{plan.server.vm_name}"
    )
    body = {"commandId": "RunShellScript", "script": [SHOW]}
    return writer.begin(deployments.RUN_COMMAND(id=server, body=body))


def printed(answer: Mapping[str, Any]) -> str:
    """The standard output in the answer of a run command, at most its last 4,096 bytes."""
    value = answer.get("value")
    if not isinstance(value, list) or not value or not isinstance(value[0], Mapping):
        raise NotAsked("Azure's run command gives no output")
    message = str(value[0].get("message", ""))
    return message.partition(_OUT)[2].partition(_ERR)[0].strip("\n")
