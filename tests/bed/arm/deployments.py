"""Deployments of a subscription or a group: create, read, list, cancel, delete, validate, what-if, their operations.

Sources: https://learn.microsoft.com/rest/api/resources/deployments and …/deployment-operations; errors:
microsoft/mwt-ds#29 (DeploymentActive), https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-deployment-location
"""

from __future__ import annotations

import uuid
from typing import Any

from tests.bed.bicep.values import EvaluationError, Scope

from .answers import Parts, answer
from .exchange import Answer, Asked, NotInTableError, RefusedError
from .expansion import Expansion, Static, expand, refused
from .live import DEPLOYMENT, Live, invalid
from .resources import group_exists, polling
from .rights import require
from .runs import FINAL, Run, timestamp
from .state import Caller, State
from .whatif import changes


def _scope(state: State, parts: Parts) -> Scope:
    scope = Scope(parts["subscription"], parts.get("group"))
    group_exists(state, f"{scope.id}/x")
    return scope


def _id(state: State, parts: Parts) -> str:
    return f"{_scope(state, parts).id}/providers/{DEPLOYMENT}/{parts['name']}"


def _run(state: State, parts: Parts) -> Run:
    found = state.runs.get(_id(state, parts).lower())
    if found is None:
        raise RefusedError(404, "DeploymentNotFound", f"Deployment '{parts['name']}' could not be found.")
    return found


def _allowed(state: State, caller: Caller, parts: Parts, action: str) -> None:
    require(state, caller, f"{DEPLOYMENT}/{action}", _id(state, parts))


# ---- what is sent


def _given(state: State, fields: dict[str, Any]) -> dict[str, Any]:
    """Values of the parameters; those of a key vault are looked up.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/key-vault-parameter
    """
    found = {}
    for name, one in (fields.get("parameters") or {}).items():
        if "reference" not in one:
            found[name] = one.get("value")
            continue
        vault, secret = one["reference"]["keyVault"]["id"], one["reference"]["secretName"]
        value = state.secrets.get((vault.lower(), secret))
        if value is None:
            raise RefusedError(
                400,
                "KeyVaultParameterReferenceNotFound",
                f"The specified KeyVault '{vault}' could not be found, or it has no secret '{secret}'.",
            )
        found[name] = value
    return found


def _fields(asked: Asked, scope: Scope) -> dict[str, Any]:
    fields: dict[str, Any] = asked.body["properties"]
    if fields["mode"] != "Incremental" or "template" not in fields:
        raise NotInTableError(f"{asked.line}: the stand-in takes a template, mode Incremental")
    if scope.group is None and not asked.body.get("location"):
        raise RefusedError(400, "LocationRequired", "The 'location' property is required for this deployment.")
    return fields


def _location(state: State, asked: Asked, scope: Scope) -> str:
    if scope.group is None:
        return str(asked.body["location"])
    return str(state.resources[scope.id.lower()]["location"])


def _expansion(state: State, asked: Asked, parts: Parts) -> Expansion:
    scope = _scope(state, parts)
    fields = _fields(asked, scope)
    location = _location(state, asked, scope)
    try:
        static = Static.made(state, fields["template"], scope, _given(state, fields), parts["name"], location)
    except EvaluationError as error:
        raise invalid(str(error)) from None
    return expand(static, _id(state, parts))


# ---- create


