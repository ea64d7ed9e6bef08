"""Begins a deployment, finds one that runs, and looks at it until it has ended.

There is no state file: the record of the deployment in Azure says what runs, and its tags which content was sent.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ..files.file import MANIFEST
from ..plan.deployment import Plan
from . import az_lines
from .first_boot import BootWatch
from .operation_tree import Part, State, Tree, failed, state_of
from .reader import Reader
from .refusals import Cause, NotAsked, Refused, causes
from .requests import resource_manager
from .what_if import body_of
from .writer import Writer

CONTENT_TAG = "cycleforge-content"
"""Tag of a deployment: the digest of the folder that was sent."""
PAUSE_S = 10.0
"""Between two looks; a look is one request for each module that has not ended."""
LOST_S = 900.0
"""For so long a connection that is lost is tried again."""


class Seen(Struct, frozen=True):
    id: str
    state: State
    began: str
    """When it began, as Azure writes it."""
    content: str
    """Digest of the folder that was sent; empty where nobody wrote it."""
    correlation: str
    """Tells two deployments of one name apart."""
    outputs: Mapping[str, Any]
    causes: tuple[Cause, ...]


class Show(Protocol):
    """Who is told what goes on."""

    def parts(self, parts: tuple[Part, ...]) -> None:
        """How far each part is."""

    def lost(self, reason: str) -> None:
        """Azure cannot be asked at the moment."""

    def note(self, text: str) -> None:
        """What is said once."""


def content_of(folder: Path) -> str:
    """What tells the content of a built folder from another: the manifest has the digest of every file."""
    return hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()[:16]


def look(plan: Plan, reader: Reader) -> Seen | None:
    """Return the deployment of this name, asked anew; None if there has never been one."""
    reader.forget()
    body = reader.find(resource_manager.deployment(plan.deployment_name))
    return None if body is None else _seen(plan, reader, body)


def last(plan: Plan, reader: Reader) -> Seen | None:
    """Return the same, or the deployment stack of this name, which was created by hand."""
    reader.forget()
    stack, plain = reader.together(
        [lambda: _stack(plan, reader), lambda: reader.find(resource_manager.deployment(plan.deployment_name))]
    )
    body = stack or plain
    return None if body is None else _seen(plan, reader, body)


def is_stack(plan: Plan, reader: Reader) -> bool:
    """Return True where a deployment stack has this name."""
    reader.forget()
    return _stack(plan, reader) is not None


def _stack(plan: Plan, reader: Reader) -> Mapping[str, Any] | None:
    try:
        return reader.find(resource_manager.stack(reader.subscription, plan.deployment_name))
    except Refused:  # whoever may not read stacks has made none
        return None


def _seen(plan: Plan, reader: Reader, body: Mapping[str, Any]) -> Seen:
    properties, data = body.get("properties"), body.get("systemData")
    if not isinstance(properties, Mapping) or not properties.get("provisioningState"):
        raise NotAsked("Azure's answer does not say how the deployment is")
    of_stack = data.get("lastModifiedAt") if isinstance(data, Mapping) else None
    outputs = properties.get("outputs")
    return Seen(
        id=f"/subscriptions/{reader.subscription}/providers/Microsoft.Resources/deployments/{plan.deployment_name}",
        state=state_of(properties["provisioningState"]),
        began=str(properties.get("timestamp") or of_stack or "an unknown time"),
        content=str((body.get("tags") or {}).get(CONTENT_TAG, "")),
        correlation=str(properties.get("correlationId", "")),
        outputs=outputs if isinstance(outputs, Mapping) else {},
        causes=causes(properties.get("error")),
    )


def begin(plan: Plan, writer: Writer, template: Mapping[str, Any], parameters: Mapping[str, Any], content: str) -> None:
    """Send it, once. An answer that is lost is looked up, never sent again: it may be running.

    Raises Refused, and NotAsked where it is not known whether it was begun.
    """
    before = look(plan, writer)
    body = body_of(plan, template, parameters) | {"tags": {plan.cleanup.tag: plan.name, CONTENT_TAG: content}}
    try:
        writer.send(resource_manager.deploy(plan.deployment_name, body, az_lines.deployment(plan, "create")))
    except Refused as refused:
        # Another one was faster, or an attempt of ours whose answer was lost.
        if refused.code.casefold() != "deploymentactive":
            raise
    except NotAsked as lost:
        found = look(plan, writer)
        if found is None or (before is not None and found.correlation == before.correlation):
            reason = f"{lost.reason}; Azure has not started the deployment"
            raise NotAsked(reason, lost.hint or "run the same command again") from None


def watch(
    plan: Plan,
    writer: Writer,
    show: Show,
    boot: BootWatch,
    pause: Callable[[float], None] = time.sleep,
) -> tuple[Seen, tuple[Part, ...]]:
    """Look until it has ended. Raises NotAsked when Azure cannot be asked for long; the deployment goes on."""
    tree = Tree(lambda deployment_id: writer.pages(resource_manager.operations(deployment_id)))
    lost_s = 0.0
    while True:
        try:
            seen = look(plan, writer)
            if seen is None:
                raise Refused(404, {"error": {"code": "DeploymentNotFound", "message": "someone deleted its record"}})
            parts = tree.of(seen.id)
            lost_s = 0.0
            for text in boot.look(parts):
                show.note(text)
            show.parts(boot.placed(parts))
            if seen.state != "running":
                return seen, parts
        except NotAsked as reason:
            if lost_s >= LOST_S:
                hint = "Azure continues; run the same command to reattach"
                raise NotAsked(reason.reason, f"{reason.hint}. {hint}" if reason.hint else hint) from None
            lost_s += PAUSE_S
            show.lost(reason.reason)
        pause(PAUSE_S)


def reasons(seen: Seen, parts: tuple[Part, ...]) -> list[tuple[str, Cause]]:
    """What failed and why: the innermost parts, else what the deployment itself says."""
    found = [(part.title, cause) for part in failed(parts) for cause in part.causes]
    return found or [("", cause) for cause in seen.causes]
