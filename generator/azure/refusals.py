"""What Azure said no to, and what could not be asked at all.

Bodies: https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations and the error of
https://github.com/Azure/azure-rest-api-specs/blob/main/specification/common-types/resource-management/v6/types.json.
A refusal deep in a deployment comes as JSON in the text of a refusal, which is JSON in the text of another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

ODD = (LookupError, TypeError, ValueError, AttributeError)
"""What reading an answer of another form than Azure documents raises."""
_DEEPEST = 12
_LONGEST = 2000
_MISSING = frozenset(
    {
        "resourcenotfound", "resourcegroupnotfound", "notfound", "parentresourcenotfound",
        "deploymentnotfound", "deploymentstacknotfound",
    }
)  # fmt: skip


class Cause(Struct, frozen=True):
    """One refusal of the innermost kind: the code that can be looked up, and the sentence."""

    code: str
    message: str
    target: str = ""
    policy: str = ""
    """The policy that denies it and its assignment, in words."""


class NotAsked(Exception):  # noqa: N818 - named by what happened
    """Nobody answered as Azure does: no connection, no token, a proxy's page. The reason holds no secret."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


class Refused(Exception):  # noqa: N818 - named by what happened
    """Azure answered with an error: the innermost of it is `code` and `message`, all of them are `causes`."""

    def __init__(self, status: int, body: object) -> None:
        self.status, self.body = status, body
        self.causes = causes(body)
        first = self.causes[0] if self.causes else Cause(f"HTTP {status}", "the answer names no reason")
        self.code, self.message = first.code, first.message
        super().__init__(f"{self.code}: {self.message}")

    @property
    def is_missing(self) -> bool:
        """Whether what was asked for does not exist, in Azure's own words; a proxy's 404 does not say that."""
        return self.status == 404 and self.code.casefold() in _MISSING


def causes(body: object) -> tuple[Cause, ...]:
    """The innermost errors of a body, each once, in their order."""
    return tuple(dict.fromkeys(_innermost(body, 0)))


def _innermost(value: object, depth: int) -> Iterator[Cause]:
    error = _error(value)
    if error is None or depth > _DEEPEST:
        return
    inside = [*_list(error.get("details")), error.get("innererror"), _decoded(error.get("message"))]
    found = [cause for each in inside for cause in _innermost(each, depth + 1)]
    if found:
        yield from found
    elif error.get("code") or error.get("message"):
        text = " ".join(str(error.get("message") or "no reason is given").split())
        code, target = str(error.get("code") or "unknown"), str(error.get("target") or "")
        yield Cause(code, text[:_LONGEST], target, _policy(error))


def _policy(error: Mapping[str, Any]) -> str:
    """Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-policy-requestdisallowedbypolicy"""
    for each in _list(error.get("additionalInfo")):
        info = each.get("info") if isinstance(each, dict) and each.get("type") == "PolicyViolation" else None
        if isinstance(info, dict):
            policy = info.get("policyDefinitionDisplayName") or info.get("policyDefinitionName")
            by = info.get("policyAssignmentDisplayName") or info.get("policyAssignmentName")
            return f"the policy '{policy}', assigned as '{by}' ({info.get('policyAssignmentId')})"
    return ""


def _error(value: object) -> Mapping[str, Any] | None:
    """The error in a value: of `{"error": …}`, of a failed operation, or the value itself."""
    if not isinstance(value, dict):
        return None
    inner = value.get("error")
    if isinstance(inner, dict):
        return inner
    return value if "message" in value or "code" in value or "details" in value else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _decoded(text: object) -> object:
    """What a message is, where it is JSON again."""
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
