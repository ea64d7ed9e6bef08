"""The plan for people, section by section: what will be there, how many cores and which quota, what will be asked.

`cycleforge plan` prints the sections as text, its page as tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from ..plan.accounting import AccountingPlan
from ..plan.assignment import SpecRef
from ..plan.cluster import SlurmPlan
from ..plan.deployment import Plan
from ..plan.drained import drained_nodes
from ..plan.fleet import Machines
from ..plan.nodes import LoginPlan, NodeArrayPlan, SchedulerPlan
from ..words.counts import size_of_gib

Row: TypeAlias = tuple[object, ...]


class Section(Struct, frozen=True):
    """One section. Without `has_head` the first row is like the others: names with values. None is unknown."""

    key: str
    title: str
    rows: tuple[Row, ...] = ()
    has_head: bool = True
    lines: tuple[str, ...] = ()
    """Sentences before the rows."""


def sections(plan: Plan) -> Iterator[Section]:
    """Every section that has something to say, in the order in which they are printed."""
    found = (
        _head(plan),
        _network(plan),
        _nodes(plan),
        _quota(plan),
        _mounts(plan),
        *_ledgers(plan),
        _speeds(plan),
        *_tiers(plan),
        _drained(plan),
        _projects(plan),
        Section("providers", "resource providers", lines=(", ".join(plan.providers),)),
        _terms(plan),
        _jobs(plan),
        _asked(plan),
    )
    return (section for section in found if section is not None)


def _head(plan: Plan) -> Section:
    account = plan.locker.account_name or "name derived at deployment"
    rows: list[Row] = [
        ("location", plan.location),
        ("resource group", plan.resource_group + ("" if plan.creates_resource_group else " (existing)")),
        *_server(plan),
        ("administrator", plan.admin.username),
        ("locker", f"{account}, container {plan.locker.container}{'' if plan.locker.is_new else ', existing'}"),
        *_cluster(plan.slurm),
        ("monitoring", plan.monitoring.ingestion_endpoint if plan.monitoring else "none"),
    ]
    if plan.cloud == "public":
        rows.append(("costs", f"see `cycleforge cost {plan.definition_name}`"))
    return Section("deployment", f"{plan.name} ({plan.definition})", tuple(rows), has_head=False)


def _server(plan: Plan) -> Iterator[tuple[object, ...]]:
    server, existing = plan.server, plan.existing_server
    if existing is not None:
        yield "server", f"{existing.vm_name}, existing, CycleCloud {existing.release}"
    if server is not None:
        yield "server", f"{server.vm_name}, {server.vm_size}, CycleCloud {server.release}"
        if server.jumpbox:
            yield "jumpbox", f"{server.jumpbox.vm_name}, {server.jumpbox.vm_size}"


def _cluster(slurm: SlurmPlan | None) -> Iterator[tuple[object, ...]]:
    if slurm is None:
        yield "cluster", "none"
        return
    yield "cluster", f"{slurm.cluster_name}, Slurm {slurm.version}, cyclecloud-slurm {slurm.project_version}"
    yield "scaling", "on demand" if slurm.autoscale else "static"
    yield "accounting", _accounting(slurm.accounting)


def _accounting(accounting: AccountingPlan | None) -> str:
    if accounting is None:
        return "none"
    if not accounting.is_new:
        return f"MySQL at {accounting.host}"
    iops = "" if accounting.max_iops is None else f", at most {accounting.max_iops:,} IOPS"
    return f"new MySQL {accounting.version} flexible server, {accounting.sku}{iops}"


def _network(plan: Plan) -> Section:
    network = plan.network
    kind = f"new, {network.address_space}" if network.is_new else f"existing, in {network.vnet_resource_group}"
    rows: list[Row] = [("subnet", "for", "prefix", "delegated to")]
    rows += [(each.name, each.role, each.prefix or "as it is", each.delegation) for each in network.subnets]
    lines = [f"{network.vnet_name}: {kind}; {plan.access.description}"]
    if network.nat_gateway:
        lines.append("egress through a NAT gateway")
    return Section("network", "network", tuple(rows), lines=tuple(lines))


def _nodes(plan: Plan) -> Section | None:
    slurm = plan.slurm
    if slurm is None:
        return None
    rows: list[Row] = [("nodes", "VM size", "count", "vCPUs", "GPUs", "image", "")]
    for each in plan.fleet:
        if each.is_node:
            size, node = each.hardware, slurm.role_of(each)
            vcpus = None if size.vcpus is None else size.vcpus * each.most
            traits = ", ".join(_traits(each, node))
            rows.append((each.name, each.vm_size, _count(each), vcpus, size.gpu_count * each.most, node.image, traits))
    return Section("nodes", "nodes", tuple(rows))


def _count(machines: Machines) -> int | str:
    if machines.role == "scheduler":
        return machines.count
    if machines.since == "full":
        return f"≤ {machines.most}"
    return str(machines.count) if machines.count == machines.most else f"{machines.count}–{machines.most}"


def _traits(machines: Machines, array: SchedulerPlan | LoginPlan | NodeArrayPlan) -> Iterator[str]:
    if not isinstance(array, NodeArrayPlan):
        if machines.role == "scheduler" and machines.most > 1:
            yield "high availability"
        return
    if array.is_default:
        yield "default"
    if array.is_hpc:
        yield "InfiniBand" if machines.hardware.infiniband_nics else "one placement group"
    if array.spot:
        price = array.spot_max_price_usd_per_hour
        yield "spot" if price is None else f"spot up to {price:g} USD/h"
    if array.mig:
        yield f"{array.mig.slices} × MIG {array.mig.profile} per node"
    if machines.hardware.custom:
        yield "figures of the definition"
    if array.zones:
        yield f"zone {', '.join(array.zones)}"
    if machines.most > array.max_scale_set_size:
        yield f"scale sets of {array.max_scale_set_size}"


def _drained(plan: Plan) -> Section | None:
    """What it costs that a sick node keeps its VM."""
    slurm = plan.slurm
    found = drained_nodes(slurm) if slurm else ()
    if slurm is None or not found:
        return None
    until = f"until handed back, {slurm.hand_back_h} h" if slurm.hand_back_h else "handed back by"
    rows: list[Row] = [("partition", "VM size", "each hour", until)]
    for node in found:
        unit, each = ("GPU hours", node.gpus) if node.gpus else ("node hours", 1)
        total = f"{slurm.hand_back_h * each:,} {unit}" if slurm.hand_back_h else "a person"
        rows.append((node.partition, node.vm_size, f"{each} {unit}", total))
    return Section("drained", "what a drained node costs", tuple(rows))


def _quota(plan: Plan) -> Section | None:
    """vCPUs that the limits of the region must leave when everything runs."""
    rows: list[Row] = [("quota", "vCPUs")]
    rows += [(limit.name, limit.vcpus) for limit in plan.quota.limits]
    users = (plan.server and "the server", plan.slurm and "every partition at its limit")
    title = f"quota needed in {plan.location}, with {' and '.join(user for user in users if user)}"
    return Section("quota", title, tuple(rows)) if plan.quota.limits else None


def _terms(plan: Plan) -> Section | None:
    """Plans of marketplace images, and images of which it is not known whether they have one."""
    rows: list[Row] = [("publisher", "offer", "plan", "used by")]
    rows += [(each.publisher, each.product, each.name, ", ".join(each.used_by)) for each in plan.image_terms]
    rows += [("not known", each.image, None, ", ".join(each.used_by)) for each in plan.unknown_images]
    return Section("terms", "image terms to accept", tuple(rows)) if len(rows) > 1 else None


def _mounts(plan: Plan) -> Section | None:
    if not plan.all_mounts:
        return None
    rows: list[Row] = [("path", "file system", "size", "from")]
    for each in plan.all_mounts:
        size = None if each.size_gib is None else size_of_gib(each.size_gib)
        rows.append((each.path, each.label, size, each.origin))
    return Section("mounts", "mounts", tuple(rows))


def _tiers(plan: Plan) -> Iterator[Section]:
    """The tiers of a file system side by side, with the time that a checkpoint of each job there takes at least."""
    for mount in plan.all_mounts:
        writers = [
            (job.name, job.checkpoint.checkpoint_bytes)
            for job in plan.jobs
            if job.checkpoint is not None and job.checkpoint.is_written and job.checkpoint_file_system == mount.path
        ]
        head = ("", "MB/s per TiB", "step", "size", "GB/s", *(f"one checkpoint of {name}" for name, _ in writers))
        rows: list[Row] = [head]
        for tier in mount.tiers:
            times = (_minutes(size, tier.gb_per_s) for _, size in writers)
            size = None if tier.size_tib is None else f"{tier.size_tib:,} TiB"
            rate = None if tier.gb_per_s is None else f"{tier.gb_per_s:.1f}"
            mark = "chosen" if tier.is_chosen else ""
            rows.append((mark, tier.mb_per_s_per_tib, f"{tier.step_tib} TiB", size, rate, *times))
        if mount.tiers:
            yield Section("tiers", f"tiers of {mount.service} for {mount.path}", tuple(rows))


def _ledgers(plan: Plan) -> Iterator[Section]:
    """What training jobs keep on each file system, in bytes, against what it holds."""
    for ledger in plan.ledgers:
        rows: list[Row] = [("job", "what", "GB", "how")]
        rows += [(each.job, each.what, f"{each.needed_bytes / 1e9:,.1f}", each.how) for each in ledger.rows]
        capacity, share = ledger.capacity_bytes, ledger.share
        of = f"of {capacity / 1e9:,.0f} GB, {share:.0%}" if capacity and share is not None else ""
        rows.append(("all", "", f"{ledger.needed_bytes / 1e9:,.1f}", of or "of a capacity that is not known"))
        yield Section("ledger", f"what training keeps on {ledger.path}", tuple(rows))


def _minutes(size: int, gb_per_s: float | None) -> str | None:
    """How long so many bytes take at least."""
    return None if gb_per_s is None else f"{size / gb_per_s / 1e9 / 60:.1f} min"


def _projects(plan: Plan) -> Section | None:
    slurm = plan.slurm
    if slurm is None:
        return _uploaded(plan)
    rows: list[Row] = [("role", "projects, in this order")]
    names = dict.fromkeys((each.name, slurm.role_of(each).specs) for each in plan.fleet if each.is_node)
    rows += [(name, _specs(specs)) for name, specs in names]
    return Section("projects", "projects", tuple(rows))


def _uploaded(plan: Plan) -> Section | None:
    """Projects that no role of this definition runs."""
    rows: list[Row] = [("project", "version")]
    rows += [(project.name, project.version) for project in plan.projects]
    return Section("projects", "projects for the locker", tuple(rows)) if plan.projects else None


def _specs(specs: tuple[SpecRef, ...]) -> str:
    return ", ".join(each.key for each in specs) or "none"


def _jobs(plan: Plan) -> Section | None:
    if not plan.jobs:
        return None
    rows: list[Row] = [("job", "kind", "partition", "nodes", "memory of a GPU", "checkpoint")]
    for job in plan.jobs:
        checkpoint = None
        if job.checkpoint:
            checkpoint = f"{job.checkpoint.checkpoint_bytes / 1e9:,.0f} GB, {job.checkpoint.kept} kept"
            if job.checkpoint.seconds_per_checkpoint is not None:
                checkpoint += f", {job.checkpoint.seconds_per_checkpoint:,.0f} s each"
        memory = job.memory and f"{job.memory.needed_bytes / 1e9:.0f} of {job.memory.usable_bytes / 1e9:.0f} GB"
        rows.append((job.name, job.kind, job.node_array, job.nodes, memory, checkpoint))
    return Section("jobs", "jobs", tuple(rows))


def _speeds(plan: Plan) -> Section | None:
    """By which published figures the speed of training is judged, where the number of GPUs is near theirs."""
    rows: list[Row] = [("job", "figure", "published", "GPUs", "warns below", "fails below")]
    tables = ((job, table) for job in plan.jobs for table in job.tables if table.file == "throughput.tsv")
    for job, table in tables:
        rows += [(job.name, row[0], row[2], row[1], row[3], row[4]) for row in table.rows]
    return Section("speed", "published speeds of training", tuple(rows)) if len(rows) > 1 else None


def _asked(plan: Plan) -> Section | None:
    """What a deployment asks for: secrets, and what unset variables left open."""
    rows: list[Row] = [("parameter", "read from", "what")]
    rows += [(each.parameter, each.variable, f"{each.description} Secret.") for each in plan.secrets]
    rows += [(each.parameter, each.variable, each.description) for each in plan.asked]
    return Section("asked", "asked at deployment", tuple(rows)) if len(rows) > 1 else None
