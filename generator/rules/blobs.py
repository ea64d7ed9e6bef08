"""Third-party files that the nodes need: whether this machine has them to carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..plan.deployment import Plan
from ..plan.projects import BlobPlan
from ..problems.problem import Problem
from ..words.counts import listed
from .base import PlanRule

_SOURCE = "https://learn.microsoft.com/azure/cyclecloud/how-to/storage-blobs"


def consequences(plans: Iterable[Plan]) -> list[str]:
    """What nodes do without the files that this machine lacks: a line per project and consequence, with its files."""
    from ..blobs import pinned

    pins = pinned()
    files: dict[tuple[str, str], list[str]] = {}
    for plan in plans:
        for project in plan.projects:
            for blob in project.blobs:
                if blob.is_needed and blob.state == "missing":
                    found = files.setdefault((project.name, pins[blob.file].without), [])
                    if blob.file not in found:
                        found.append(blob.file)
    return [f"{', '.join(names)} ({project}): {without}" for (project, without), names in files.items()]


def _in_state(plan: Plan, state: str) -> list[BlobPlan]:
    return [blob for project in plan.projects for blob in project.blobs if blob.is_needed and blob.state == state]


class BlobMissing(PlanRule):
    id = "I1591"
    summary = "A third-party file that the nodes use is missing on this machine, so the deployment does not include it."
    why = (
        "Builds download nothing. The nodes do without the file, unless someone puts it into the locker below "
        "blobs/<project>/; projects/README.md says what that means."
    )
    fix = "cycleforge blobs fetch, then build again; without internet access: cycleforge blobs fetch --from PATH"
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        """One problem for all of them: one command fetches all."""
        missing = consequences((plan,))
        if missing:
            text = f"not on this machine, so the nodes do without: {'; '.join(missing)}"
            yield self.problem(("slurm",), text, "`cycleforge blobs fetch`, then build again", on_key=True)


class BlobDamaged(PlanRule):
    id = "W1592"
    summary = "A fetched third-party file does not have its pinned content, so the deployment does not include it."
    why = "Nodes run it as root; content other than the reviewed one is never used."
    fix = "cycleforge blobs fetch, then build again; `cycleforge blobs status` says what is wrong with it."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        """One problem for all of them."""
        damaged = _in_state(plan, "damaged")
        if damaged:
            text = f"damaged on this machine, so the nodes do without: {listed(blob.file for blob in damaged)}"
            yield self.problem(("slurm",), text, "`cycleforge blobs fetch`, then build again", on_key=True)


OF_THE_MACHINE = frozenset({BlobMissing.id, BlobDamaged.id})
"""They find something on one machine and nothing on the next, so silencing them is never out of date."""
