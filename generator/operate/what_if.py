"""`what-if`, and `diff --deployed`: what deploying would do, and in what Azure differs."""

from __future__ import annotations

import os

from ..azure import deployment
from ..azure.drift import Drift
from ..azure.drift import drift as compared
from ..azure.what_if import WhatIf, predicted
from . import asking
from .built import Built


def what_if(found: Built, subscription: str | None = None) -> WhatIf:
    """Ask Azure what deploying the built folder would do. Raises AzureRefused."""
    with asking.reader(found.plan, asking.session_of(found.plan, subscription)) as reader:
        return predicted(found.plan, reader, found.folder, os.environ)


def drift(found: Built, subscription: str | None = None) -> Drift:
    """Compare what Azure has with the built folder. Raises AzureRefused."""
    plan = found.plan
    with asking.reader(plan, asking.session_of(plan, subscription)) as reader:
        last = deployment.last(plan, reader)
        answer = predicted(plan, reader, found.folder, os.environ)
    return compared(plan, answer, last, deployment.content_of(found.folder))
