"""The kinds of access, and the one that a definition chooses."""

from __future__ import annotations

from ...definition.model.definition import Definition
from .base import Access
from .bastion import Bastion
from .hub import Hub
from .private import Private
from .public import Public

KINDS: tuple[type[Access], ...] = (Bastion, Hub, Private, Public)
_BY_NAME = {kind.kind: kind for kind in KINDS}


def kind_of(definition: Definition) -> type[Access]:
    """The class of the definition's `network.access`."""
    return _BY_NAME[definition.network.access]
