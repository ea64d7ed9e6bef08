"""Sources of pyxis and enroot, packed as the locker has them."""

from __future__ import annotations

from generator.blobs.pins import pinned_of
from tests.bed.sources import blob_or_skip


def blobs() -> dict[str, bytes]:
    """Both blobs of pyxis_enroot, byte for byte as pinned; skips, with the reason, without them."""
    return {name: blob_or_skip(name) for name in pinned_of("pyxis_enroot")}
