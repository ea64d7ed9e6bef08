"""The verdict in one sentence, and what to do next: the same words on the page, on a terminal and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from ..results.hostlist import compress
from ..words.counts import counted, listed
from .assess import Assessment
from .nodes import NodeView
from .verdicts import WORDS

_SAYS = {"fail": "failed", "error": "ended without a verdict", "no_baseline": "has no baseline", "warn": "warns"}
_SAY = _SAYS | {"no_baseline": "have no baseline", "warn": "warn"}


def word(verdict: str) -> str:
    """The verdict in capitals; what is not proven is called that."""
    return WORDS[verdict].split(":", maxsplit=1)[0].upper()


def headline(assessment: Assessment) -> str:
    """For example `1 of 6 jobs failed and 1 has no baseline; 2 nodes to replace`."""
    jobs = sum(assessment.counts.values())
    found = [(count, verdict) for verdict in _SAYS if (count := assessment.counts.get(verdict, 0))]
    of = f" of {counted(jobs, 'job')}"
    parts = [
        f"{count}{'' if place else of} {(_SAYS if count == 1 else _SAY)[verdict]}"
        for place, (count, verdict) in enumerate(found)
    ]
    sentence = listed(parts) if parts else "the job passed" if jobs == 1 else f"all {jobs} jobs passed"
    broken = sum(problem.level == "error" for problem in assessment.problems)
    if broken:
        sentence += f"; {counted(broken, 'file')} cannot be used, so what they prove is unknown"
    for state, words in (("replace", "to replace"), ("suspect", "suspect")):
        nodes = assessment.in_state(state)
        if nodes:
            sentence += f"; {counted(len(nodes), 'node')} {words}"
    return sentence


def commands(assessment: Assessment) -> Iterator[tuple[str, str]]:
    """(what for, what to type), for each cluster."""
    for cluster, views in _by_cluster(assessment.in_state("replace")):
        names = compress(view.name for view in views)
        checks = list(dict.fromkeys(each.check for view in views for each in view.findings if each.state == "replace"))
        reason = f"drained by hand: {', '.join(checks[:3])}{', …' if len(checks) > 3 else ''}"
        for character in ("'", '"', "`", "$", "\\"):
            reason = " ".join(reason.replace(character, " ").split())
        of = f" of {cluster}" if cluster else ""
        yield (
            f"keep jobs off the nodes{of}",
            f"sudo scontrol update NodeName={names} State=DRAIN Reason='{reason}'",
        )
        yield (
            "once they run no job and their physical hosts are reported to Azure, take other VMs",
            f"sudo scontrol update NodeName={names} State=POWER_DOWN",
        )


def _by_cluster(views: list[NodeView]) -> list[tuple[str, list[NodeView]]]:
    found: dict[str, list[NodeView]] = {}
    for view in views:
        found.setdefault(view.cluster, []).append(view)
    return list(found.items())
