"""Policies and the machines that CycleCloud will create, which are in no template, so that no validation sees them.

CycleCloud makes a machine of the scheduler, and of a node array scale sets or machines: a policy that denies either of
these is not known to deny the nodes. Only what the plan knows of them is sent; neither is a policy that looks at more.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from ... import catalog
from ...plan.deployment import Plan
from ...problems.problem import KeyPath
from ..actions import SUBSCRIPTION, group_of
from ..answers import Item, OddAnswer, below, items, said
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import NotAsked, Refused
from ..requests import resource_manager
from ..requests.rights import RESTRICTIONS

MACHINE, SCALE_SET = "Microsoft.Compute/virtualMachines", "Microsoft.Compute/virtualMachineScaleSets"
_REGISTER = "az provider register --namespace Microsoft.PolicyInsights"
_HINT = "ask who assigned it for an exemption, or for what it allows"
_DISK_KEY = "storageProfile.osDisk.managedDisk.diskEncryptionSet.id"


class Form(Struct, frozen=True):
    """What CycleCloud may make of a node: `content` is what is known of it, as a template would say it."""

    content: Mapping[str, Any]
    api_version: str | None
    known: frozenset[str]
    """Paths of its fields, folded, also of those that are known not to be there."""


class Node(Struct, frozen=True):
    """One kind of machine, in one of these forms."""

    title: str
    path: KeyPath
    forms: tuple[Form, ...]


def nodes(plan: Plan) -> tuple[Node, ...]:
    """Each kind of machine once."""
    found: dict[str, Node] = {}
    for title, path, size, tags in _wanted(plan):
        kinds = (MACHINE,) if path[:2] == ("slurm", "scheduler") else (SCALE_SET, MACHINE)
        forms = tuple(_form(plan, kind, size, dict(tags or plan.tags)) for kind in kinds)
        found.setdefault(str([each.content for each in forms]), Node(title, path, forms))
    return tuple(found.values())


def _wanted(plan: Plan) -> Iterator[tuple[str, KeyPath, str, tuple[tuple[str, str], ...]]]:
    slurm = plan.slurm
    if slurm is None:
        return
    for each in plan.fleet:
        if each.is_node:
            yield each.label, each.path, each.vm_size, slurm.role_of(each).vm_attributes.tags


def _form(plan: Plan, kind: str, size: str, tags: Mapping[str, str]) -> Form:
    security, profile = plan.security, dict[str, Any]()
    profile["securityProfile"] = {"encryptionAtHost": security.encryption_at_host}
    if security.disk_encryption_set_id is not None:
        key = {"diskEncryptionSet": {"id": security.disk_encryption_set_id}}
        profile["storageProfile"] = {"osDisk": {"managedDisk": key}}
    content: dict[str, Any] = {"type": kind, "location": plan.location, "tags": dict(tags)}
    if kind == MACHINE:
        content["properties"] = {"hardwareProfile": {"vmSize": size}, **profile}
        start = "properties"
    else:
        content |= {"sku": {"name": size}, "properties": {"virtualMachineProfile": profile}}
        start = "properties.virtualMachineProfile"
    version = catalog.resource_type(kind).api_version
    return Form(content, version, frozenset({*_paths(content), f"{start}.{_DISK_KEY}".casefold()}))


def _paths(content: Mapping[str, Any], start: str = "") -> Iterator[str]:
    for name, value in content.items():
        yield f"{start}{name}".casefold()
        if isinstance(value, Mapping):
            yield from _paths(value, f"{start}{name}.")


def denials(node: Node, answers: Sequence[Item]) -> tuple[list[str], list[str]]:
    """What denies the node in every form, and what may deny it: the reasons why it is not known."""
    judged = [_judged(form, answer) for form, answer in zip(node.forms, answers, strict=True)]
    always = set.intersection(*(set(denied) for denied, _ in judged))
    sure = [
        f"a policy denies {node.title}, as it looks at {looked}: {by}"
        for by, looked in judged[0][0].items()
        if by in always
    ]
    perhaps = [
        f"{by} denies {node.title} where CycleCloud makes {form.content['type']} of it, as it looks at {looked}"
        for form, (denied, _) in zip(node.forms, judged, strict=True)
        for by, looked in denied.items()
        if by not in always
    ]
    return sure, [*perhaps, *(f"{text} of {node.title}" for _, unsure in judged for text in unsure)]


def _judged(form: Form, answer: Item) -> tuple[dict[str, str], list[str]]:
    """Assignment → the fields by which it denies this form; and what is not known."""
    evaluated = below(answer, "contentEvaluationResult")
    if not isinstance(evaluated, Mapping):
        raise OddAnswer("the answer about policies does not say how it was evaluated")
    denied, unsure = dict[str, str](), list[str]()
    for each in items(evaluated.get("policyEvaluations"), "policies"):
        by = str(below(each, "policyInfo", "policyAssignmentId") or "an assignment that is not named")
        paths = [_field(one) for one in items(below(each, "evaluationDetails", "evaluatedExpressions"), "a policy")]
        others = [path for path in paths if path not in form.known and not path.startswith("tags")]
        if each.get("evaluationResult") != "NonCompliant":
            unsure.append(f"{by} ended as {said(each.get('evaluationResult'))} for a machine")
        elif paths and not others:
            denied[by] = ", ".join(dict.fromkeys(paths))
        else:
            looked = ", ".join(filter(None, others)) or "fields that it does not name"
            unsure.append(f"{by} looks at what only CycleCloud knows, {looked}")
    return denied, unsure


def _field(expression: Item) -> str:
    """What of the machine an expression is about; empty where it says nothing of that."""
    return str(expression.get("path") or "").casefold()


class NodesDenied(Check):
    id = "E4901"
    summary = "A policy denies machines that CycleCloud would create."
    why = (
        "Nodes are in no template, so Azure's validation of the deployment does not see them: the cluster would not"
        " start, or jobs would wait for nodes that never come."
    )
    fix = "Use what the policy allows, another VM size or a tag, or have the owner of the assignment exempt the group."
    source = "https://learn.microsoft.com/rest/api/policyinsights/policy-restrictions/check-at-resource-group-scope"
    question = "whether a policy denies the nodes"
    path = ("slurm",)

    def needed(self, plan: Plan) -> bool:
        return plan.slurm is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each kind of machine; a group that is not there yet has the assignments of the subscription."""
        is_there = reader.find(resource_manager.group(plan.resource_group)) is not None
        scope = group_of(plan) if is_there else SUBSCRIPTION
        for found in reader.together([partial(self._one, reader, scope, each) for each in nodes(plan)]):
            yield from found

    def _one(self, reader: Reader, scope: str, node: Node) -> list[Finding]:
        bodies = [
            {"resourceDetails": {"resourceContent": each.content, "apiVersion": each.api_version}}
            for each in node.forms
        ]
        try:
            answers = reader.together([partial(reader.post, RESTRICTIONS(scope=scope, body=each)) for each in bodies])
            sure, unsure = denials(node, answers)
        except Refused as refused:
            hint = _REGISTER if refused.code.casefold() == "missingsubscriptionregistration" else None
            return [self.not_known(f"{node.title}: {refused}", hint, node.path)]
        except NotAsked as reason:
            return [self.not_known(f"{node.title}: {reason.reason}", reason.hint, node.path)]
        return [
            *(self.finding(node.path, text, _HINT) for text in sure),
            *(self.not_known(reason, path=node.path) for reason in unsure),
        ]
