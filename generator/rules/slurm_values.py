"""Values of slurm.conf with which something else no longer works."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Slurm
from ..plan.assignment import GPU_NODE, specs_of
from ..plan.slurm_conf import slurm_value
from ..problems.problem import Problem
from ..words.counts import listed
from .base import ClusterRule, Path, Site
from .places import LOGIN, SCHEDULER
from .roles import RoleNode, gpus, roles
from .wording import quoted

SETTINGS: Path = ("slurm", "settings")


def settings_of(slurm: Slurm, name: str) -> Iterator[tuple[Path, str]]:
    """Every place where a definition sets a key of slurm.conf, which knows no case, with the value as written there."""
    for key, value in slurm.settings.items():
        if key.lower() == name.lower():
            yield (*SETTINGS, key), slurm_value(value).strip()


def brings_pmix(site: Site, node: RoleNode) -> bool:
    """Whether a role runs the project that finds or installs the library of Slurm's PMIx plug-in."""
    slurm = site.definition.slurm
    assert slurm is not None
    role = {SCHEDULER: "scheduler", LOGIN: "login"}.get(node.path, "execute")
    has_gpus = any(gpus(site, partition.vm_size) for partition in slurm.partitions)
    specs = specs_of(role, node.settings, site.vm_size(node.vm_size), {}, cluster_has_gpus=has_gpus)
    return any(spec.project == GPU_NODE for spec in specs)


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
        without = [node.label for node in roles(site) if not brings_pmix(site, node)]
        for path, value in settings_of(slurm, "MpiDefault"):
            if without and value.lower().startswith("pmix"):
                text = f"MpiDefault is {quoted(value)}, but nothing provides libpmix on {listed(without)}"
                yield self.problem(path, text, "start MPI programs with `srun --mpi=pmix`")
