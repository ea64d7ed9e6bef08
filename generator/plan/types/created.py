"""What a deployment creates."""

from __future__ import annotations

from ...records import record


@record
class Created:
    """One resource type."""

    type: str
    path: tuple[str | int, ...]
    """Of the key that asks for it, or whose default does."""
    purpose: str
    """In words."""
