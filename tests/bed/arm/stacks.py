"""Deployment stacks of a subscription: each runs a deployment whose name it chooses, and lists what that made.

An update detaches: it refuses to be told that anything is deleted then, which nothing of ours does.

Sources: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deployment-stacks (deny settings, detach), the
examples DeploymentStackSubscription{Create,Get,Delete}.json and DeploymentStackResourceGroupValidate.json beside the
file that requests_stacks.json names (forms, the name of the deployment, 202 with Location), Azure/deployment-stacks#11
(form of an error), #123 (deny settings do not bind the stack itself) and #143 (message of 409), and
https://learn.microsoft.com/azure/role-based-access-control/deny-assignments (what a deny setting becomes)
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from .answers import Parts, answer
from .deployments import put_deployment, validate_deployment
from .exchange import Answer, Asked, NotInTableError, RefusedError
from .resources import polling, remove
from .rights import require
from .runs import FINAL, Run, duration, timestamp
from .state import Caller, State

STACK = "Microsoft.Resources/deploymentStacks"
EVERYONE = "00000000-0000-0000-0000-000000000000"
_DENIED = {"denyDelete": ["*/delete"], "denyWriteAndDelete": ["*/delete", "*/write"]}
_STATES = {"Accepted": "validating", "Running": "deploying"}


def _id(state: State, parts: Parts) -> str:
    return f"/subscriptions/{parts['subscription']}/providers/{STACK}/{parts['name']}"


def _run(state: State, stack: dict[str, Any]) -> Run | None:
    return state.runs.get(str(stack["properties"].get("deploymentId", "")).lower())


@answer("put stack")
def put_stack(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """201 or 200 at once; the deployment has a name with the day and some letters behind the stack's."""
    resource_id, sent = _id(state, parts), asked.body["properties"]
    require(state, caller, f"{STACK}/write", resource_id)
    if set(sent["actionOnUnmanage"].values()) != {"detach"}:
        raise NotInTableError(f"{asked.line}: the stand-in only detaches")
    before = state.resources.get(resource_id.lower())
    mode = sent["denySettings"]["mode"]
    if mode != "none":
        require(state, caller, f"{STACK}/manageDenySetting/action", resource_id)
    if before is not None:
        _replaceable(state, before, asked.body["location"])
    name = f"{parts['name']}-{state.began_at:%Y%m%d}-{uuid.uuid4().hex[:5]}"
    template = {"mode": "Incremental", "template": sent["template"], "parameters": sent.get("parameters")}
    inner = replace(asked, body={"location": asked.body["location"], "properties": template})
    with _spared(state, resource_id):
        put_deployment(state, inner, caller, {**parts, "name": name})
    fields = {
        "deploymentId": f"{state.scope}/providers/Microsoft.Resources/deployments/{name}",
        "actionOnUnmanage": sent["actionOnUnmanage"],
        "denySettings": sent["denySettings"],
        "correlationId": str(uuid.uuid4()),
        "provisioningState": "creating",
    }
    modified = {"lastModifiedAt": timestamp(state, state.now)}
    found = {"location": asked.body["location"], "tags": asked.body.get("tags") or {}, "systemData": modified}
    state.put(resource_id, **found, properties=fields)
    return Answer(200 if before else 201, state.resources[resource_id.lower()], {"Retry-After": state.retry_after})


