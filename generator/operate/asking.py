"""Azure for a verb: sign in, ask, change, and explain why Azure refused."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

from ..azure import failures
from ..azure.clouds import cloud_of
from ..azure.reader import Reader
from ..azure.refusals import NotAsked, Refused
from ..azure.session import Session, sign_in, subscription_of
from ..azure.writer import Writer
from ..errors import AzureRefused
from ..plan.deployment import Plan

NOTHING_CHANGED = "nothing was changed; try again when Azure can be reached"


def session_of(plan: Plan, subscription: str | None = None) -> Session:
    """Return a session for the plan's cloud and subscription. No token is requested yet."""
    chosen = subscription_of(subscription, plan.subscription_id, os.environ)
    try:
        return sign_in(cloud_of(plan.cloud, os.environ), chosen)
    except NotAsked as not_asked:
        raise AzureRefused(not_asked.reason, not_asked.hint) from None


@contextmanager
def reader(plan: Plan, session: Session, otherwise: str = NOTHING_CHANGED) -> Iterator[Reader]:
    """Open Azure for questions. Raises AzureRefused for what it refuses in the block."""
    with refusals(plan, otherwise), closing(Reader(session)) as opened:
        yield opened


@contextmanager
def writer(plan: Plan, session: Session, otherwise: str = NOTHING_CHANGED) -> Iterator[Writer]:
    """Open Azure for questions and changes, as `reader` does for questions."""
    with refusals(plan, otherwise), closing(Writer(session)) as opened:
        yield opened


@contextmanager
def refusals(plan: Plan, otherwise: str = NOTHING_CHANGED) -> Iterator[None]:
    """Raise AzureRefused when Azure refuses or cannot be asked; `otherwise` is the hint when there is no better one."""
    try:
        yield
    except NotAsked as error:
        raise AzureRefused(error.reason, error.hint or otherwise) from None
    except Refused as refused:
        found = failures.explained(refused.causes, name=plan.definition_name, group=plan.resource_group)
        text = failures.text(found).rstrip() or f"{refused.code}: {refused.message}"
        raise AzureRefused(f"Azure refused\n{text}") from None
