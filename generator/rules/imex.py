"""IMEX, which cyclecloud-slurm starts for each job on VM sizes that share NVLink across a rack."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .roles import partition_label
from .wording import partitions, quoted

_HOOK = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/imex_prolog.sh"
_KEY = "slurm.imex.enabled"


class ImexIsNoSwitch(DefinitionRule):
    id = "E3301"
    summary = "slurm.imex.enabled is neither true nor false."
    why = "cyclecloud-slurm's job hooks compare the value with True and False, and take anything else for not set."
    fix = "Write true or false, without quotes."
    source = _HOOK

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            value = partition.configuration.get(_KEY)
            if value is not None and not isinstance(value, bool) and value not in ("True", "False"):
                text = f"{partition_label(partition)}: the job hooks take {_KEY} {quoted(str(value))} for not set"
                yield self.problem((*path, "configuration", _KEY), text, "true or false")


class ImexIsOff(DefinitionRule):
    id = "W3302"
    summary = "IMEX is off on nodes that share NVLink across a rack."
    why = (
        "Without it the GPUs of one node cannot reach the memory of another's over NVLink; jobs use InfiniBand instead."
    )
    fix = "Remove slurm.imex.enabled, or silence this rule if something else starts IMEX."
    source = _HOOK

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            is_off = partition.configuration.get(_KEY) in (False, "False")
            if is_off and any(name in (partition.vm_size or "") for name in ("GB200", "GB300")):
                text = f"{partition_label(partition)} has no IMEX, so its jobs do not use NVLink between nodes"
                yield self.problem((*path, "configuration", _KEY), text)
