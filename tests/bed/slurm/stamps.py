"""How long a job hook takes, by hooks of the test that are before and after it in Slurm's order.

Slurm runs the scripts of prolog.d and epilog.d in reverse alphabetical order, so 85 is first. The yardstick is an empty
script of the same kind, run by the same slurmd for the same job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from tests.bed.slurm import configuration
from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.members import GpuNode

EMPTY = "#!/usr/bin/env bash\nexit 0\n"
STAMP = """\
#!/usr/bin/env bash
printf '%s {hook} {place} %s\\n' "${{SLURM_JOB_ID}}" "${{EPOCHREALTIME}}" >>/fake/state/stamps
"""
BEFORE_EMPTY, BEFORE_OURS, AFTER_OURS = 85, 70, 15
OURS = "20-cycleforge_health.sh"


@contextmanager
def stamped_hooks(cluster: Cluster) -> Iterator[None]:
    """Stamps around an empty script (80) and around ours (20) in both hook folders."""
    added = []
    try:
        for hook in configuration.HOOKS:
            folder = cluster.folder / "sched" / configuration.CLUSTER / f"{hook}.d"
            files = {"80-empty.sh": EMPTY} | {
                f"{place}-stamp.sh": STAMP.format(hook=hook, place=place)
                for place in (BEFORE_EMPTY, BEFORE_OURS, AFTER_OURS)
            }
            for name, text in files.items():
                path = folder / name
                path.write_text(text)
                path.chmod(0o755)
                added.append(path)
        yield
    finally:
        for path in added:
            path.unlink()


def seconds(node: GpuNode, hook: str) -> dict[str, tuple[float, float]]:
    """By job: seconds of the empty script and of ours (each with one stamp)."""
    times: dict[str, dict[int, float]] = {}
    path = node.files / "state/stamps"
    for line in path.read_text().splitlines() if path.exists() else []:
        job, kind, place, time = line.split()
        if kind == hook:
            times.setdefault(job, {})[int(place)] = float(time)
    return {
        job: (row[BEFORE_OURS] - row[BEFORE_EMPTY], row[AFTER_OURS] - row[BEFORE_OURS])
        for job, row in times.items()
        if len(row) == 3
    }


def ratio(rows: list[tuple[float, float]]) -> float:
    """How many times the empty script ours takes, by the medians."""
    return median(ours for _, ours in rows) / median(empty for empty, _ in rows)


def summary(hook: str, rows: list[tuple[float, float]]) -> str:
    """One line with the numbers, milliseconds."""
    empty, ours = ([row[column] * 1000 for row in rows] for column in (0, 1))
    return (
        f"{hook}: ours {min(ours):.0f} ms (median {median(ours):.0f}, slowest {max(ours):.0f}) | "
        f"empty script {min(empty):.0f} ms (median {median(empty):.0f}) | {ratio(rows):.1f} x, {len(rows)} runs"
    )
