"""The rate to which training falls: a tenth of the peak, in the reference and in metaseq's jobs."""

from __future__ import annotations

import pytest

from tests.jobs.running import job, plan_with, settings_of


@pytest.mark.parametrize(
    ("recipe", "given", "expected"),
    [
        ("gpt3-175b", {}, ("6e-5", "6e-6")),
        ("opt-175b", {"MODEL": "opt-125m"}, ("6.0e-4", "6e-5")),
        ("opt-175b", {"MODEL": "opt-66b"}, ("0.8e-4", "8e-6")),
        ("opt-175b", {"MODEL": "opt-175b"}, ("1.2e-4", "1.2e-5")),
        ("gpt3-175b", {"LEARNING_RATE": "0.0003"}, ("0.0003", "3e-5")),
        ("gpt3-175b", {"MIN_LEARNING_RATE": "1e-6"}, ("6e-5", "1e-6")),
        ("gpt3-175b", {"LEARNING_RATE": "fast"}, ("fast", "")),
        ("gpt3-175b", {"LEARNING_RATE": "nan"}, ("nan", "")),
    ],
)
def test_it_is_a_tenth_of_the_peak(recipe: str, given: dict[str, str], expected: tuple[str, str]) -> None:
    settings = settings_of(plan_with(job(recipe, 8, **given)))
    assert (settings["LEARNING_RATE"], settings["MIN_LEARNING_RATE"]) == expected
