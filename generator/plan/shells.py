"""Interactive jobs: a shell on a node of each partition, and in a container where its nodes have pyxis."""

from __future__ import annotations

import shlex

from msgspec import Struct

from .assignment import CONTAINERS
from .cluster import SlurmPlan

_IMAGE = "ubuntu:24.04"


class Shell(Struct, frozen=True):
    """Command lines for one partition, or one VM size of a partition that has several."""

    command: str
    in_container: str | None
    """None: the partition's nodes do not get pyxis from us."""


def shells(slurm: SlurmPlan) -> tuple[Shell, ...]:
    """One shell for each VM size of each partition: the whole node, because a share of it would be one CPU."""
    found = []
    for array in slurm.node_arrays:
        for each in array.of_each_size:
            words = ["srun", f"--partition={each.partition}"]
            words += [f"--constraint={each.constraint}"] if each.constraint else []
            words += ["--nodes=1", "--exclusive", "--mem=0", "--cpu-bind=none"]
            words += [f"--gpus-per-node={each.hardware.gpu_count}"] if each.has_whole_gpus else []
            words += ["--time=01:00:00"]
            has_pyxis = any(spec.project == CONTAINERS for spec in array.specs)
            inside = [*words, f"--container-image={_IMAGE}", "--container-mount-home", "--pty", "bash"]
            found.append(Shell(shlex.join([*words, "--pty", "bash"]), shlex.join(inside) if has_pyxis else None))
    return tuple(found)
