"""The report of a cluster beside reading the same files as JSON, which is the least that any report has to do.

Thirty runs on a hundred nodes, six of each of five jobs: every node answers, node by node with temperatures, all pairs,
collectives over all sizes, storage. Reading, judging and making the page, in one process; CPU time without Python's
collector of cycles, which the command switches off, too; of alternating rounds the one with the middle ratio.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.beside_json import middle_round
from benchmarks.table import Limit, Ratio
from generator.results import units
from generator.validation.assess import assess
from generator.validation.gather import gather
from generator.validation.page import report_page
from tests.validation import records

NODES, TIMES, ROUNDS, LIMIT = 100, 6, 15, 3.0
"""Six times five jobs are thirty runs."""
MOST_MB = 5.0


def cluster_report() -> Iterator[Ratio | Limit]:
    """The ratio, and the size of the page."""
    with tempfile.TemporaryDirectory() as name:
        folder = cluster(Path(name))
        files = sorted(folder.rglob("run.json"))
        page = made(folder)
        if len(files) != 30 or "Pairs of nodes" not in page or "gpu-100" not in page:
            raise RuntimeError(f"{len(files)} files, and no report of these nodes: {page[:500]}")
        if made(folder) != page:
            raise RuntimeError("the same runs have made two different pages")
        ours, least = middle_round(lambda: made(folder), _forget, files, ROUNDS)
    yield Ratio(f"report of {NODES} nodes and 30 runs", ours, f"the same {len(files)} files as JSON", least, LIMIT)
    yield Limit(f"page of {NODES} nodes and 30 runs", len(page.encode()) / 1e6, "MB", MOST_MB)


def cluster(folder: Path) -> Path:
    """The records of the runs."""
    for place in range(TIMES):
        records.write(folder, *records.proof(100 + 10 * place, NODES, sick=place == TIMES - 1))
    return folder


def made(folder: Path) -> str:
    """The page."""
    return report_page(assess(gather([str(folder)])))


def _forget() -> None:
    """What a report remembers while it runs; the command makes one report in a process."""
    units.is_rate.cache_clear()


if __name__ == "__main__":
    for figure in cluster_report():
        print(figure.line())
