"""The report as one HTML page."""

from __future__ import annotations

from ...pages.shell import Part, page
from ...version import __version__
from ..assess import Assessment
from ..compare import Comparison
from . import curves, details, measurements, overview, pairs, past


def report_page(assessment: Assessment, comparison: Comparison | None = None) -> str:
    """Return the page; the same runs give the same bytes."""
    parts: list[Part | None] = [
        overview.nodes(assessment) if assessment.in_state("replace") else None,
        overview.proofs(assessment),
        overview.jobs(assessment),
        None if assessment.in_state("replace") else overview.nodes(assessment),
        curves.collectives(assessment),
        pairs.pairs(assessment),
        measurements.spread(assessment),
        measurements.storage(assessment),
        curves.over_time(assessment),
        past.history(assessment),
        past.sides(comparison) if comparison else None,
        details.checks(assessment),
        details.surroundings(assessment),
        details.files(assessment),
    ]
    return page(
        overview.title(assessment),
        [part for part in parts if part],
        subtitle=overview.subtitle(assessment),
        banner=overview.banner(assessment),
        tiles=overview.tiles(assessment),
        footer=(
            "A floor is published (with its address), derived (with its formula), given, or the median of peers; where "
            "none exists there is no baseline, and nothing is proven. Ages count from the newest run.",
            f"Made by CycleForge {__version__} from the records of the runs alone.",
        ),
    )
