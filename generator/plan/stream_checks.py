"""The health check that measures the host's memory, for sizes without GPUs whose jobs span nodes."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from .sourced import Sourced, check_line, sourced


def deep(size: VmSize) -> Iterator[Sourced]:
    """STREAM with the build and the threads of the published floor; without a floor it has no baseline on the node."""
    if size.gpu_count or not size.infiniband:
        return
    stream = catalog.streams().get(size.name)
    if stream is None:
        yield sourced(check_line("cpu_stream", floor_mb_per_s=None), None)
        return
    line = check_line(
        "cpu_stream",
        floor_mb_per_s=stream.floor_mb_per_s,
        program=stream.program,
        threads=stream.threads,
        places=stream.places,
    )
    yield sourced(line, stream.source)
