"""Values of slurm.conf with which something else no longer works."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .. import catalog
from ..definition.model.slurm import Slurm
from ..plan.assignment import GPU_NODE, is_checked, specs_of
from ..plan.slurm_conf import list_key, parameters, slurm_value
from ..problems.problem import Problem
from ..words.counts import listed
from .base import ClusterRule, Path, Site
from .places import LOGIN, SCHEDULER
from .roles import RoleNode, roles
from .wording import meant, quoted

_CONF = "https://slurm.schedmd.com/slurm.conf.html"
SETTINGS: Path = ("slurm", "settings")


def settings_of(slurm: Slurm, name: str) -> Iterator[tuple[Path, str]]:
    """Every place where a definition sets a key of slurm.conf, which knows no case, with the value as written there."""
    for key, value in slurm.settings.items():
        if key.lower() == name.lower():
            yield (*SETTINGS, key), slurm_value(value).strip()


def without_pmix(site: Site, slurm: Slurm) -> Iterator[RoleNode]:
    """The roles that do not run the project which finds or installs the library of Slurm's PMIx plug-in."""
    checked = any(is_checked(site.vm_size(size)) for partition in slurm.partitions for size in partition.sizes)
    for node in roles(site):
        role = {SCHEDULER: "scheduler", LOGIN: "login"}.get(node.path, "execute")
        specs = specs_of(role, node.settings, site.vm_size(node.vm_size), {}, nodes_are_checked=checked)
        if not any(spec.project == GPU_NODE for spec in specs):
            yield node


class PmixByDefault(ClusterRule):
    id = "W0912"
    summary = "Every srun loads PMIx, but nothing provides it on some nodes."
    why = (
        "With MpiDefault=pmix, srun and slurmd load libpmix for every job, also for one without MPI. Where the library "
        "is missing, each srun ends with an error. Only the project misc_ndv4 finds or installs it, and the scheduler "
        "and login nodes do not run that project unless the definition says so."
    )
    fix = (
        "Remove the key and start MPI programs with `srun --mpi=pmix`, or add misc_ndv4 to the extra_projects of each "
        "role."
    )
    source = "https://slurm.schedmd.com/mpi_guide.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, value in settings_of(slurm, "MpiDefault"):
            without = [node.label for node in without_pmix(site, slurm)]
            if without and value.lower().startswith("pmix"):
                text = f"MpiDefault is {quoted(value)}, but nothing provides libpmix on {listed(without)}"
                yield self.problem(path, text, "start MPI programs with `srun --mpi=pmix`")


class UnknownParameter(ClusterRule):
    id = "W0913"
    summary = "Slurm has no such parameter."
    why = (
        "Slurm ignores a word of this list that it does not know, so nothing changes. The parameters on which the rest "
        "of the cluster relies stay in the list, whatever is added to it."
    )
    fix = "Correct the word, or silence this rule if your Slurm knows it."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        lists = catalog.slurm_conf()
        for key, value in slurm.settings.items():
            name = list_key(key)
            if name is None or name in lists["fatal_when_unknown"]["keys"]:
                continue
            for text, hint in _unknown(name, slurm_value(value), lists["lists"]["keys"][name]):
                yield self.problem((*SETTINGS, key), f"Slurm ignores {text}", hint)


class RefusedParameter(ClusterRule):
    id = "E0922"
    summary = "slurmctld or every job fails with this value."
    why = "The scheduler does not start, or no job does, and the cluster is of no use until slurm.conf is corrected."
    fix = "Remove the key or the parameter that the message names."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        yield from _judged(self, slurm, catalog.slurm_conf()["values"]["refused"])
        lists = catalog.slurm_conf()
        for name in lists["fatal_when_unknown"]["keys"]:
            for path, value in settings_of(slurm, name):
                for text, hint in _unknown(name, value, lists["lists"]["keys"][name]):
                    yield self.problem(path, f"slurmctld does not start with {text}", hint)
        for name, pairs in lists["fatal_together"]["keys"].items():
            for path, value in settings_of(slurm, name):
                given = parameters(value)
                for one, others in pairs.items():
                    both = [given[other.lower()] for other in others if one.lower() in given and other.lower() in given]
                    if both:
                        text = f"slurmctld does not start with {given[one.lower()]} beside {listed(both)} in {name}"
                        yield self.problem(path, text)


class RiskyValue(ClusterRule):
    id = "W0933"
    summary = "With this value of slurm.conf something that the cluster relies on is lost."
    why = "Nodes, GPUs and jobs are set up for the value that cyclecloud-slurm chooses; the message says what is lost."
    fix = "Remove the key, or silence this rule if you want exactly this."
    source = _CONF

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        yield from _judged(self, slurm, catalog.slurm_conf()["values"]["risky"])


def _judged(rule: ClusterRule, slurm: Slurm, rows: Mapping[str, Mapping[str, str]]) -> Iterator[Problem]:
    """A problem for each setting whose value does not match its row."""
    for name, row in rows.items():
        for path, value in settings_of(slurm, name):
            if not re.fullmatch(row["matches"], value, re.IGNORECASE):
                yield rule.problem(path, f"{name} is {quoted(value)}: {row['why']}")


def _unknown(name: str, value: str, row: Mapping[str, list[str]]) -> Iterator[tuple[str, str | None]]:
    """What is wrong with each parameter that the manuals do not name, and a hint; nothing for a list of free names."""
    known = {word.lower() for word in row["known"]}
    stay = parameters(",".join(row["stay"]))
    for parameter, written in parameters(value).items():
        if known and parameter not in known:
            contrary = next((word for word in stay if word.removeprefix("no") == parameter), None)
            kept = f"; {contrary} stays" if contrary else ""
            yield f"{quoted(written)}, which is no parameter of {name}{kept}", meant(parameter, row["known"])
