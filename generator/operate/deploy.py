"""`deploy`: check what would fail, show what would change, begin, and watch."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from msgspec import Struct

from ..azure import bicep, deployment, failures, what_if
from ..azure.check import Local
from ..azure.checks import checks
from ..azure.deployment import PAUSE_S, Show
from ..azure.failures import Failure
from ..azure.first_boot import BootWatch
from ..azure.operation_tree import Part
from ..azure.preflight import preflight
from ..azure.refusals import NotAsked, Refused
from ..azure.requests import resource_manager
from ..azure.writer import Writer
from ..errors import AzureRefused, CannotRead, ProblemsFound
from ..words.suggestions import suggestion
from .built import Built
from .decisions import Deploying

AGAIN = "run the same command again: a deployment that has begun goes on, and the command attaches to it"


class _Silent:
    def parts(self, parts: tuple[Part, ...]) -> None: ...
    def lost(self, reason: str) -> None: ...
    def note(self, text: str) -> None: ...


class Ended(Struct, frozen=True):
    state: str
    """`done`, `failed` or `canceled`."""
    outputs: Mapping[str, Any]
    failures: tuple[Failure, ...]
    first_boot: str
    """What the server says of it; empty where there is no server, or it was not asked."""


def must_be_checks(ids: Iterable[str]) -> None:
    """Raise CannotRead for an id that no check of preflight has."""
    known = [check.id for check in checks()]
    for each in ids:
        if each not in known:
            hint = suggestion(each, known) or "preflight shows the ids of what it finds"
            raise CannotRead(f"--accept {each}: preflight has no check of this id", hint)


def begun(
    found: Built, writer: Writer, decisions: Deploying, *, looks_first: bool = True, reruns_first_boot: bool = False
) -> bool:
    """Begin the deployment, unless it runs already; return whether there is one to watch.

    Raises AzureRefused, and ProblemsFound where Azure has something of this name that belongs to something else.
    """
    _must_not_be_a_stack(found, writer)
    content = deployment.content_of(found.folder)
    seen = deployment.look(found.plan, writer)
    if seen is None or seen.state != "running":
        if not _begin(found, writer, decisions, looks_first=looks_first, reruns_first_boot=reruns_first_boot):
            return False
        before, seen = seen, deployment.look(found.plan, writer)
        if seen is None or (before is not None and before.correlation == seen.correlation):
            raise AzureRefused("Azure accepted the deployment, but has none of this name", "run the command again")
        if seen.content == content:
            return True
    return decisions.attaches(seen, is_same=seen.content == content)


def watch(found: Built, writer: Writer, shown: AbstractContextManager[Show] | None = None) -> Ended:
    """Watch a deployment until it has ended.

    Raises NotAsked when Azure cannot be reached for a long time; the deployment goes on.
    """
    plan = found.plan
    boot = BootWatch(plan, writer)
    with shown or nullcontext(_Silent()) as show:
        seen, parts = deployment.watch(plan, writer, show, boot)
    said = _first_boot(boot)
    why = [
        failure
        for part, cause in (deployment.reasons(seen, parts) if seen.state == "failed" else ())
        for failure in failures.explained([cause], part=part, name=plan.definition_name, group=plan.resource_group)
    ]
    return Ended(seen.state, seen.outputs, tuple(why), said)


def _must_not_be_a_stack(found: Built, writer: Writer) -> None:
    name = found.plan.deployment_name
    if deployment.is_stack(found.plan, writer):
        raise ProblemsFound(
            f"{name} is a deployment stack",
            f"az stack sub delete --name {name} --action-on-unmanage detachAll --yes ends the stack, and deletes "
            "nothing else; or update it by hand: operations.md, Deployment stack, has the lines",
        )


def _must_be_ours(found: Built, writer: Writer) -> None:
    plan = found.plan
    group = writer.find(resource_manager.group(plan.resource_group))
    if plan.creates_resource_group and group is not None:
        owner = (group.get("tags") or {}).get(plan.cleanup.tag)
        if owner != plan.name:
            raise ProblemsFound(
                f"the resource group {plan.resource_group} already exists and belongs to something else",
                "choose a different name, or use the group as it is, with "
                f"azure: {{resource_group: {{existing: {plan.resource_group}}}}} in the definition",
            )


def _begin(found: Built, writer: Writer, decisions: Deploying, *, looks_first: bool, reruns_first_boot: bool) -> bool:
    plan = found.plan
    _must_be_ours(found, writer)
    made = bicep.compiled(found.folder, plan, dict(os.environ) | bicep.unchangeable(plan, writer))
    wanted = [each for each in plan.secrets if "reference" not in made.parameters.get(each.parameter, {})]
    decisions.secrets.must_be_there(wanted)
    if looks_first:
        report = preflight(plan, writer, Local(found.folder, os.environ, made=made))
        if not decisions.goes_on(report):
            return False
    stand_ins = bicep.with_secrets(made, plan, bicep.stand_ins(plan))
    if not decisions.agrees(what_if.asked(plan, writer, made.template, stand_ins), writer.subscription):
        return False
    parameters = bicep.with_secrets(made, plan, decisions.secrets.values(wanted))
    if reruns_first_boot and plan.server is not None:
        parameters["bootstrapRun"] = {"value": uuid.uuid4().hex[:8]}
    deployment.begin(plan, writer, made.template, parameters, deployment.content_of(found.folder))
    return True


def _first_boot(boot: BootWatch) -> str:
    """Return what the server says of its first boot. A server that does not exist or answer is no failure."""
    try:
        return boot.end(lambda: time.sleep(PAUSE_S)) or ""
    except Refused as refused:
        return "" if refused.is_missing else f"the server cannot be asked for its first boot: {refused.code}"
    except NotAsked as reason:
        return f"the server cannot be asked for its first boot: {reason.reason}"
