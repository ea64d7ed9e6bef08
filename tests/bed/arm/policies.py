"""Policies: which hold at a scope, and what they say of a resource that is not there yet.

`State.policies` has the latter, each an assignment and its conditions.

A condition is a path, an operator and a value; all together deny. Answer: `CheckRestrictionsResult` of
Azure/azure-rest-api-specs:specification/policyinsights/resource-manager/Microsoft.PolicyInsights/stable/2022-03-01/checkPolicyRestrictions.json
and `PolicyEvaluationDetails` of stable/2019-10-01/policyStates.json beside it.
"""

from __future__ import annotations

from typing import Any

from .answers import Parts, answer
from .exchange import Asked, RefusedError
from .resources import group_exists
from .state import Caller, State

Condition = tuple[str, str, Any]
_ASSIGNMENTS = "Microsoft.Authorization/policyAssignments"


@answer("policy assignments")
def policy_assignments(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """Those of the scope and above it.

    Source: https://learn.microsoft.com/rest/api/policy-authorization/policy-assignments/list-for-resource-group
    """
    scope = parts["scope"].lower()
    if "/resourcegroups/" in scope and "/".join(scope.split("/")[:5]) not in state.resources:
        raise RefusedError(404, "ResourceGroupNotFound", f"Resource group '{scope.split('/')[4]}' could not be found.")
    return [each for each in state.of_type(_ASSIGNMENTS) if scope.startswith(each["properties"]["scope"].lower())]


@answer("policy restrictions")
def policy_restrictions(state: State, asked: Asked, caller: Caller, parts: Parts) -> Any:
    """The evaluations of what denies the content; none for the rest."""
    group_exists(state, asked.path)
    if state.providers["Microsoft.PolicyInsights"]["registrationState"] != "Registered":
        text = "The subscription is not registered to use namespace 'Microsoft.PolicyInsights'."
        raise RefusedError(409, "MissingSubscriptionRegistration", text)
    content = asked.body["resourceDetails"]["resourceContent"]
    found = [_evaluation(name, rules, content) for name, rules in state.policies.items() if _denies(rules, content)]
    return {"fieldRestrictions": [], "contentEvaluationResult": {"policyEvaluations": found}}


def _value(content: Any, path: str) -> Any:
    for name in path.split("."):
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _denies(rules: list[Condition], content: Any) -> bool:
    """Compared without case: https://learn.microsoft.com/azure/governance/policy/concepts/definition-structure-policy-rule"""
    return all(_holds(operator, str(_value(content, path)), wanted) for path, operator, wanted in rules)


def _holds(operator: str, value: str, wanted: Any) -> bool:
    if operator == "notIn":
        return value.lower() not in [str(each).lower() for each in wanted]
    return (value.lower() == str(wanted).lower()) == (operator == "equals")


def _evaluation(name: str, rules: list[Condition], content: Any) -> dict[str, Any]:
    expressions = [
        {"result": "True", "expressionKind": "Field", "expression": path, "path": path,
         "expressionValue": _value(content, path), "targetValue": wanted, "operator": operator}
        for path, operator, wanted in rules
    ]  # fmt: skip
    at = "/providers/Microsoft.Management/managementGroups/corp/providers/Microsoft.Authorization/policyAssignments"
    return {
        "policyInfo": {"policyAssignmentId": f"{at}/{name}"},
        "evaluationResult": "NonCompliant",
        "evaluationDetails": {"evaluatedExpressions": expressions},
    }
