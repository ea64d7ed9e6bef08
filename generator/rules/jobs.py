"""Validation and training jobs against the partitions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..definition.model.slurm import Partition
from ..plan.deployment import Plan
from ..plan.gates import BESIDE_JOBS, GatePlan, gate_plans
from ..plan.job_settings import known_settings, spare_nodes
from ..problems.problem import Problem
from ..recipes import Recipe, recipe, recipe_names
from ..words.counts import counted, listed
from .base import DefinitionRule, Path, PlanRule, Site, choose_from, first_given, listed_jobs, meant, partitions, quoted
from .containers import has_containers
from .roles import roles

_SBATCH = "https://slurm.schedmd.com/sbatch.html"
_CYCLECLOUD = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"

_DECIDED_BY = {"JOB": "name", "NODES": "nodes", "PARTITION": "partition", "RECIPE": "recipe", "VM_SIZE": "partition"}
"""Settings that say where and as what a job runs, and the keys of a job that decide them."""


def _partition(site: Site, name: str | None) -> Partition | None:
    return next((partition for _, partition in partitions(site) if partition.name == name), None)


def _key(site: Site, path: Path, key: str) -> Path:
    """The path of a job's key; of the whole entry when the job is written as a recipe's name alone."""
    return first_given(site, (*path, key), path)


def misfit(site: Site, needs: Recipe, partition: Partition, wanted: str | None = None) -> str | None:
    """Why a recipe cannot run on a partition; None when it can on one of its VM sizes, or on the wanted one."""
    sizes = (wanted,) if wanted in partition.sizes else partition.sizes
    faults = [_misfit_of_size(site, needs, partition, size) for size in sizes]
    return faults[0] if faults and all(faults) else None


def _misfit_of_size(site: Site, needs: Recipe, partition: Partition, name: str) -> str | None:
    """Why a recipe cannot run on nodes of a size; None when it can, or when nothing is known of the size."""
    size = site.vm_size(name)
    if not size.known:
        return None
    if needs.needs_infiniband and not size.infiniband:
        return f"it needs InfiniBand, and {name} has none"
    if needs.needs_no_gpu and size.gpu_count:
        return f"it is for nodes without GPUs, and {name} has some"
    if needs.needs_gpu and not size.gpu_count:
        return f"it needs GPUs, and {name} has none"
    if needs.needs_gpu and needs.gpu_vendors and size.gpu_vendor not in needs.gpu_vendors:
        return f"it needs GPUs of {listed(needs.gpu_vendors)}, and {name} has {size.gpu_vendor} ones"
    if needs.needs_gpu and partition.mig_profile is not None:
        return f"it needs whole GPUs, and those of the partition are divided into slices of {partition.mig_profile}"
    arch = needs.architectures
    if arch and size.arch not in arch:
        return f"it runs on {listed(arch)}, and {name} is {size.arch}"
    if partition.max_nodes < needs.min_nodes:
        return f"it needs {counted(needs.min_nodes, 'node')}, and the partition has {partition.max_nodes}"
    return None


class UnknownRecipe(DefinitionRule):
    id = "E1601"
    summary = "A job names a recipe that does not exist."
    why = "Jobs are made from the recipes that come with CycleForge."
    fix = "Choose a recipe that `cycleforge list recipes` shows."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            found, kind = recipe(job.recipe), "training" if path[1] == "training" else "validation"
            if found is None:
                text = f"there is no recipe {quoted(job.recipe)}"
                names = recipe_names(kind)
                yield self.problem(
                    _key(site, path, "recipe"),
                    text,
                    choose_from(job.recipe, names) or choose_from(job.recipe, recipe_names()),
                )
            elif found.kind != kind and not (kind == "training" and found.trains):
                text = f"the recipe {quoted(job.recipe)} is a {found.kind} job, but is listed among the {kind} jobs"
                yield self.problem(_key(site, path, "recipe"), text, f"move it to jobs.{found.kind}")


class UnknownPartition(DefinitionRule):
    id = "E1602"
    summary = "A job names a partition that does not exist."
    why = "sbatch refuses it."
    fix = "Name one of the partitions, or leave the key out."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        names = tuple(partition.name for _, partition in partitions(site))
        for path, job in listed_jobs(site):
            if job.partition is not None and job.partition not in names:
                text = f"job {quoted(job.name or job.recipe)}: there is no partition {quoted(job.partition)}"
                yield self.problem((*path, "partition"), text, choose_from(job.partition, names))


class TooManyJobNodes(DefinitionRule):
    id = "E1603"
    summary = "A job asks for more nodes, with its spare ones, than its partition may have."
    why = "It would wait forever."
    fix = "Lower the job's nodes or its SPARE_NODES, or raise max_nodes of the partition."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            needs, chosen = recipe(job.recipe), _partition(site, job.partition)
            spare = spare_nodes(needs, job)
            if job.nodes is None and not spare:
                continue
            fitting = [each for _, each in partitions(site) if needs is None or misfit(site, needs, each) is None]
            candidates = [chosen] if chosen else [] if job.partition is not None else fitting
            most = max((each.max_nodes for each in candidates), default=None)
            # Where the definition says nothing, the plan takes at most what the spare ones leave.
            asked = job.nodes or 1
            if most is not None and asked + spare > most:
                where = f"partition {quoted(chosen.name)} has" if chosen else "the largest partition that fits has"
                more = f" and {counted(spare, 'spare one')}" if spare else ""
                text = f"job {quoted(job.name or job.recipe)} asks for {counted(asked, 'node')}{more}, {where} {most}"
                place = (*path, "nodes") if job.nodes is not None else (*path, "settings", "SPARE_NODES")
                yield self.problem(
                    place, text, f"nodes: {most - spare}" if most > spare else f"SPARE_NODES: {most - 1}"
                )


class JobDoesNotFit(DefinitionRule):
    id = "E1604"
    summary = "A job cannot run on its partition, or on any partition."
    why = (
        "Recipes need certain GPUs, architectures and node counts; the job would wait forever, or fail when it starts."
    )
    fix = "Choose another partition or recipe."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        every = [partition for _, partition in partitions(site)]
        for path, job in listed_jobs(site):
            needs = recipe(job.recipe)
            if needs is None:
                continue
            name, chosen = quoted(job.name or job.recipe), _partition(site, job.partition)
            if chosen is not None:
                fault = misfit(site, needs, chosen, job.vm_size)
                if fault:
                    fitting = [partition.name for partition in every if misfit(site, needs, partition) is None]
                    hint = f"partition: {fitting[0]}" if fitting else None
                    yield self.problem(
                        (*path, "partition"), f"job {name} does not fit partition {quoted(chosen.name)}: {fault}", hint
                    )
            elif job.partition is None:
                faults = [misfit(site, needs, partition) for partition in every]
                if every and all(faults):
                    yield self.problem(_key(site, path, "recipe"), f"job {name} fits no partition: {faults[0]}")


class JobName(DefinitionRule):
    id = "E1605"
    summary = "A job's name is not usable as a folder, or something else has it."
    why = "Each job is written into jobs/<name>, beside prove.sh and what it reads and writes."
    fix = "Use letters, digits, ., _ and -, a different name for each job."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, Path] = {}
        for path, job in listed_jobs(site):
            name = job.name if job.name is not None else job.recipe
            if job.name is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", job.name):
                text = f"the job name {quoted(job.name)} must be 1 to 64 letters, digits, ., _ and -"
                yield self.problem((*path, "name"), text)
            elif name.lower() in BESIDE_JOBS:
                text = f"the job name {quoted(name)} is that of something else in the folder of the jobs"
                yield self.problem(_key(site, path, "name"), text, f"for example name: {name.split('.')[0]}-job")
            elif name.lower() in seen:
                place = _key(site, path, "name")
                hint = f"name: {name}-2" if len(name) < 60 else None
                yield self.second(place, f"a second job has the name {quoted(name)}", seen[name.lower()], hint)
            seen.setdefault(name.lower(), _key(site, path, "name"))


class JobSetting(DefinitionRule):
    id = "E1606"
    summary = "A job's setting is not one line of a shell file."
    why = "Settings become lines NAME=value of settings.env, which the job's scripts read."
    fix = "Use upper-case letters, digits and _ in the name, and one line as the value."
    source = "https://pubs.opengroup.org/onlinepubs/9699919799/basedefs/V1_chap08.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            label = f"job {quoted(job.name or job.recipe)}"
            for key, value in job.settings.items():
                place = (*path, "settings", key)
                if not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", key):
                    text = f"{label}: the setting {quoted(key)} must consist of upper-case letters, digits and _"
                    near = re.sub(r"[^A-Z0-9]+", "_", key[:64].upper()).strip("_0123456789")
                    yield self.problem(place, text, f"for example {near}" if near else None, on_key=True)
                elif isinstance(value, str) and not all(sign.isprintable() or sign == "\t" for sign in value):
                    yield self.problem(place, f"{label}: the value of {key} has a line break or control character")


class UnknownSetting(DefinitionRule):
    id = "W1607"
    summary = "A job's setting looks misspelt."
    why = "A setting that the recipe's scripts do not read is ignored."
    fix = "Correct the name; the recipe's README lists its settings."
    source = "https://pubs.opengroup.org/onlinepubs/9699919799/basedefs/V1_chap08.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            needs = recipe(job.recipe)
            known = known_settings(needs) if needs else ()
            for key in job.settings:
                hint = meant(key, known) if known and key not in known else None
                if hint:
                    text = f"job {quoted(job.name or job.recipe)}: the recipe has no setting {quoted(key)}"
                    yield self.problem((*path, "settings", key), text, hint, on_key=True)


class SettingOfAnotherKey(DefinitionRule):
    id = "E1609"
    summary = "A job's setting is decided by another key of the job."
    why = "The batch file would ask Slurm for one thing, and settings.env would contain another."
    fix = "Give the key that decides it, and leave the setting out."
    source = _SBATCH

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            for name, value in job.settings.items():
                key = _DECIDED_BY.get(name)
                if key is not None:
                    text = f"job {quoted(job.name or job.recipe)}: the setting {name} follows from the job's {key}"
                    hint = f"{key}: {value}" if name != "VM_SIZE" else "partition: the one with nodes of that size"
                    yield self.problem((*path, "settings", name), text, hint, on_key=True)


class JobWithoutContainers(DefinitionRule):
    id = "E1608"
    summary = "A job runs in a container, which its partition's image does not support."
    why = "cyclecloud-slurm sets up enroot and pyxis on Ubuntu and EL 8, the project pyxis_enroot on EL 9."
    fix = (
        "Choose cycle.image.ubuntu24, cycle.image.ubuntu22 or almalinux8 for the partition, attach pyxis_enroot to one "
        "with almalinux9, or choose another partition."
    )
    source = _CYCLECLOUD

    def check(self, site: Site) -> Iterator[Problem]:
        nodes = {node.partition.name: node for node in roles(site) if node.partition is not None}
        for path, job in listed_jobs(site):
            needs = recipe(job.recipe)
            if needs is None or not needs.containers:
                continue
            chosen = _partition(site, job.partition)
            candidates = (
                [chosen] if chosen else [each for _, each in partitions(site) if misfit(site, needs, each) is None]
            )
            without = [each.name for each in candidates if has_containers(site, nodes[each.name]) is False]
            if candidates and len(without) == len(candidates) and (chosen or job.partition is None):
                place = (*path, "partition") if chosen else _key(site, path, "recipe")
                text = (
                    f"job {quoted(job.name or job.recipe)} runs in a container, which the image "
                    f"{quoted(nodes[without[0]].image)} of partition {quoted(without[0])} cannot do"
                )
                yield self.problem(place, text)


class GateWithoutJob(PlanRule):
    id = "W1611"
    summary = "The listed validation jobs leave `prove` without a job for some of its gates."
    why = (
        "`jobs.validation` replaces the jobs that fit the partitions. A gate without a job is not proven, so that "
        "`prove.sh` cannot end with `pass` unless the gate is skipped."
    )
    fix = "Write jobs.add_validation instead of jobs.validation: its entries join the jobs that fit the partitions."
    source = _SBATCH

    def check(self, plan: Plan) -> Iterator[Problem]:
        if plan.slurm is None or all(job.kind == "training" for job in plan.jobs):
            return  # Whoever lists no validation job at all wants none.
        gates = [each for each in gate_plans(plan.slurm, plan.jobs) if each.lacks_job and each.level != "finder"]
        are_listed = any(job.definition_path[:2] == ("jobs", "validation") for job in plan.jobs)
        for job in plan.jobs:
            is_other = job.recipe != job.displaces or not are_listed
            taken = [each for each in gates if job.displaces == each.recipe and is_other]
            if taken:
                text = f"{_without(taken)}; the added job has the name of their job, {quoted(job.name)}, and its place"
                yield self.problem(job.definition_path, text, "give it another name")
                gates = [each for each in gates if each not in taken]
        if gates:
            hint = "add_validation instead of validation: its entries join the jobs that fit the partitions"
            yield self.problem(("jobs", "validation"), _without(gates), hint, on_key=True)


def _without(gates: list[GatePlan]) -> str:
    names: dict[str, dict[str, None]] = {}
    for gate in gates:
        names.setdefault(gate.partition, {})[gate.name] = None
    places = "; ".join(f"{quoted(partition)}: {', '.join(gates)}" for partition, gates in names.items())
    return f"gates of `prove` without a job, by partition: {places}"
