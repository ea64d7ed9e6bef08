"""`what-if`, and `diff --deployed`: what deploying would do, and in what Azure differs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from . import asking
from .built import Built

if TYPE_CHECKING:
    from ..azure.drift import Drift
    from ..azure.what_if import WhatIf


def what_if(found: Built, subscription: str | None = None) -> WhatIf:
    """Ask Azure what deploying the built folder would do. Raises AzureRefused."""
    from ..azure import what_if_request

    with asking.reader(found.plan, asking.session_of(found.plan, subscription)) as reader:
        return what_if_request.what_if(found.plan, reader, found.folder, os.environ)


def drift(found: Built, subscription: str | None = None) -> Drift:
    """Compare what Azure has with the built folder. Raises AzureRefused."""
    from ..azure import deployment, what_if_request
    from ..azure.drift import drift as compared

    plan = found.plan
    with asking.reader(plan, asking.session_of(plan, subscription)) as reader:
        last = deployment.last(plan, reader)
        answer = what_if_request.what_if(plan, reader, found.folder, os.environ)
    return compared(plan, answer, last, deployment.content_of(found.folder))
