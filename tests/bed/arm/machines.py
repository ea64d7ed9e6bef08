"""What a virtual machine does when it is asked: a run command; it is stopped.

`State.shell` is what the machine's shell does with a script: `(vm id, script) -> (stdout, stderr)`.

Sources: https://learn.microsoft.com/azure/virtual-machines/linux/run-command (form, one at a time, the last 4,096
bytes), https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command (also deallocate),
https://github.com/hashicorp/terraform-provider-azurerm/issues/477 (what a stopped machine refuses; a run command is an
extension: https://github.com/Azure/azure-cli/issues/4286)
"""

from __future__ import annotations

from typing import Any

from .answers import Parts, answer
from .exchange import Answer, Asked, RefusedError
from .resources import found, group_exists, polling, unlocked
from .rights import require
from .state import Caller, State

MACHINE = "Microsoft.Compute/virtualMachines"
_LAST = 4096


def _machine_id(parts: Parts) -> str:
    scope = f"/subscriptions/{parts['subscription']}/resourceGroups/{parts['group']}"
    return f"{scope}/providers/{MACHINE}/{parts['machine']}"


@answer("run command")
def run_command(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202; what the script wrote is at Location."""
    group_exists(state, asked.path)
    machine = found(state, _machine_id(parts), MACHINE)
    require(state, caller, f"{MACHINE}/runCommand/action", machine["id"])
    if machine["id"].lower() in state.stopped:
        text = "Cannot modify extensions in the VM when the VM is not running."
        raise RefusedError(409, "OperationNotAllowed", text)
    if machine["id"].lower() in state.commands_running:
        raise RefusedError(
            409,
            "Conflict",
            "Run command extension execution is in progress. Please wait for completion before invoking a run command.",
        )
    if asked.body["commandId"] != "RunShellScript":
        raise RefusedError(400, "InvalidParameter", f"The command '{asked.body['commandId']}' is not known.")
    script = "\n".join(asked.body.get("script") or [])
    state.commands_running.add(machine["id"].lower())

    def finish() -> Answer:
        state.commands_running.discard(machine["id"].lower())
        stdout, stderr = state.shell(machine["id"], script)
        message = f"Enable succeeded: \n[stdout]\n{stdout[-_LAST:]}\n[stderr]\n{stderr[-_LAST:]}"
        status = {"code": "ProvisioningState/succeeded", "level": "Info", "displayStatus": "Provisioning succeeded"}
        return Answer(200, {"value": [status | {"message": message}]})

    headers = polling(state, asked, state.begin(finish).id, "Azure-AsyncOperation", "Location")
    return Answer(202, None, headers)


@answer("deallocate")
def deallocate(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202, also for a machine that is stopped already: https://learn.microsoft.com/azure/virtual-machines/states-billing"""
    group_exists(state, asked.path)
    machine = found(state, _machine_id(parts), MACHINE)
    require(state, caller, f"{MACHINE}/deallocate/action", machine["id"])
    unlocked(state, machine["id"], {"ReadOnly"})

    def finish() -> Answer:
        state.stopped.add(machine["id"].lower())
        return Answer(200, None)

    headers = polling(state, asked, state.begin(finish).id, "Azure-AsyncOperation", "Location")
    return Answer(202, None, headers)
