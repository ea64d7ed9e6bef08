"""What the cluster template tells a node about its VM size, for tests that make nodes of their own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from urllib.parse import unquote

from generator import catalog
from generator.plan.size_facts import base_attributes, check_attributes

KEYS = ("cycleforge.vm_size.base", "cycleforge.vm_size.quick", "cycleforge.vm_size.deep")


def size_attributes(vm_size: str) -> dict[str, str]:
    """Attributes of a node that runs jobs, by key; none for a size that the catalogue does not know."""
    return dict(_attributes(vm_size))


@cache
def _attributes(vm_size: str) -> Mapping[str, str]:
    size = catalog.vm_size(vm_size)
    return base_attributes((size,)) | check_attributes((size,))


def several_attributes(*vm_sizes: str) -> dict[str, str]:
    """Those of a node array that has several sizes."""
    sizes = tuple(catalog.vm_size(name) for name in vm_sizes)
    return base_attributes(sizes) | check_attributes(sizes)


def records(text: str) -> tuple[str, list[tuple[str, str]]]:
    """Format and size as they stand, and the records of an attribute with their sources."""
    start, *parts = text.split(" | ")
    found, source = [], "null"
    for part in map(unquote, parts):
        if part.startswith("from "):
            source = part.removeprefix("from ")
        else:
            found.append((part, source))
    return start, found
