"""The lines of the health configuration of a VM size, out of the catalogue.

They reach nodes of that size as node attributes (`generator.plan.size_facts`); what does not depend on the size is
in the project `slurm_nhc` (`generator.plan.common_checks`). A node writes both into the two files that LBNL NHC reads.
A limit that is not published is `null`: the node then reports "no baseline", never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import Figures, VmSize
from . import amd_checks
from .common_checks import gpu_services
from .measured_checks import figures_of, ib_write, measured
from .mig import MigPlan
from .sourced import Sourced, check_line, figures_line, sourced
from .xid_table import gpu_xid

_MIG_SOURCE = ["nvidia-mig"]
_IN_PLACE_OF_REMAP = (
    "nvmlDeviceGetRemappedRows is not supported while MIG is enabled: "
    "XID 63 and 64 and remapped_rows.histogram.none take the place of gpu_remap; "
    "utkuozdemir/nvidia_gpu_exporter:internal/captures/linux-x86_64__nvidia-h100-mig__590.48.01.txt"
)


def quick(size: VmSize, mig: MigPlan | None = None) -> Iterator[Sourced]:
    """Checks that read counters: processors, memory, disks, links, GPUs."""
    yield from _machine(size)
    if size.infiniband and (size.health or size.custom):
        yield check_line(
            "ib_ports",
            _asked_by(size, "ib_ports", "infiniband"),
            count=size.infiniband_nics,
            rate_gbit_per_s=size.infiniband_gbps_per_nic,
        )
    elif size.infiniband:
        yield check_line("ib_ports", source_of(size, "infiniband"), documented=size.infiniband_nics)
    if size.nccl_topo_file and size.infiniband:
        yield check_line(
            "nccl_topology", source_of(size, "topology"), file=size.nccl_topo_file, link=size.nccl_topo_link
        )
    if size.gpu_vendor == "NVIDIA":
        yield sourced("use nvidia", None)
        yield from _nvidia_quick(size, mig)
    elif size.gpu_vendor == "AMD":
        yield from amd_checks.quick(size, _asked_by(size, "gpu_count", "gpu"))


def deep(size: VmSize, mig: MigPlan | None = None) -> Iterator[Sourced]:
    """Checks that measure: copies, NCCL, diagnostics, InfiniBand.

    Of divided GPUs a program sees one slice, and neither copies nor NCCL nor diagnostics go beyond it: none is made.
    """
    if mig:
        yield _boot_services(size, divided=True)
        return
    if size.gpu_vendor == "NVIDIA":
        yield _boot_services(size)
        yield from _nvidia_deep(size)
    elif size.gpu_vendor == "AMD":
        yield from amd_checks.deep(size)
    yield from _stream(size)
    if size.infiniband and size.health:
        yield ib_write(size)


def source_of(size: VmSize, group: str) -> object:
    """Source keys of a group of figures, or the page of a size all of whose figures are there."""
    return sorted(size.sources.get(group, ())) if size.sources else size.page


def _asked_by(size: VmSize, check: str, group: str) -> object:
    """Who asks for the check; where its figure is documented when nobody does."""
    return size.health[check]["source"] if check in size.health else source_of(size, group)


def _machine(size: VmSize) -> Iterator[Sourced]:
    cpu, memory, swap, load = (figures_of(size, check) for check in ("cpu", "memory", "swap", "load"))
    sockets = {"sockets": cpu["sockets"]} if "sockets" in cpu else {}
    yield check_line("cpu", _asked_by(size, "cpu", "cpu"), threads=size.vcpus, **sockets)
    if size.health or "memory" in size.unpublished:
        yield figures_line("memory", memory, "expected_kib", "tolerance_percent")
    if swap:
        yield check_line("swap", swap["source"], max_kib=swap["max_kib"])
    if load:
        yield check_line("load", load["source"], warn_at=load["warn_at"])
    if "nvme_disks" in size.health:
        yield check_line("nvme_disks", size.health["nvme_disks"]["source"], count=size.nvme_count)
    elif size.nvme_count:
        yield check_line("nvme_disks", source_of(size, "local_storage"), documented=size.nvme_count)


def _nvidia_quick(size: VmSize, mig: MigPlan | None) -> Iterator[Sourced]:
    yield gpu_xid(size.gpu_model)
    yield check_line("gpu_count", _asked_by(size, "gpu_count", "gpu"), count=size.gpu_count)
    yield from _memory_errors(size, mig)
    yield from _fabric(size, mig)
    if mig:
        yield check_line("mig_slices", _MIG_SOURCE, profile=mig.profile, gpus=size.gpu_count, count=mig.slices)
    elif "gpu_nvlink" in size.health:  # the driver shows no links of a GPU in MIG mode, which has none to others
        links, active = nvlinks(size)
        yield check_line(
            "gpu_nvlink", size.health["gpu_nvlink"]["source"], gpus=size.gpu_count, links=links, active=active
        )


def nvlinks(size: VmSize) -> tuple[int, int]:
    """Return how many NVLinks each GPU lists, and how many of them are active on a healthy node; zeros without any."""
    row = figures_of(size, "gpu_nvlink")
    links = row.get("links", 0)
    return links, row.get("active", links)


def _fabric(size: VmSize, mig: MigPlan | None) -> Iterator[Sourced]:
    """What CUDA needs beside the GPUs. No source says what a divided GPU registers, so its state has no verdict."""
    common = catalog.health().common_checks
    yield gpu_services(size.fabric_manager, source_of(size, "nvlink_fabric") if size.fabric_manager else None)
    if size.fabric_registration and not mig:
        fabric = common.gpu_fabric
        yield check_line("gpu_fabric", fabric.source, registration=size.fabric_registration, grace_s=fabric.grace_s)
    if size.fabric_registration == "rack":
        yield check_line("imex_channel", common.imex_channel.source)
    if size.infiniband:
        yield check_line("gpu_peermem", common.gpu_peermem.source)


def _boot_services(size: VmSize, *, divided: bool = False) -> Sourced:
    """What the image starts at boot, for which the deep checks of a boot wait."""
    services = catalog.health().common_checks.boot_services
    units = [*([size.fabric_manager] if size.fabric_manager else []), *services.units]
    joins = {"registration": size.fabric_registration} if size.fabric_registration and not divided else {}
    return check_line("boot_services", services.source, units=" ".join(units), **joins, within_s=services.within_s)


def _memory_errors(size: VmSize, mig: MigPlan | None) -> Iterator[Sourced]:
    if size.gpu_model in catalog.health().common_checks.gpu_pages.models:  # they have no spare rows
        pages = figures_of(size, "gpu_pages")
        yield figures_line("gpu_pages", pages, "retired_max", **_listed(size, pages))
        return
    limits = figures_of(size, "gpu_memory_errors")
    yield figures_line("gpu_ecc", limits, "sram_uncorrectable_max", "sram_correctable_max", "dram_any_max")
    if mig:
        yield check_line("gpu_spare_rows", _IN_PLACE_OF_REMAP, gpus=size.gpu_count)
        return
    yield check_line(
        "gpu_remap",
        limits.get("source"),
        **_listed(size, limits),
        pending_max=limits.get("remap_pending_max"),
        failure_max=limits.get("remap_failure_max"),
        uncorrectable_max=limits.get("remap_uncorrectable_max"),
    )


def _listed(size: VmSize, limits: Figures) -> dict[str, object]:
    """How many GPUs the check's list must have; without published limits the check asks for no list."""
    return {"gpus": size.gpu_count} if limits else {}


def _nvidia_deep(size: VmSize) -> Iterator[Sourced]:
    yield from measured(size)
    if size.health:
        diagnostic = catalog.health().common_checks.gpu_diagnostic
        yield check_line("gpu_diagnostic", diagnostic.source, level=diagnostic.level)


def _stream(size: VmSize) -> Iterator[Sourced]:
    """STREAM with the build and the threads of the published floor; without a floor it has no baseline on the node."""
    if size.gpu_count or not size.infiniband:
        return
    stream = catalog.streams().get(size.name)
    if stream is None:
        yield check_line("cpu_stream", None, floor_mb_per_s=None)
        return
    yield check_line(
        "cpu_stream",
        stream.source,
        floor_mb_per_s=stream.floor_mb_per_s,
        program=stream.program,
        threads=stream.threads,
        places=stream.places,
    )
