"""By which published figures the speed of a training job is judged, and what its GPUs could do at most.

Figures hold for a model, a kind of GPU and a number of them. A GPU with more memory than the published one is judged by
its figures too. Nobody is convicted by figures of another framework: they warn.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from ..catalog.training_facts import Published, Shares
from ..recipes.models import Model
from .node_benchmarks import TablePlan
from .sourced import titles

_COLUMNS = ("metric", "gpus", "published", "warn", "fail", "source", "model")
_METRICS = ("mfu", "model_tflops", "tokens_per_gpu", "words_per_s")
"""Percent of the peak, 10^12 operations, tokens a second of one GPU; words (which are tokens) a second of the job."""


def peak_setting(size: VmSize) -> dict[str, str]:
    """What one GPU of the size can do at most in 16 bits (10^12 operations a second); empty where nobody says."""
    peak = catalog.throughput().peak_tflops.by_gpu.get(size.gpu_model or "")
    return {"GPU_PEAK_TFLOPS": f"{peak:g}" if peak else ""}


def throughput_table(size: VmSize, shape: Model | None) -> TablePlan:
    """`throughput.tsv`: one row for each figure and number of GPUs."""
    return TablePlan("throughput.tsv", _COLUMNS, tuple(_rows(size, shape)))


def _rows(size: VmSize, shape: Model | None) -> Iterator[tuple[str, ...]]:
    figures = catalog.throughput()
    if shape is None or size.gpu_memory_gb is None or shape.sequence != figures.sequence.value:
        return
    fitting = [
        row
        for row in figures.published
        if row.model == shape.name and size.gpu_model in row.gpu and row.memory_gb <= size.gpu_memory_gb
    ]
    most = max((row.memory_gb for row in fitting), default=None)
    for row in fitting:
        if row.memory_gb == most:
            yield from _figures(row, figures.shares)


def _figures(row: Published, shares: Shares) -> Iterator[tuple[str, ...]]:
    for metric in _METRICS:
        for gpus, published in zip(row.gpus, getattr(row, metric), strict=False):
            fail = f"{published * shares.fail_below:.6g}" if row.convicts else "-"
            # One that was published as the least is its own limit.
            limits = (f"{published * (row.warn_share or shares.warn_below):.6g}", fail)
            yield (metric, str(gpus), f"{published:g}", *limits, f"published: {titles(row.source)}", row.model)
