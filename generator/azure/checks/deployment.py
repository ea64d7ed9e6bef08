"""The deployment as a whole: Bicep, the built folder, and what Azure says of it without doing it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from ... import catalog
from ...errors import CannotRead, CycleForgeError, ProgramMissing
from ...plan.deployment import Plan
from ...problems.problem import KeyPath
from .. import az_lines, bicep, failures
from ..check import Finding, Local, LocalCheck
from ..reader import Reader
from ..refusals import Cause, NotAsked, Refused
from ..requests import resource_manager
from ..resource_ids import resource
from ..what_if import body_of

_VERSION = re.compile(r"version (\d+)\.(\d+)\.(\d+)")
_VERSION_S = 60
_LIMIT_S = 600
_POLICY = "requestdisallowedbypolicy"
_NO_ANSWER = frozenset({401, 403, 404, 408, 409, 429})
"""Statuses that say something of the caller or of the moment, not of the deployment."""


def oldest_bicep() -> str:
    """The first version that knows the language of the templates."""
    return str(catalog.limits().bicep.value)


def _validated(plan: Plan, reader: Reader, local: Local) -> Mapping[str, Any]:
    """Azure's own judgement of the built folder; raises Refused with what it would refuse. Secrets are stand-ins."""
    if not (local.folder / "main.bicepparam").is_file():
        raise NotAsked(f"{local.folder} is not built", f"cycleforge build {plan.definition_name}")
    made = local.made or _compiled(plan, reader, local)
    body = body_of(plan, made.template, bicep.with_secrets(made, plan, bicep.stand_ins(plan)))
    call = resource_manager.validate(plan.deployment_name, body, az_lines.deployment(plan, "validate"))
    answer = reader.post(call, _LIMIT_S)
    if answer.get("error"):
        raise Refused(400, answer)
    if "properties" not in answer:
        raise NotAsked("Azure's answer to the validation does not mention the deployment")
    return answer


def _compiled(plan: Plan, reader: Reader, local: Local) -> bicep.Compiled:
    try:
        return bicep.compiled(local.folder, plan, dict(local.environment) | bicep.unchangeable(plan, reader))
    except (CannotRead, ProgramMissing) as error:
        raise NotAsked(error.message, error.hint) from None


def _causes(plan: Plan, reader: Reader, local: Local) -> tuple[Cause, ...]:
    """What Azure would refuse, asked once for all checks."""
    try:
        reader.once("validation", lambda: _validated(plan, reader, local))
    except Refused as refused:
        if refused.status in _NO_ANSWER or refused.status >= 500:
            raise
        return refused.causes or (Cause(refused.code, refused.message),)
    return ()


def _path(plan: Plan, target: str) -> KeyPath:
    """The key that asks for a resource, by its type."""
    kind = resource(target).type.casefold()
    return next((each.path for each in plan.created_types if each.type.casefold() == kind), ())


class BicepMissing(LocalCheck):
    id = "E4801"
    summary = "Bicep is not installed, or is too old for the language of the templates."
    why = "Without it nothing can be deployed; an old one stops at words that it does not know."
    fix = "`az bicep install`, or `az bicep upgrade` where one is there."
    source = "https://github.com/Azure/bicep/releases/tag/v0.27.1"
    question = "which Bicep is installed"

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        """Its version. Source: `bicep --version` of https://github.com/Azure/bicep/blob/main/src/Bicep.Cli"""
        del plan, reader
        try:
            program = bicep.program(local.environment)
        except ProgramMissing as error:
            yield self.finding((), error.message, error.hint)
            return
        try:
            done = subprocess.run(
                [program, "--version"],
                env=dict(local.environment),
                capture_output=True,
                text=True,
                timeout=_VERSION_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotAsked(f"{program} --version does not end well: {type(error).__name__}") from None
        found = _VERSION.search(done.stdout)
        if done.returncode != 0 or found is None:
            raise NotAsked(f"{program} --version does not say a version", "az bicep upgrade")
        if tuple(map(int, found.groups())) < tuple(map(int, oldest_bicep().split("."))):
            text = f"{program} is Bicep {'.'.join(found.groups())}; the templates need {oldest_bicep()}"
            yield self.finding((), text, "az bicep upgrade")


class FolderOutdated(LocalCheck):
    id = "W4802"
    summary = "The built folder is not what the definition says now."
    why = "The folder is what gets deployed, and what Azure has judged here."
    fix = "`cycleforge diff NAME` shows what is different, `cycleforge build NAME` brings it up to date."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/bicep/parameter-files"
    question = "whether the built folder is what the definition says"

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        """The difference; a folder that is not there differs in nothing."""
        del reader
        try:
            difference = local.difference()
        except CycleForgeError as error:
            raise NotAsked(error.message, error.hint) from None
        if difference is not None:
            yield self.finding((), difference, f"cycleforge build {plan.definition_name}")


class DeploymentRefused(LocalCheck):
    id = "E4803"
    summary = "Azure judges the deployment as one that it would refuse."
    why = "Its validation takes the templates apart and asks each provider, without creating anything."
    fix = "Change what the finding names. Azure's own sentence stands behind ours."
    source = (
        "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-invalid-template-deployment"
    )
    question = "whether Azure would accept the deployment"

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        """Every innermost cause but those of policies."""
        causes = [each for each in _causes(plan, reader, local) if each.code.casefold() != _POLICY]
        for each in failures.explained(causes, name=plan.definition_name, group=plan.resource_group):
            name = f"{resource(each.part).name or each.part}: " if each.part else ""
            text = (
                f"{name}{each.words} ({each.code}: {each.message})"
                if each.words
                else f"{name}{each.code}: {each.message}"
            )
            yield self.finding(_path(plan, each.part), f"Azure would refuse {text}", each.fix)


class DeniedByPolicy(LocalCheck):
    id = "E4804"
    summary = "A policy denies a resource of the deployment."
    why = "Azure refuses the resource while the deployment runs, when others are there already."
    fix = (
        "Have the owner of the assignment exempt the group, or say in `landing_zone` what it demands, and follow that."
    )
    source = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-policy-requestdisallowedbypolicy"
    question = "whether a policy denies something"

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        for each in _causes(plan, reader, local):
            if each.code.casefold() == _POLICY:
                target = resource(each.target)
                what = f"{target.name} ({target.type})" if target.type else each.target or "a resource"
                text = f"{each.policy} denies {what}" if each.policy else each.message
                hint = "ask its owner for an exemption, or for what it demands: docs/landing-zones.md names the keys"
                yield self.finding(_path(plan, each.target), text, hint)
