"""healthagent and slurm_nhc: which of the two checks the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Slurm
from ..problems.problem import Problem
from ..words.counts import listed
from .base import ClusterRule, Path, Site
from .drained_nodes import attached
from .places import first_given, given

_OLD: Path = ("slurm", "health_checks")
_NEW: Path = ("slurm", "healthagent")


class TwoNamesForHealthagent(ClusterRule):
    id = "E3701"
    summary = "health_checks is the old name of healthagent, and the two contradict each other."
    why = "Each says alone whether healthagent runs on the nodes, so one of them would be ignored."
    fix = "Write healthagent only; whether slurm_nhc checks the nodes too is the key slurm_nhc."
    source = "https://github.com/Azure/cyclecloud-healthagent"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.health_checks is not None and given(site, _NEW) and slurm.healthagent != slurm.health_checks:
            text = "health_checks is the old name of healthagent, which has another value here"
            yield self.problem(_OLD, text, "remove health_checks")


class NobodyChecks(ClusterRule):
    id = "W3702"
    summary = "Neither healthagent nor slurm_nhc checks the nodes."
    why = "A node with a broken GPU, link or file system goes on taking jobs, and each of them fails."
    fix = "Leave out `slurm_nhc: false`; it knows more faults than healthagent and names them in its reasons."
    source = "https://github.com/Azure/cyclecloud-healthagent"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        nodes, _ = attached(site, slurm)
        if nodes and not slurm.slurm_nhc and not slurm.runs_healthagent:
            text = f"nobody checks the nodes of {listed(nodes)}: healthagent and slurm_nhc are both off"
            yield self.problem(first_given(site, ("slurm", "slurm_nhc"), ("slurm",)), text, "slurm_nhc: true")
