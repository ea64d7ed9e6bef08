"""How often a run should write a checkpoint: from what one costs, and how often the run breaks."""

from __future__ import annotations

from math import sqrt


def seconds_between_failures(gpus: int, gpu_hours_per_failure: float) -> float:
    """Mean time between two failures of a job on so many GPUs: each of them can end it."""
    return gpu_hours_per_failure * 3600 / gpus


def checkpoint_interval(cost_s: float, failures_s: float) -> float:
    """Seconds of training between two checkpoints that lose least, if writing one stops the training for `cost_s`.

    Young's square root of 2·C·M with Daly's terms of higher order; M itself where a checkpoint takes twice as long or
    longer. Source: J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps (2006),
    equation 37, https://doi.org/10.1016/j.future.2004.11.016.
    """
    if cost_s >= 2 * failures_s:
        return failures_s
    share = cost_s / (2 * failures_s)
    return sqrt(2 * cost_s * failures_s) * (1 + sqrt(share) / 3 + share / 9) - cost_s
