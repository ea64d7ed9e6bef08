"""Does what was decided, in order. Every step may have been done before, by an earlier run or by someone else."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import groupby

from ...plan.deployment import Plan
from ..answers import below
from ..refusals import Refused
from ..requests import resource_manager
from ..resource_ids import resource
from ..writer import Writer
from .decide import TURNS, Decision, Going, Stopped, decide
from .nodes import Ending
from .seen import NotSeen, Seen
from .survey import survey

PAUSE_S = 15.0
"""Between two looks at what takes its time and says nothing about when to look."""
_TRIES = 8
_LIMIT_S = 2 * 60 * 60
_PROOFS = 4
_POLICY = "requestdisallowedbypolicy"
"""What a policy with the effect denyAction answers.

Source: https://learn.microsoft.com/azure/governance/policy/concepts/effect-deny-action
"""
Say = Callable[[str], None]


class Deleting:
    """One run; `seen` and `decision` are what the user agreed to."""

    def __init__(self, plan: Plan, writer: Writer, seen: Seen, decision: Decision, say: Say, *, keeps: bool) -> None:
        self.plan, self.writer, self._say, self._keeps = plan, writer, say, keeps
        self._seen, self._decision = seen, decision
        self._shown = {each.casefold() for each in _ids(decision)}

    def run(self) -> tuple[Decision, tuple[NotSeen, ...]]:
        """Return what is left in the end, and what could not be asked. Raises Stopped, Refused, NotAsked."""
        if self._decision.nodes and not self._is_going:
            self._end_nodes()
        for turn in TURNS:
            items = [each for each in self._decision.going if each.turn == turn]
            if turn == "group":
                for each in items:
                    self._delete_group(each)
            elif turn == "record":
                for each in items:  # the deployment's own is the last: it leads to the others
                    self._delete(each)
            else:
                for _, same in groupby(items, lambda each: resource(each.id).type):
                    self.writer.together([partial(self._delete, each) for each in same])
        return self._proof()

    @property
    def _is_going(self) -> bool:
        """Return True when Azure has been told to delete the group, by an earlier run or someone else."""
        return self._seen.group_state.casefold() == "deleting"

    def _end_nodes(self) -> None:
        say, keeps = self._say, self._keeps
        ending = Ending(self.plan, self.writer, self._seen.server, say, self._delete, self._pause, keeps=keeps)
        ending.run()
        self._shown |= ending.marked
        self._agreed_still()

    def _agreed_still(self) -> None:
        """Look again, for terminating took minutes: nothing goes that was not shown."""
        self._look()
        new = [each for each in _ids(self._decision) if each.casefold() not in self._shown]
        if new:
            raise Stopped(f"there is now more to delete than was shown: {', '.join(new)}", "look at it again")
        if self._decision.obstacles:
            raise Stopped(self._decision.obstacles[0].text, self._decision.obstacles[0].hint)

    def _look(self) -> None:
        self.writer.forget()
        self._seen = survey(self.plan, self.writer, self._seen.principals)
        self._decision = decide(self.plan, self._seen, keeps_data=self._keeps)

    # ---- one thing

    def _delete(self, each: Going) -> None:
        self._do(each)
        self._say(each.text if each.turn == "mark" else f"deleted: {each.text}")

    def _do(self, each: Going, is_going: Callable[[], bool] = lambda: False) -> None:
        """Ask for it, again where that can help; `is_going`: someone else has asked for it."""
        for left in reversed(range(_TRIES)):
            try:
                self.writer.do(each.call, _LIMIT_S)
            except Refused as refused:
                if refused.is_missing or is_going():
                    return
                if not left or not (_passes(refused) or self._was_denied(refused)):
                    raise Stopped(f"{each.text}: {refused}", _hint(refused)) from None
                self._pause()
            else:
                return

    def _was_denied(self, refused: Refused) -> bool:
        """Whether this is what the stack denied until it went: Azure keeps rights for some minutes.

        Source: https://learn.microsoft.com/azure/role-based-access-control/troubleshooting
        """
        return self._seen.stack_denies and refused.code.casefold() == "denyassignmentauthorizationfailed"

    def _delete_group(self, each: Going) -> None:
        if self._is_going:
            self._say("Azure is already deleting the resource group; waiting for it")
        else:
            self._say(f"deleting the {each.text}; Azure takes minutes for it")
            self._do(each, self._group_is_going)
        end = time.monotonic() + _LIMIT_S
        while self._group_is_going():
            if time.monotonic() > end:
                raise Stopped("Azure has not deleted the resource group within two hours", "look at it in the portal")
            self._pause()
        if self._group_state() is not None:
            raise Stopped(
                f"the resource group {self.plan.resource_group} still exists, and Azure has stopped deleting it",
                f"az monitor activity-log list --resource-group {self.plan.resource_group} says why",
            )
        self._say(f"deleted: {each.text}")

    def _group_is_going(self) -> bool:
        return (self._group_state() or "").casefold() == "deleting"

    def _group_state(self) -> str | None:
        self.writer.forget()
        found = self.writer.find(resource_manager.group(self.plan.resource_group))
        return None if found is None else str(below(found, "properties", "provisioningState"))

    # ---- the end

    def _proof(self) -> tuple[Decision, tuple[NotSeen, ...]]:
        """Ask for everything once more; lists of Azure may be late."""
        for left in reversed(range(_PROOFS)):
            self._look()
            if self._decision.is_nothing or not left:
                break
            self._pause()
        return self._decision, tuple(each for each in self._seen.not_seen if each.is_leftover)

    def _pause(self) -> None:
        time.sleep(PAUSE_S)


def _ids(decision: Decision) -> Iterator[str]:
    """What the user agrees to; nodes and their parts go with the cluster."""
    yield from (each.id for each in decision.going)
    yield from (each.id for each in decision.others)


def _passes(refused: Refused) -> bool:
    """Whether something else has to be finished first, as Azure's lists and deletions are late.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-in-use
    """
    code = refused.code.casefold()
    return "inuse" in code or (refused.status == 409 and code not in ("scopelocked", _POLICY))


def _hint(refused: Refused) -> str:
    """What to do about a refusal; the codes are those of
    https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors"""
    again = "then run the same command again"
    policy = next((each.policy for each in refused.causes if each.policy), "a policy")
    return {
        "scopelocked": f"a lock was set in the meantime: an owner removes it (az lock list); {again}",
        _POLICY: f"{policy} forbids it: ask who assigned it for an exemption; {again}",
        "authorizationfailed": f"someone with this right has to do it, or give it to you; {again}",
    }.get(refused.code.casefold(), "run the same command again; it continues where it stopped")
