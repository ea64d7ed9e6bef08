"""Runs every benchmark, prints the table, and fails when a figure is over its limit."""

from __future__ import annotations

import itertools
import sys

from benchmarks.converge import converge_ratios
from benchmarks.health_pass import health_ratio, nhc_health_ratio
from benchmarks.health_report import report_ratio
from benchmarks.preflight import preflight_figures
from benchmarks.processes import build_ratio, help_ratio
from benchmarks.report import cluster_report
from benchmarks.scaling import bad_partitions_ratio, partitions_ratio
from benchmarks.status import status_figures
from benchmarks.table import Limit, Ratio
from benchmarks.upload import upload_ratios
from tests.bed.slurm.engine import missing_source


def main() -> int:
    """0 when every figure is within its limit."""
    figures: list[Ratio | Limit] = []
    measures = [build_ratio, help_ratio, partitions_ratio, bad_partitions_ratio, health_ratio, report_ratio]
    if reason := missing_source():
        print(f"skip  CPU time of a quick health pass by LBNL NHC: {reason}", flush=True)
    else:
        measures.append(nhc_health_ratio)
    for measure in measures:
        figures.append(measure())
        print(figures[-1].line(), flush=True)
    asked = (preflight_figures(), status_figures())
    for figure in itertools.chain(cluster_report(), upload_ratios(), *asked, converge_ratios()):
        figures.append(figure)
        print(figure.line(), flush=True)
    return 0 if all(figure.is_within for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
