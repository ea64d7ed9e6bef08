"""Whether the VM sizes exist and fit their roles, how many VMs a scale set holds, and spot VMs."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import Partition, Slurm
from ..plan.file_systems.registry import wanted_by
from ..plan.fleet import fleet
from ..problems.problem import Problem
from ..words.counts import counted
from .base import ClusterRule, DefinitionRule, Path, Site, partitions, quoted, size_meant
from .roles import RoleNode, is_hpc, machines, partition_label, role_sizes
from .vm_images import image_facts, image_variant

_SIZES = "https://learn.microsoft.com/azure/virtual-machines/sizes/overview"


class UnknownSize(DefinitionRule):
    id = "E0401"
    summary = "A VM size is not known."
    why = (
        "A misspelt size fails only when the first node starts, and without figures neither GPUs, memory and quota nor "
        "what nodes are told can be planned. Which sizes a region offers to your subscription is not known offline."
    )
    fix = (
        "Correct the name. If Azure offers the size, describe it: `az vm list-skus -l REGION --size SIZE --all -o json "
        "> skus.json`, then `cycleforge list vm-sizes --from skus.json` prints the block for custom_vm_sizes."
    )
    source = _SIZES

    def check(self, site: Site) -> Iterator[Problem]:
        described = {block.name.casefold(): block.name for block in site.definition.custom_vm_sizes}
        for machine in machines(site):
            if not site.vm_size(machine.vm_size).known:
                text = f"the VM size {quoted(machine.vm_size)} of {machine.label} is not known"
                own = described.get(machine.vm_size.casefold())
                hint = f"did you mean '{own}'?" if own else size_meant(machine.vm_size)
                yield self.problem(machine.size_path, text, hint or "describe it in custom_vm_sizes")


class InfiniBandUnused(DefinitionRule):
    id = "W0402"
    summary = "A partition of an InfiniBand size is not marked hpc."
    why = "Without hpc its nodes come from several placement groups, and InfiniBand does not connect them."
    fix = "Remove `hpc: false`, or silence this rule if every job runs on one node."
    source = "https://learn.microsoft.com/azure/cyclecloud/concepts/node-cluster"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            if partition.hpc is False and partition.vm_size and site.vm_size(partition.vm_size).infiniband:
                text = (
                    f"{partition_label(partition)} has hpc: false, but {partition.vm_size} has InfiniBand, which "
                    "works only within one placement group"
                )
                yield self.problem((*path, "hpc"), text)


class HpcWithoutInfiniBand(DefinitionRule):
    id = "W0403"
    summary = "A partition is marked hpc, but its VM size has no InfiniBand."
    why = "It is held in one placement group, which limits it to 100 nodes and gains only a shorter path over Ethernet."
    fix = "Remove `hpc: true`, or choose a size with InfiniBand (an r in its name, as in ND96isr)."
    source = "https://learn.microsoft.com/azure/virtual-machines/setup-infiniband"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            size = site.vm_size(partition.first_size)
            if partition.hpc and partition.vm_size and size.known and not size.infiniband:
                yield self.problem(
                    (*path, "hpc"),
                    f"{partition_label(partition)} has hpc: true, but {partition.vm_size} has no InfiniBand",
                )


class ArchitectureMismatch(DefinitionRule):
    id = "E0404"
    summary = "The image does not run on the processor of the VM size."
    why = "Images exist for x86-64, for arm64 or for both; cyclecloud-slurm supports arm64 only with Ubuntu 24.04."
    fix = "Choose cycle.image.ubuntu24 for arm64 sizes, or an x86-64 size."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        for machine in machines(site):
            size = site.vm_size(machine.vm_size)
            if not size.known:
                continue
            if isinstance(machine, RoleNode):
                image = image_facts(machine.image)
                if image is not None and size.arch not in image.arch:
                    text = (
                        f"{machine.vm_size} of {machine.label} is {_words(size.arch)}, the image "
                        f"{quoted(machine.image)} runs on {' and '.join(_words(arch) for arch in image.arch)}"
                    )
                    yield self.problem(
                        machine.image_path, text, "image: cycle.image.ubuntu24" if size.arch == "aarch64" else None
                    )
            elif size.arch != "x86_64" and not (machine.path == ("server",) and site.definition.server.image_id):
                yield self.problem(
                    machine.size_path,
                    f"{machine.vm_size} of {machine.label} is {_words(size.arch)}, its image runs on x86-64",
                )


def _words(arch: str) -> str:
    return {"aarch64": "arm64", "x86_64": "x86-64"}.get(arch, arch)


class ImageVariant(DefinitionRule):
    id = "E0405"
    summary = "The image has no driver for the GPUs of the VM size."
    why = "V100 sizes need the V100 variant of the HPC images (older driver branch), MI300X needs the ROCm variant."
    fix = "Set the image that the hint names for this partition."
    source = "https://github.com/Azure/azhpc-images"

    def check(self, site: Site) -> Iterator[Problem]:
        for node in role_sizes(site):
            urns = site.vm_size(node.vm_size).images
            variants = {image_variant(urn) for urn in urns}
            facts = image_facts(node.image)
            if facts is not None and variants and facts.variant not in variants:
                text = f"{node.label}: the image {quoted(node.image)} has no driver for the GPUs of {node.vm_size}"
                yield self.problem(node.image_path, text, f"image: {urns[0]}")


class NeedsMore(DefinitionRule):
    id = "W0423"
    summary = "A VM size needs something that CycleForge does not set up."
    why = "Its GPUs do not work, or its VMs do not start, with any image of the catalogue."
    fix = "Bring an image of your own that has it, and silence this rule; or choose another size."
    source = "https://learn.microsoft.com/azure/virtual-machines/linux/n-series-driver-setup"

    def check(self, site: Site) -> Iterator[Problem]:
        for machine in machines(site):
            needs = site.vm_size(machine.vm_size).needs
            if needs:
                yield self.problem(machine.size_path, f"{machine.vm_size} of {machine.label} needs {needs}")


class CostlyServiceNode(DefinitionRule):
    id = "W0406"
    summary = "A GPU or InfiniBand size is chosen for a machine that runs all the time."
    why = "Server, scheduler, login nodes and jumpbox run day and night and use neither."
    fix = "Choose a general-purpose size, for example Standard_D4ads_v5."
    source = _SIZES

    def check(self, site: Site) -> Iterator[Problem]:
        for machine in machines(site):
            size = site.vm_size(machine.vm_size)
            if isinstance(machine, RoleNode) and machine.partition is not None:
                continue
            extra = counted(size.gpu_count, "GPU") if size.gpu_count else "InfiniBand" if size.infiniband else None
            if extra:
                yield self.problem(
                    machine.size_path,
                    f"{machine.label}: {machine.vm_size} runs all the time, and its {extra} is not used there",
                )


class ServerTooSmall(DefinitionRule):
    id = "E0407"
    summary = "The server's VM size is too small for CycleCloud."
    why = "CycleCloud needs at least 4 vCPUs and 8 GiB of memory."
    fix = "Choose a larger size, for example Standard_D4as_v5."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/install-manual"

    def check(self, site: Site) -> Iterator[Problem]:
        size, need = site.vm_size(site.definition.server.vm_size), catalog.rule_figures().server
        if size.vcpus is None or size.memory_gib is None:
            return
        if size.vcpus < need.vcpus or size.memory_gib < need.memory_gib:
            text = (
                f"the server's {size.name} has {size.vcpus} vCPUs and {size.memory_gib:g} GiB, CycleCloud needs "
                f"{need.vcpus} vCPUs and {need.memory_gib} GiB"
            )
            yield self.problem(("server", "vm_size"), text)


class HeapTooLarge(DefinitionRule):
    id = "E0416"
    summary = "The heap of the server's Java process does not fit into the memory of its VM."
    why = "The process is killed as soon as it uses its heap, or it does not start."
    fix = "Lower server.java_heap_mb, or choose a VM size with more memory."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/install-manual"

    def check(self, site: Site) -> Iterator[Problem]:
        server = site.definition.server
        memory_gib = site.vm_size(server.vm_size).memory_gib
        if server.java_heap_mb is None or memory_gib is None:
            return
        if server.java_heap_mb >= memory_gib * 1024:
            text = f"a heap of {server.java_heap_mb} MB does not fit into the {memory_gib:g} GiB of {server.vm_size}"
            yield self.problem(("server", "java_heap_mb"), text, f"java_heap_mb: {int(memory_gib * 512)}")


class Retiring(DefinitionRule):
    id = "W0408"
    summary = "Azure has announced the end of the VM size."
    why = "After the date its VMs are stopped and none can be started; quota for new subscriptions often ends earlier."
    fix = "Choose the successor of the series."
    source = "https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list"

    def check(self, site: Site) -> Iterator[Problem]:
        for machine in machines(site):
            date = site.vm_size(machine.vm_size).retirement
            if date:
                yield self.problem(machine.size_path, f"Azure retires {machine.vm_size} of {machine.label} on {date}")


class NoZones(DefinitionRule):
    id = "E0409"
    summary = "A zone is named in a region without zones."
    why = "Azure refuses zonal resources there."
    fix = "Remove the zone, or choose a region with availability zones."
    source = "https://learn.microsoft.com/azure/reliability/regions-list"

    def check(self, site: Site) -> Iterator[Problem]:
        row = catalog.regions().regions.get(site.definition.location)
        if row is None or row.zones is not False:
            return
        for path, zone in zones(site):
            yield self.problem(
                path,
                f"the region {site.definition.location} has no availability zones, so zone {zone} cannot be chosen",
            )


def zones(site: Site) -> Iterator[tuple[Path, str]]:
    """All zones that the definition names."""
    for each in wanted_by(site.definition):
        if each.zone:
            yield (*each.definition_path, "zone"), each.zone
    named = ((path, zone) for each in fleet(site.definition) for zone, path in each.zones)
    yield from dict.fromkeys(named)


class NoPremiumDisk(ClusterRule):
    id = "E0410"
    summary = "The scheduler's VM size cannot attach the SSD of the built-in file systems."
    why = (
        "/sched and /shared are on premium disks of the scheduler; sizes without an s in their name take standard "
        "disks only."
    )
    fix = "Choose a size with premium storage, for example Standard_D4ads_v5, or external file systems."
    source = "https://learn.microsoft.com/azure/virtual-machines/disks-types"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        size = slurm.scheduler.vm_size
        mounts = (each.file_system for each in wanted_by(site.definition))
        builtin = [mount.path for mount in mounts if mount.is_scheduler_disk]
        if site.vm_size(size).premium_storage is False and builtin:
            text = f"the scheduler's {size} has no premium storage, which the built-in {' and '.join(builtin)} needs"
            yield self.problem(("slurm", "scheduler", "vm_size"), text)


_NODES = "https://learn.microsoft.com/azure/cyclecloud/concepts/node-cluster"


def _hpc_partitions(site: Site) -> Iterator[tuple[Path, Partition]]:
    """The partitions whose nodes share one placement group."""
    return ((path, partition) for path, partition in partitions(site) if is_hpc(site, partition))


class NeedsApproval(DefinitionRule):
    id = "E0411"
    summary = "An hpc partition has more nodes than a scale set with one placement group holds."
    why = "Its nodes share one placement group; Azure holds 100 VMs in it, up to 300 after a support request."
    fix = "Lower max_nodes, split the partition, or set large_scale_set_approved: true once Azure has raised the limit."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        limit = catalog.limits().scale_set_with_infiniband
        normal, most = limit.value, limit.with_approval
        for path, partition in _hpc_partitions(site):
            if normal < partition.max_nodes <= most and not partition.large_scale_set_approved:
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, a placement group holds "
                    f"{normal} without approval"
                )
                yield self.problem(
                    (*path, "max_nodes"), text, f"max_nodes: {normal}, or large_scale_set_approved: true"
                )


class AboveApproval(DefinitionRule):
    id = "E0412"
    summary = "An hpc partition has more nodes than Azure ever puts into one placement group."
    why = "300 VMs are the most that a support request can reach."
    fix = "Split the partition, or set hpc: false if its jobs do not need InfiniBand across all nodes."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        most = catalog.limits().scale_set_with_infiniband.with_approval
        for path, partition in _hpc_partitions(site):
            if partition.max_nodes > most:
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, a placement group holds at "
                    f"most {most}"
                )
                yield self.problem((*path, "max_nodes"), text, f"max_nodes: {most}, or several partitions")


class ScaleSetTooSmall(DefinitionRule):
    id = "E0413"
    summary = "The scale set of an hpc partition is smaller than its max_nodes."
    why = "azslurm takes the smaller of both without a word: the partition has fewer nodes than asked for."
    fix = "Remove max_scale_set_size, or raise it to max_nodes."
    source = "https://github.com/Azure/cyclecloud-slurm/issues/328"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in _hpc_partitions(site):
            size = partition.max_scale_set_size
            if size is not None and size < partition.max_nodes:
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, but its scale set holds {size}"
                )
                yield self.problem((*path, "max_scale_set_size"), text, f"max_scale_set_size: {partition.max_nodes}")


class ScaleSetTooLarge(DefinitionRule):
    id = "E0414"
    summary = "The scale set of an hpc partition is larger than Azure allows."
    why = "Azure refuses the scale set, and no node starts."
    fix = "Lower max_scale_set_size, or set large_scale_set_approved: true once Azure has raised the limit."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        limit = catalog.limits().scale_set_with_infiniband
        for path, partition in _hpc_partitions(site):
            most = limit.with_approval if partition.large_scale_set_approved else limit.value
            size = partition.max_scale_set_size
            if size is not None and size > most:
                text = (
                    f"{partition_label(partition)}: a scale set with one placement group holds {most} VMs, not {size}"
                )
                yield self.problem((*path, "max_scale_set_size"), text)


class ApprovalWithoutEffect(DefinitionRule):
    id = "W0415"
    summary = "The raised scale-set limit is declared for a partition that does not need it."
    why = "The limit concerns placement groups; other partitions have scale sets of up to 1000 VMs anyway."
    fix = "Remove large_scale_set_approved."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            if partition.large_scale_set_approved and not is_hpc(site, partition):
                text = f"{partition_label(partition)} has large_scale_set_approved, which concerns hpc partitions only"
                yield self.problem((*path, "large_scale_set_approved"), text, on_key=True)


_SPOT = "https://learn.microsoft.com/azure/virtual-machines/spot-vms"


class PriceWithoutSpot(DefinitionRule):
    id = "E1201"
    summary = "A spot price is given for a partition that does not use spot VMs."
    why = "It would be ignored, and the nodes would cost the on-demand price."
    fix = "Set spot: true, or remove the price."
    source = _SPOT

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            price = partition.spot_max_price_usd_per_hour
            if price is not None and not partition.spot:
                text = f"{partition_label(partition)} has a spot price of {price:g} USD/h, but does not use spot VMs"
                yield self.problem((*path, "spot_max_price_usd_per_hour"), text, "spot: true", on_key=True)


class SpotForTightJobs(DefinitionRule):
    id = "W1202"
    summary = "A partition for tightly coupled jobs uses spot VMs."
    why = (
        "One evicted node ends the job on all of its nodes; without checkpoints and requeueing the work since its "
        "start is lost."
    )
    fix = "Use on-demand VMs, or checkpoint often, submit with --requeue, and silence this rule."
    source = _SPOT

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in _hpc_partitions(site):
            if partition.spot:
                text = (
                    f"{partition_label(partition)} runs tightly coupled jobs on spot VMs; one eviction ends the job "
                    "on all nodes"
                )
                yield self.problem((*path, "spot"), text)
