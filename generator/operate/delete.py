"""`delete`: look what exists, what goes and what stays; delete it, and look for what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from msgspec import Struct

from ..azure.deletion import text
from ..azure.deletion.carry_out import Deleting
from ..azure.deletion.decide import Decision, Stopped, decide
from ..azure.deletion.nodes import NotDone
from ..azure.deletion.seen import Seen
from ..azure.deletion.survey import survey
from ..azure.reader import Reader
from ..azure.refusals import NotAsked, Refused
from ..azure.writer import Writer
from ..errors import AzureRefused, ProblemsFound
from ..plan.deployment import Plan
from .asking import session_of

AGAIN = "run the same command to continue"


class Look(Struct, frozen=True):
    plan: Plan
    keeps_data: bool
    seen: Seen
    decision: Decision

    def must_be_free(self) -> None:
        """Raise ProblemsFound where something is in the way."""
        if self.decision.obstacles:
            raise ProblemsFound("nothing was deleted: first fix what prevents it")


@contextmanager
def asking(plan: Plan, subscription: str | None = None) -> Iterator[Writer]:
    """Open Azure for `look` and `carry_out`. Raises AzureRefused for what Azure refuses in the block."""
    with _refusals(), closing(Writer(session_of(plan, subscription))) as writer:
        yield writer


def look(plan: Plan, reader: Reader, *, keeps_data: bool = False) -> Look:
    """Ask what exists, and decide. Nothing is changed."""
    seen = survey(plan, reader)
    return Look(plan, keeps_data, seen, decide(plan, seen, keeps_data=keeps_data))


def lines(plan: Plan, subscription: str | None = None, *, keeps_data: bool = False) -> tuple[Look, list[str]]:
    """The same, and the `az` lines that delete; only asks."""
    with _refusals(), closing(Reader(session_of(plan, subscription))) as reader:
        found = look(plan, reader, keeps_data=keeps_data)
        return found, text.lines(plan, found.seen, found.decision, reader)


def carry_out(agreed: Look, writer: Writer, say: Callable[[str], None]) -> None:
    """Delete what was agreed to, then look for everything once more.

    Raises ProblemsFound when something prevents it or is left, AzureRefused when that is unknown.
    """
    plan, seen, decision = agreed.plan, agreed.seen, agreed.decision
    agreed.must_be_free()
    left, blind = Deleting(plan, writer, seen, decision, say, keeps=agreed.keeps_data).run()
    if not left.is_nothing:
        still = [each.text for each in left.going] + [f"{each.type} {each.name}" for each in left.nodes]
        raise ProblemsFound(f"still there: {'; '.join(still)}", AGAIN)
    if blind:
        raise AzureRefused(
            f"not known {'; '.join(each.what for each in blind)}: {blind[0].reason}",
            f"all else of {plan.name} is gone; its identities were {', '.join(seen.principals) or 'not found'}",
        )


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (Stopped, NotDone) as stopped:
        raise AzureRefused(stopped.text, stopped.hint or AGAIN) from None
    except NotAsked as not_asked:
        raise AzureRefused(not_asked.reason, not_asked.hint or AGAIN) from None
    except Refused as refused:
        raise AzureRefused(f"Azure refused: {refused}", AGAIN) from None
