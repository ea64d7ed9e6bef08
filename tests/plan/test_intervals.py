"""How often a checkpoint is worth its time."""

from __future__ import annotations

import pytest

from generator.recipes.checkpoints import checkpoint_interval, seconds_between_failures


@pytest.mark.parametrize(
    ("cost_s", "gpus", "failure_h", "interval_h"),
    [
        # 419 unexpected stops in 54 days on 16,384 GPUs: one in three hours. Source: arXiv 2407.21783.
        (38, 16_384, 3.09, 0.249),
        # GPT-3 175B on 128 GPUs: 2.44 TB at 64 GB/s.
        (38, 128, 396, 2.88),
        (600, 128, 396, 11.3),
        # A checkpoint that takes longer than twice the time between two failures.
        (8 * 3600, 16_384, 3.09, 3.09),
    ],
)
def test_the_interval_follows_from_cost_and_failures(
    cost_s: float, gpus: int, failure_h: float, interval_h: float
) -> None:
    failure_s = seconds_between_failures(gpus, 50_700)
    assert failure_s / 3600 == pytest.approx(failure_h, rel=0.01)
    assert checkpoint_interval(cost_s, failure_s) / 3600 == pytest.approx(interval_h, rel=0.01)


@pytest.mark.parametrize(("failure_min", "published_min"), [(24 * 60, 117), (6 * 60, 57), (15, 9.1)])
def test_the_published_intervals_for_a_checkpoint_of_five_minutes(failure_min: float, published_min: float) -> None:
    """Daly's paper, figures 3 to 5."""
    assert checkpoint_interval(5 * 60, failure_min * 60) / 60 == pytest.approx(published_min, rel=0.01)


def test_where_daly_gives_the_time_between_failures_itself() -> None:
    """Equation 37: from a cost of twice that time on; just below it his series says 8/9 of it."""
    assert checkpoint_interval(200, 100) == 100
    assert checkpoint_interval(199.999, 100) == pytest.approx(100 * 8 / 9, rel=1e-3)


def test_no_other_interval_loses_less() -> None:
    """The lost share of time: checkpoints, and on average half an interval and a checkpoint for each failure."""
    cost, failure = 60.0, 36_000.0

    def lost(every: float) -> float:
        return cost / every + (every + cost) / 2 / failure

    best = checkpoint_interval(cost, failure)
    assert lost(best) <= min(lost(best * factor) for factor in (0.5, 0.8, 1.25, 2.0))
