"""What the deployer may do: roles, deny assignments, conditions of delegated role assignments.

Sources: https://learn.microsoft.com/azure/role-based-access-control/overview,
https://learn.microsoft.com/azure/role-based-access-control/deny-assignments and, for the wildcard,
https://learn.microsoft.com/azure/role-based-access-control/role-definitions#actions
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from ...plan.created_types import ROLE
from ...plan.deployment import Plan
from ...words.counts import listed
from ..actions import SUBSCRIPTION, Need, assigned_roles, group_of, needs
from ..check import Check, Finding, Local, LocalCheck
from ..reader import Reader
from ..refusals import NotAsked, Refused
from ..requests import resource_manager
from ..requests.rights import DENY_ASSIGNMENTS, PERMISSIONS

Items = Sequence[Mapping[str, Any]]
_SHOWN = 8
_ASSIGN = f"{ROLE}/write"


def _at(plan: Plan, reader: Reader, need: Need) -> str:
    """The scope that can be asked: a group that is not there yet has what the subscription gives."""
    own = group_of(plan)
    if need.scope == own and reader.find(resource_manager.group(plan.resource_group)) is None:
        return SUBSCRIPTION
    return need.scope


Answered = tuple[Need, str, Items]
Unanswered = tuple[Need, NotAsked | Refused]


def _asked(plan: Plan, reader: Reader, request: Any, wanted: Sequence[Need]) -> tuple[list[Answered], list[Unanswered]]:
    """Each need with the scope that was asked and what it answered, all of them at the same time.

    What belongs to others may be out of sight, which hides nothing of the rest.
    """

    def one(need: Need) -> Answered | Unanswered:
        try:
            scope = _at(plan, reader, need)
            return need, scope, reader.pages(request(scope=scope))
        except (NotAsked, Refused) as reason:
            if need.scope in (SUBSCRIPTION, group_of(plan)):
                raise
            return need, reason

    found = reader.together([partial(one, need) for need in wanted])
    return [each for each in found if len(each) == 3], [each for each in found if len(each) == 2]


def _out_of_sight(check: Check, blind: Sequence[Unanswered]) -> Iterator[Finding]:
    """What could not be asked; that something is not there is for others to say."""
    for need, reason in blind:
        if isinstance(reason, NotAsked) or not reason.is_missing:
            yield check.not_known(f"{need.title}: {reason}", path=need.path)


def _some(actions: Sequence[str]) -> str:
    more = f" and {len(actions) - _SHOWN} more" if len(actions) > _SHOWN else ""
    return ", ".join(actions[:_SHOWN]) + more


def _role(actions: Sequence[str]) -> str:
    """A built-in role that has all of these."""
    roles = [action.casefold().startswith("microsoft.authorization/") for action in actions]
    return "User Access Administrator" if all(roles) else "Owner" if any(roles) else "Contributor"


class MissingRights(LocalCheck):
    id = "E4101"
    summary = "The login has no right to an action that the deployment takes."
    why = "Azure refuses that resource while the deployment runs, when others are there already."
    fix = "An owner of the scope assigns a role that has the action, or deploys."
    source = "https://learn.microsoft.com/azure/role-based-access-control/overview"
    question = "whether the login may deploy"
    path = ("azure",)

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        who = reader.session.who()
        answered, blind = _asked(plan, reader, PERMISSIONS, needs(plan, local.environment))
        yield from _out_of_sight(self, blind)
        for need, scope, permissions in answered:
            lacking = missing(permissions, need.actions)
            if lacking:
                where = scope.replace("{subscription}", reader.subscription)
                assignee = who.object_id if who else "OBJECT_ID"
                yield self.finding(
                    need.path,
                    f"{need.title}: this login has no right to {_some(lacking)} at {where}",
                    f'az role assignment create --assignee {assignee} --role "{_role(lacking)}" --scope {where}',
                )


class DeniedRights(LocalCheck):
    id = "E4102"
    summary = "A deny assignment takes an action from the login that the deployment takes."
    why = "Deny assignments count above all roles, of Owner too; Azure refuses the resource while the deployment runs."
    fix = "Deploy to another group, or ask those who made it: deployment stacks and managed applications do."
    source = "https://learn.microsoft.com/azure/role-based-access-control/deny-assignments"
    question = "whether a deny assignment is in the way"
    path = ("azure",)

    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterator[Finding]:
        who, told = reader.session.who(), set[tuple[str, str]]()
        answered, blind = _asked(plan, reader, DENY_ASSIGNMENTS, needs(plan, local.environment))
        yield from _out_of_sight(self, blind)
        for need, scope, found in answered:
            where = scope.replace("{subscription}", reader.subscription)
            for assignment in found:
                actions = denied(assignment, need.actions, where)
                name = str(assignment["properties"].get("denyAssignmentName") or assignment["name"])
                is_mine = concerns(assignment, who.object_id, who.groups) if who is not None else "not known"
                if not actions or is_mine == "no" or (name, need.title) in told:
                    continue
                told.add((name, need.title))
                text = f"the deny assignment '{name}' takes {_some(actions)} at {where}"
                if is_mine == "yes":
                    yield self.finding(need.path, f"{need.title}: {text}")
                else:
                    yield self.not_known(f"{text}, perhaps from a group of this login", path=need.path)


class ConditionalRights(Check):
    id = "W4103"
    summary = "The login may assign roles under a condition that does not plainly allow those of the deployment."
    why = "Azure refuses a role assignment that breaks the condition, when everything before it is there already."
    fix = "Have the condition allow the roles that the finding names, for principals of the type ServicePrincipal."
    source = "https://learn.microsoft.com/azure/role-based-access-control/delegate-role-assignments-overview"
    question = "whether the login may assign the roles of the deployment"
    path = ("server",)

    def needed(self, plan: Plan) -> bool:
        return bool(assigned_roles(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Conditions of all roles that let it assign any; one role without a condition is enough."""
        scope = _at(plan, reader, Need(group_of(plan), (_ASSIGN,), self.path, ""))
        giving = [each for each in reader.pages(PERMISSIONS(scope=scope)) if grants(each, _ASSIGN)]
        if not giving or any(not each.get("condition") for each in giving):
            return
        conditions = [str(each["condition"]) for each in giving]
        roles = min((unsure_roles(each, assigned_roles(plan)) for each in conditions), key=len)
        if roles:
            text = f"the condition of the login's right to assign roles does not name {listed(roles)}"
            yield self.finding(self.path, f"{text}; Azure may refuse {'them' if len(roles) > 1 else 'it'}")
        elif all(excludes_services(each) for each in conditions):
            text = "the condition of the login's right to assign roles names kinds of principals, not ServicePrincipal"
            yield self.finding(self.path, f"{text}, which server and nodes are")


EVERYONE = "00000000-0000-0000-0000-000000000000"
_CONDITION_LISTS = re.compile(r"(GuidEquals|GuidNotEquals)\s*\{([^}]*)\}", re.IGNORECASE)
Permission = Mapping[str, Any]


def grants(permission: Permission, action: str) -> bool:
    """Whether one role gives an action: it is among its actions, and not among its notActions."""
    return _any(permission, "actions", action) and not _any(permission, "notActions", action)


def missing(permissions: Iterable[Permission], actions: Iterable[str]) -> tuple[str, ...]:
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
