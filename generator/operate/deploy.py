"""`deploy`: look what would fail, show what would change, begin, and watch."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from ..azure import bicep, deployment, failures, what_if
from ..azure.bicep import Compiled
from ..azure.check import Local
from ..azure.checks import checks
from ..azure.deployment import PAUSE_S, Seen, Show
from ..azure.failures import Failure
from ..azure.first_boot import BootWatch
from ..azure.operation_tree import Part
from ..azure.preflight import Report, preflight
from ..azure.refusals import NotAsked, Refused
from ..azure.requests import resource_manager
from ..azure.what_if import WhatIf
from ..azure.writer import Writer
from ..errors import AzureRefused, CannotRead, ProblemsFound
from ..records import record
from ..words.suggestions import suggestion
from .built import Built
from .secrets import Secrets

AGAIN = "type the same command again; what was begun goes on, and it attaches"


class Decisions:
    """What is decided between the steps, as where nobody can be asked; whoever can, overrides it."""

    def __init__(self, accept: Collection[str] = ()) -> None:
        """`accept` has the ids of findings of preflight that stop nothing."""
        self.accept, self.secrets = accept, Secrets()

    def attaches(self, running: Seen, *, is_same: bool) -> bool:
        """Whether to watch what is being deployed already; `is_same`: it is what the folder holds."""
        del running, is_same
        return True

    def goes_on(self, report: Report) -> bool:
        """Whether to go on after what preflight found."""
        left = self.left(report)
        return left.is_known and not left.fails and not any(each.asks for each in left.findings)

    def left(self, report: Report) -> Report:
        """What was found, without what is accepted."""
        return replace(report, findings=tuple(each for each in report.findings if each.rule_id not in self.accept))

    def agrees(self, answer: WhatIf, subscription: str) -> bool:
        """Whether to do what Azure says it would do; data is not deleted without a question."""
        del subscription
        return not any(row.holds_data for row in answer.of("delete"))


class _Silent:
    def parts(self, parts: tuple[Part, ...]) -> None: ...
    def lost(self, reason: str) -> None: ...
    def note(self, text: str) -> None: ...


@record
class Ended:
    """How a deployment has ended."""

    state: str
    """done, failed or canceled."""
    outputs: Mapping[str, Any]
    failures: tuple[Failure, ...]
    first_boot: str
    """What the server says of it in the end; empty where there is no server, or it is not asked."""


def must_be_checks(ids: Iterable[str]) -> None:
    """Raise CannotRead for what no check of preflight is called."""
    known = [check.id for check in checks()]
    for each in ids:
        if each not in known:
            hint = suggestion(each, known) or "preflight shows the ids of what it finds"
            raise CannotRead(f"--accept {each}: preflight has no check of this id", hint)


def begun(
    found: Built, writer: Writer, decisions: Decisions, *, looks_first: bool = True, reruns_first_boot: bool = False
) -> bool:
    """Whether what is to be watched is being deployed: begun here or before, and decided.

    Raises ProblemsFound where Azure has something of this name that is not ours to deploy, and AzureRefused.
    """

    _must_not_be_a_stack(found, writer)
    content = deployment.content_of(found.folder)
    seen = deployment.look(found.plan, writer)
    if seen is None or seen.state != "running":
        if not _begin(found, writer, decisions, looks_first=looks_first, reruns_first_boot=reruns_first_boot):
            return False
        before, seen = seen, deployment.look(found.plan, writer)
        if seen is None or (before is not None and before.correlation == seen.correlation):
            raise AzureRefused("Azure took the deployment, and has none of this name", "run the command again")
        if seen.content == content:
            return True
    return decisions.attaches(seen, is_same=seen.content == content)


def watch(found: Built, writer: Writer, shown: AbstractContextManager[Show] | None = None) -> Ended:
    """Look until it has ended, shown while it goes on.

    Raises NotAsked when Azure cannot be asked for long; the deployment goes on.
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
    """A stack does not become a plain deployment by being deployed."""
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
                f"the resource group {plan.resource_group} is there already, and is not this deployment's",
                "choose another name, or use the group as it is, with "
                f"azure: {{resource_group: {{existing: {plan.resource_group}}}}} in the definition",
            )


def _begin(found: Built, writer: Writer, decisions: Decisions, *, looks_first: bool, reruns_first_boot: bool) -> bool:

    plan = found.plan
    _must_be_ours(found, writer)
    made = bicep.compiled(found.folder, plan, dict(os.environ) | bicep.unchangeable(plan, writer))
    wanted = [each for each in plan.secrets if "reference" not in made.parameters.get(each.parameter, {})]
    decisions.secrets.must_be_there(wanted)
    if looks_first and not decisions.goes_on(_preflight(found, writer, made)):
        return False
    stand_ins = bicep.with_secrets(made, plan, bicep.stand_ins(plan))
    if not decisions.agrees(what_if.asked(plan, writer, made.template, stand_ins), writer.subscription):
        return False
    parameters = bicep.with_secrets(made, plan, decisions.secrets.values(wanted))
    if reruns_first_boot and plan.server is not None:
        parameters["bootstrapRun"] = {"value": uuid.uuid4().hex[:8]}
    deployment.begin(plan, writer, made.template, parameters, deployment.content_of(found.folder))
    return True


def _preflight(found: Built, writer: Writer, made: Compiled) -> Report:

    return preflight(found.plan, writer, Local(found.folder, os.environ, made=made))


def _first_boot(boot: BootWatch) -> str:
    """What the server says in the end; a server that is not there or does not answer is no failure."""
    try:
        return boot.end(lambda: time.sleep(PAUSE_S)) or ""
    except Refused as refused:
        return "" if refused.is_missing else f"the server cannot be asked for its first boot: {refused.code}"
    except NotAsked as reason:
        return f"the server cannot be asked for its first boot: {reason.reason}"
