"""Policies that would deny what CycleCloud creates later."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...plan.types import Plan
from ..actions import SUBSCRIPTION, group_of
from ..check import Check, Finding
from ..findings.node_policies import API_VERSION, Node, denials, nodes
from ..reader import Reader
from ..refusals import NotAsked, Refused
from ..requests.policies import RESTRICTIONS
from ..requests.subscriptions import GROUP

_REGISTER = "az provider register --namespace Microsoft.PolicyInsights"


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
        """Whether there is a cluster."""
        return plan.slurm is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each kind of machine; a group that is not there yet has the assignments of the subscription."""
        is_there = reader.find(GROUP(group=plan.resource_group)) is not None
        scope = group_of(plan) if is_there else SUBSCRIPTION
        for found in reader.together([partial(self._one, reader, scope, each) for each in nodes(plan)]):
            yield from found

    def _one(self, reader: Reader, scope: str, node: Node) -> list[Finding]:
        bodies = [
            {"resourceDetails": {"resourceContent": each.content, "apiVersion": API_VERSION}} for each in node.forms
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
            *(self.finding(*found) for found in sure),
            *(self.not_known(reason, path=node.path) for reason in unsure),
        ]