@answer("validate stack")
def validate_stack(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """202; what the validation of the deployment would say is at Location."""
    resource_id, sent = _id(state, parts), asked.body["properties"]
    require(state, caller, f"{STACK}/validate/action", resource_id)
    template = {"mode": "Incremental", "template": sent["template"], "parameters": sent.get("parameters")}
    inner = replace(asked, body={"location": asked.body["location"], "properties": template})
    with _spared(state, resource_id):
        judged = validate_deployment(state, inner, caller, parts)["properties"]
    fields = {key: judged[key] for key in ("correlationId", "validatedResources")}
    fields |= {"denySettings": sent["denySettings"], "deploymentScope": state.scope}
    body = {"id": resource_id, "name": parts["name"], "type": STACK, "properties": fields}
    return Answer(202, None, polling(state, asked, state.begin(lambda: Answer(200, body)).id, "Location"))


@contextmanager
def _spared(state: State, stack_id: str) -> Iterator[None]:
    """The stack's own deny assignments do not bind it."""
    before = state.deny_assignments
    _allow(state, stack_id)
    try:
        yield
    finally:
        state.deny_assignments = before


def _replaceable(state: State, before: dict[str, Any], location: str) -> None:
    run = _run(state, before)
    if run is not None and run.running:
        text = f"'{before['name']}' could not be deployed as it is already in a non-terminal state 'Deploying'."
        raise RefusedError(409, "DeploymentStackInNonTerminalState", text)
    if before["location"] != location:
        raise RefusedError(409, "InvalidResourceLocation", f"The stack '{before['name']}' exists in another location.")


@answer("stack")
def stack(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Time passes for what runs."""
    resource_id = _id(state, parts)
    require(state, caller, f"{STACK}/read", resource_id)
    found = state.resources.get(resource_id.lower())
    if found is None:
        raise RefusedError(404, "DeploymentStackNotFound", f"The deployment stack '{parts['name']}' was not found.")
    run, fields = _run(state, found), found["properties"]
    if run is None:
        return found
    if run.running:
        state.passes()
    mode = fields["denySettings"]["mode"]
    made = [{"id": each, "status": "managed", "denyStatus": mode} for each in run.created()] if not run.running else []
    fields |= {
        "provisioningState": run.state.lower() if run.state in FINAL else _STATES[run.state],
        "duration": duration((run.ended or state.now) - run.began),
        "resources": made,
        "outputs": run.outputs or {},
    }
    fields.pop("error", None)
    if run.error is not None:
        text = "One or more resources could not be deployed."
        fields["error"] = {"code": "DeploymentStackDeploymentFailed", "message": text, "details": [run.error]}
    _deny(state, found, made if mode in _DENIED else [])
    return found


def _deny(state: State, found: dict[str, Any], made: list[dict[str, Any]]) -> None:
    _allow(state, found["id"])
    for each in made:
        deny(state, found["id"], each["id"], each["denyStatus"])


def deny(state: State, stack_id: str, resource_id: str, mode: str) -> None:
    """What a deny setting of a stack means for one of its resources."""
    fields = {
        "denyAssignmentName": f"Deny assignment created by deployment stack {stack_id}",
        "scope": resource_id, "isSystemProtected": True, "principals": [{"id": EVERYONE, "type": "SystemDefined"}],
        "permissions": [{"actions": _DENIED[mode], "notActions": []}], "excludePrincipals": [],
    }  # fmt: skip
    state.deny_assignments.append({"name": str(uuid.uuid4()), "stack": stack_id, "properties": fields})


def _allow(state: State, stack_id: str) -> None:
    state.deny_assignments = [each for each in state.deny_assignments if each.get("stack") != stack_id]


@answer("delete stack")
def delete_stack(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The stack goes, and its deny assignments; what it made stays where it is told to detach. The record of its
    deployment stays, too.
    """
    resource_id = _id(state, parts)
    require(state, caller, f"{STACK}/delete", resource_id)
    told = {name.lower(): value.lower() for name, value in asked.query.items()}
    goes = [told.get(f"unmanageaction.{each}") == "delete" for each in ("resources", "resourcegroups")]
    found = state.resources.get(resource_id.lower())
    if found is None:
        return Answer(204)
    if found["properties"].get("denySettings", {}).get("mode", "none") != "none":
        require(state, caller, f"{STACK}/manageDenySetting/action", resource_id)

    def finish() -> Answer:
        _allow(state, resource_id)
        for each in found["properties"].get("resources") or []:
            if goes["/providers/" not in each["id"].lower()]:
                remove(state, each["id"])
        state.resources.pop(resource_id.lower(), None)
        return Answer(200)

    return Answer(202, None, polling(state, asked, state.begin(finish).id, "Location"))
