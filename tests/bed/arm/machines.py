"""What a virtual machine does when it is asked: a run command, the log of its serial console; it is stopped.

`State.shell` is what the machine's shell does with a script: `(vm id, script) -> (stdout, stderr)`. Whether a run
command is answered while an extension of the machine is being created is not documented; `State.is_agent_busy` decides:
True is an agent that does one thing after the other, False one that is free as soon as an extension has left its script
to another process, as misc/custom-script-shim of https://github.com/Azure/custom-script-extension-linux does.

`State.console` is what the machine has written to its serial console: `(state, vm id) -> text`. Its log is on storage
that takes no token, only the signature in the address.

Sources: https://learn.microsoft.com/azure/virtual-machines/linux/run-command (form, one at a time, the last 4,096
bytes), https://learn.microsoft.com/rest/api/compute/virtual-machines/run-command (also deallocate),
https://github.com/hashicorp/terraform-provider-azurerm/issues/477 (what a stopped machine refuses; a run command is an
extension: https://github.com/Azure/azure-cli/issues/4286),
https://learn.microsoft.com/rest/api/compute/virtual-machines/retrieve-boot-diagnostics-data (the two addresses),
https://learn.microsoft.com/rest/api/storageservices/delegate-access-with-shared-access-signature (403 without it)
"""

from __future__ import annotations

from typing import Any

from .answers import Parts, answer
from .exchange import Answer, Asked, NotInTableError, RefusedError
from .resources import found, group_exists, polling, unlocked
from .rights import require
from .state import Caller, State

MACHINE = "Microsoft.Compute/virtualMachines"
CONSOLES = "/bootdiagnostics"
SIGNATURE = "signature-of-the-log"
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

    operation = state.begin(finish)
    operation.may_end = lambda: not (state.is_agent_busy and _extension_runs(state, machine["id"]))
    return Answer(202, None, polling(state, asked, operation.id, "Azure-AsyncOperation", "Location"))


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


def _extension_runs(state: State, machine: str) -> bool:
    start = f"{machine}/extensions/".lower()
    return any(
        part.state == "Running" and part.piece.id.lower().startswith(start)
        for run in state.runs.values()
        for part in run.parts
    )


@answer("boot diagnostics")
def boot_diagnostics(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Where the screenshot and the log are; 409 where the machine has no diagnostics."""
    group_exists(state, asked.path)
    machine = found(state, _machine_id(parts), MACHINE)
    require(state, caller, f"{MACHINE}/retrieveBootDiagnosticsData/action", machine["id"])
    profile = machine["properties"].get("diagnosticsProfile", {}).get("bootDiagnostics", {})
    if not profile.get("enabled"):
        raise RefusedError(409, "OperationNotAllowed", "Boot diagnostics is not enabled for the virtual machine.")
    place = f"{state.url}{CONSOLES}{machine['id']}"
    return {
        "consoleScreenshotBlobUri": f"{place}/screenshot.bmp?sv=2021-08-06&sig={SIGNATURE}",
        "serialConsoleLogBlobUri": f"{place}/serialconsole.log?sv=2021-08-06&sig={SIGNATURE}",
    }


def console_log(state: State, asked: Asked, authorization: str | None) -> Answer:
    """The log, for whoever has the signature and shows nothing else."""
    if authorization is not None:
        raise NotInTableError(f"{asked.line}: a token was sent to storage")
    if asked.method != "GET" or asked.query.get("sig") != SIGNATURE:
        return Answer(403, b"<Error><Code>AuthenticationFailed</Code></Error>")
    machine = asked.path.removeprefix(CONSOLES).rpartition("/")[0]
    return Answer(200, state.console(state, machine).encode())


@answer("instance view")
def instance_view(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Provisioning and power, as a list of codes."""
    machine = found(state, _machine_id(parts), MACHINE)
    require(state, caller, f"{MACHINE}/instanceView/read", machine["id"])
    codes = ["ProvisioningState/succeeded", f"PowerState/{state.power.get(machine['id'].lower(), 'running')}"]
    return {"statuses": [{"code": code, "level": "Info"} for code in codes]}


@answer("extension")
def extension(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """With what its program wrote, where that is asked for."""
    kind = f"{MACHINE}/extensions"
    resource = found(state, f"{_machine_id(parts)}/extensions/{parts['extension']}", kind)
    require(state, caller, f"{kind}/read", resource["id"])
    if asked.query.get("$expand") != "instanceView":
        return resource
    message = state.said.get(resource["id"].lower(), "Enable succeeded: \n[stdout]\n\n[stderr]\n")
    succeeded = resource["properties"].get("provisioningState", "Succeeded")
    status = {"code": f"ProvisioningState/{succeeded.lower()}", "level": "Info", "message": message}
    return resource | {"properties": resource["properties"] | {"instanceView": {"statuses": [status]}}}
