"""What is known of the container images of jobs."""

from __future__ import annotations

from .. import catalog


def image_name(container: str) -> str:
    """`docker://nvcr.io#nvidia/pytorch:25.03-py3` → `pytorch`."""
    return container.rsplit("/", 1)[-1].split(":", 1)[0].split("@", 1)[0]


def squash_bytes(container: str) -> int | None:
    """Size of its squash file; None where nobody has said it."""
    row = catalog.training().images.get(image_name(container))
    return int(row.bytes) if row else None


def import_scratch_gb(container: str) -> int:
    """Room that importing it takes on a disk of the node, in 10^9 bytes."""
    rule, known = catalog.training().import_scratch, squash_bytes(container)
    times, unknown = int(rule.times), int(rule.unknown_bytes)
    return -(-(known * times if known else unknown) // 10**9)
