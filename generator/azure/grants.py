"""What permissions, deny assignments and conditions mean.

Sources: https://learn.microsoft.com/azure/role-based-access-control/overview,
https://learn.microsoft.com/azure/role-based-access-control/deny-assignments and, for the wildcard,
https://learn.microsoft.com/azure/role-based-access-control/role-definitions#actions
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

EVERYONE = "00000000-0000-0000-0000-000000000000"
_CONDITION_LISTS = re.compile(r"(GuidEquals|GuidNotEquals)\s*\{([^}]*)\}", re.IGNORECASE)
Permission = Mapping[str, Any]


def grants(permission: Permission, action: str) -> bool:
    """Whether one role gives an action: it is among its actions, and not among its notActions."""
    return _any(permission, "actions", action) and not _any(permission, "notActions", action)


def missing(permissions: Iterable[Permission], actions: Iterable[str]) -> tuple[str, ...]:
    """The actions that none of the roles gives."""
    every = tuple(permissions)
    return tuple(action for action in actions if not any(grants(each, action) for each in every))


def denied(assignment: Mapping[str, Any], actions: Iterable[str], scope: str) -> tuple[str, ...]:
    """The actions that a deny assignment takes from those whom it concerns, at a scope."""
    fields = assignment["properties"]
    is_inherited = str(fields.get("scope", "")).rstrip("/").casefold() != scope.rstrip("/").casefold()
    if is_inherited and fields.get("doNotApplyToChildScopes") is True:
        return ()
    permissions = fields["permissions"]
    return tuple(action for action in actions if any(grants(each, action) for each in permissions))


def concerns(
    assignment: Mapping[str, Any], object_id: str, groups: Sequence[str] | None
) -> Literal["yes", "no", "not known"]:
    """Whether a deny assignment is about someone; `groups` is None where his groups are not known."""
    fields = assignment["properties"]
    named = _is_among(fields.get("principals") or (), object_id, groups)
    spared = _is_among(fields.get("excludePrincipals") or (), object_id, groups)
    if named == "no" or spared == "yes":
        return "no"
    return "yes" if (named, spared) == ("yes", "no") else "not known"


def unsure_roles(condition: str, roles: Iterable[str]) -> tuple[str, ...]:
    """The roles of which a condition does not plainly say that they may be assigned.

    The language is not evaluated: a role counts when it is in a list of those that are allowed.
    Source: https://learn.microsoft.com/azure/role-based-access-control/delegate-role-assignments-examples
    """
    lists = _CONDITION_LISTS.findall(condition.replace("ForAnyOfAnyValues:", ""))
    allowed = " ".join(text for word, text in lists if word.casefold() == "guidequals").casefold()
    return tuple(role for role in roles if role.casefold() not in allowed)


def excludes_services(condition: str) -> bool:
    """Whether a condition speaks of kinds of principals and not of `ServicePrincipal`, which all of ours are."""
    return "principaltype" in condition.casefold() and "serviceprincipal" not in condition.casefold()


def _is_among(
    principals: Iterable[Mapping[str, Any]], object_id: str, groups: Sequence[str] | None
) -> Literal["yes", "no", "not known"]:
    ids = {str(each.get("id", "")).casefold(): str(each.get("type", "")) for each in principals}
    mine = {object_id.casefold(), EVERYONE, *(group.casefold() for group in groups or ())}
    if not mine.isdisjoint(ids):
        return "yes"
    others = any(kind.casefold() not in ("user", "serviceprincipal", "systemdefined") for kind in ids.values())
    return "not known" if groups is None and others else "no"


def _any(permission: Permission, name: str, action: str) -> bool:
    return any(_matches(str(pattern), action) for pattern in permission.get(name) or ())


def _matches(pattern: str, action: str) -> bool:
    """`*` stands for any characters; case does not count."""
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), action, re.IGNORECASE) is not None