@answer("put deployment")
def put_deployment(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    _allowed(state, caller, parts, "write")
    scope, resource_id = _scope(state, parts), _id(state, parts)
    fields = _fields(asked, scope)
    location = _location(state, asked, scope)
    before = state.runs.get(resource_id.lower())
    _replaceable(state, before, scope, location)
    found = _expansion(state, asked, parts)
    refusal = refused(state, caller, parts["name"], found)
    if refusal is not None:
        raise refusal
    live = Live.made(state, fields["template"], scope, _given(state, fields), parts["name"], location)
    tags = asked.body.get("tags") or {}
    run = Run(resource_id, live, location if scope.group is None else None, str(uuid.uuid4()), tags)
    run.begin()
    at = f"{asked.base}{resource_id}/operationStatuses/{run.correlation_id}?api-version={asked.query['api-version']}"
    headers = {"Azure-AsyncOperation": at, "Retry-After": state.retry_after}
    return Answer(201 if before is None else 200, run.document(), headers)


def _replaceable(state: State, before: Run | None, scope: Scope, location: str) -> None:
    if before is None:
        return
    name = before.live.name
    began, expires = timestamp(state, before.began), timestamp(state, before.began + 7 * 24 * 180)
    if before.running:
        raise RefusedError(
            409,
            "DeploymentActive",
            f"Unable to edit or replace deployment '{name}': previous deployment from '{began}' is still active "
            f"(expiration time is '{expires}'). Please see https://aka.ms/arm-deploy for usage details.",
        )
    if scope.group is None and before.location != location:
        raise RefusedError(
            409,
            "InvalidDeploymentLocation",
            f"Invalid deployment location '{location}'. The deployment '{name}' already exists in location "
            f"'{before.location}'.",
        )


# ---- read


@answer("deployment")
def deployment(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Time passes for a deployment whose record is asked."""
    _allowed(state, caller, parts, "read")
    left = state.resources.get(_id(state, parts).lower())
    if left is not None:
        return left
    run = _run(state, parts)
    if run.running:
        state.passes()
    return Answer(200, run.document(), {"Retry-After": state.retry_after} if run.running else {})


@answer("deployment there")
def deployment_there(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    return Answer(204 if _id(state, parts).lower() in state.runs else 404)


@answer("deployment status")
def deployment_status(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The address in Azure-AsyncOperation."""
    run = _run(state, parts)
    if run.running:
        state.passes()
    body: dict[str, Any] = {"status": run.state if run.state in FINAL else "Running"}
    if run.error is not None:
        body["error"] = run.error
    return Answer(200, body, {"Retry-After": state.retry_after} if run.running else {})


@answer("deployments")
def deployments(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    scope = _scope(state, parts)
    require(state, caller, f"{DEPLOYMENT}/read", scope.id)
    start = f"{scope.id}/providers/{DEPLOYMENT}/".lower()
    left = [each for key, each in state.resources.items() if key.startswith(start)]
    return [run.document() for key, run in state.runs.items() if key.startswith(start)] + left


@answer("deployment operations")
def deployment_operations(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    require(state, caller, f"{DEPLOYMENT}/operations/read", _id(state, parts))
    found = _run(state, parts).operations()
    top = asked.query.get("$top")
    return found[: int(top)] if top else found


# ---- end


@answer("cancel deployment")
def cancel_deployment(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    _allowed(state, caller, parts, "cancel/action")
    run = _run(state, parts)
    if not run.running:
        raise RefusedError(
            409,
            "DeploymentCannotBeCancelled",
            f"The deployment '{parts['name']}' cannot be cancelled because it is in the state '{run.state}'.",
        )
    run.cancel()
    return Answer(204)


@answer("delete deployment")
def delete_deployment(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The record goes, nothing that it created."""
    _allowed(state, caller, parts, "delete")
    resource_id = _id(state, parts)
    if state.resources.pop(resource_id.lower(), None) is not None:
        return Answer(200)
    run = state.runs.get(resource_id.lower())
    if run is None:
        return Answer(204)
    if run.running:
        raise RefusedError(409, "DeploymentBeingProcessed", f"The deployment '{parts['name']}' is still running.")

    def finish() -> Answer:
        state.runs.pop(resource_id.lower(), None)
        return Answer(204)

    return Answer(202, None, polling(state, asked, state.begin(finish).id, "Location"))


# ---- look ahead


@answer("validate deployment")
def validate_deployment(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    _allowed(state, caller, parts, "validate/action")
    found = _expansion(state, asked, parts)
    refusal = refused(state, caller, parts["name"], found)
    if refusal is not None:
        raise refusal
    listed = [{"id": str(each.id)} for each in found.resources if each.unsupported is None]
    fields = {
        "mode": "Incremental", "provisioningState": "Succeeded", "templateHash": "0",
        "correlationId": str(uuid.uuid4()), "duration": "PT0S", "timestamp": timestamp(state, state.now),
        "validatedResources": listed, "diagnostics": found.diagnostics,
    }  # fmt: skip
    return {"id": _id(state, parts), "name": parts["name"], "type": DEPLOYMENT, "properties": fields}


@answer("what-if")
def what_if(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202; the result is at Location."""
    _allowed(state, caller, parts, "whatIf/action")
    if state.what_if:
        return Answer(202, None, polling(state, asked, state.begin(lambda: _told(state)).id, "Location"))
    found = _expansion(state, asked, parts)
    settings = asked.body["properties"].get("whatIfSettings") or {}
    only_ids = settings.get("resultFormat") == "ResourceIdOnly"

    def finish() -> Answer:
        refusal = refused(state, caller, parts["name"], found)
        if refusal is not None:
            return Answer(200, {"status": "Failed", "error": refusal.error})
        listed = changes(state, found, only_ids=only_ids)
        fields = {"changes": listed, "potentialChanges": [], "diagnostics": found.diagnostics}
        return Answer(200, {"status": "Succeeded", "properties": fields})

    return Answer(202, None, polling(state, asked, state.begin(finish).id, "Location"))


def _told(state: State) -> Answer:
    """What a test says."""
    error = state.what_if.get("error")
    if error is not None:
        return Answer(200, {"status": "Failed", "error": error})
    return Answer(200, {"status": "Succeeded", "properties": {"changes": []} | state.what_if})
