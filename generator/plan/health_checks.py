"""The lines of the health configuration of a VM size, out of the catalogue.

They reach nodes of that size as node attributes (`generator.plan.size_facts`); what does not depend on the size stands
in the project `slurm_nhc` (`generator.plan.common_checks`). A node writes both into the two files that LBNL NHC reads.
A limit that is not published is `null`: the node then reports "no baseline", never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from . import amd_checks, stream_checks
from .common_checks import gpu_services
from .measured_checks import figures_of, ib_write, measured
from .sourced import Sourced, check_line, sourced
from .types import MigPlan
from .xid_table import gpu_xid

_MIG_SOURCE = ["nvidia-mig"]


def quick(size: VmSize, mig: MigPlan | None = None) -> Iterator[Sourced]:
    """Checks that read counters: processors, memory, disks, links, GPUs."""
    yield from _machine(size)
    if size.infiniband and (size.health or size.custom):
        line = check_line("ib_ports", count=size.infiniband_nics, rate_gbit_per_s=size.infiniband_gbps_per_nic)
        yield sourced(line, _asked_by(size, "ib_ports", "infiniband"))
    elif size.infiniband:
        yield sourced(check_line("ib_ports", documented=size.infiniband_nics), source_of(size, "infiniband"))
    if size.nccl_topo_file and size.infiniband:
        line = check_line("nccl_topology", file=size.nccl_topo_file, link=size.nccl_topo_link)
        yield sourced(line, source_of(size, "topology"))
    if size.gpu_vendor == "NVIDIA":
        yield sourced("use nvidia", None)
        yield from _nvidia_quick(size, mig)
    elif size.gpu_vendor == "AMD":
        yield from amd_checks.quick(size, _asked_by(size, "gpu_count", "gpu"))


def deep(size: VmSize, mig: MigPlan | None = None) -> Iterator[Sourced]:
    """Checks that measure: copies, NCCL, diagnostics, InfiniBand."""
    if mig:
        yield from _of_slices(size)
        return
    if size.gpu_vendor == "NVIDIA":
        yield _boot_services(size)
        yield from _nvidia_deep(size)
    elif size.gpu_vendor == "AMD":
        yield from amd_checks.deep(size)
    yield from stream_checks.deep(size)
    if size.infiniband and size.health:
        yield ib_write(size)


def _of_slices(size: VmSize) -> Iterator[Sourced]:
    """What needs whole GPUs: a program sees one slice, and neither copies nor NCCL nor diagnostics go beyond it."""
    checks = ["gpu_copy_to_device", "gpu_copy_from_device"]
    if size.gpu_count > 1:
        checks += ["gpu_copy_peer", "nccl_all_reduce"]
    if size.health:
        checks += ["gpu_diagnostic", *(["ib_write"] if size.infiniband else [])]
    why = "the GPUs are divided into MIG slices"
    yield sourced(check_line("not_supported", checks=" ".join(checks), why=why), _MIG_SOURCE)


def source_of(size: VmSize, group: str) -> object:
    """Source keys of a group of figures, or the page of a size all of whose figures are there."""
    return sorted(size.sources.get(group, ())) if size.sources else size.page


def _asked_by(size: VmSize, check: str, group: str) -> object:
    """Who asks for the check; where its figure is documented when nobody does."""
    return size.health[check]["source"] if check in size.health else source_of(size, group)


def _machine(size: VmSize) -> Iterator[Sourced]:
    cpu, memory, swap, load = (figures_of(size, check) for check in ("cpu", "memory", "swap", "load"))
    sockets = {"sockets": cpu["sockets"]} if cpu else {}
    yield sourced(check_line("cpu", threads=size.vcpus, **sockets), _asked_by(size, "cpu", "cpu"))
    if size.health:
        line = check_line(
            "memory", expected_kib=memory.get("expected_kib"), tolerance_percent=memory.get("tolerance_percent")
        )
        yield sourced(line, memory.get("source"))
    if swap:
        yield sourced(check_line("swap", max_kib=swap["max_kib"]), swap["source"])
    if load:
        yield sourced(check_line("load", warn_at=load["warn_at"]), load["source"])
    if "nvme_disks" in size.health:
        yield sourced(check_line("nvme_disks", count=size.nvme_count), size.health["nvme_disks"]["source"])
    elif size.nvme_count:
        yield sourced(check_line("nvme_disks", documented=size.nvme_count), source_of(size, "local_storage"))


def _nvidia_quick(size: VmSize, mig: MigPlan | None) -> Iterator[Sourced]:
    yield gpu_xid(size.gpu_model)
    yield sourced(check_line("gpu_count", count=size.gpu_count), _asked_by(size, "gpu_count", "gpu"))
    yield from _memory_errors(size)
    yield from _fabric(size, mig)
    if mig:
        yield sourced(check_line("mig_slices", profile=mig.profile, count=mig.slices), _MIG_SOURCE)
    elif "gpu_nvlink" in size.health:  # a GPU in MIG mode has no links to others
        yield sourced(check_line("gpu_nvlink", inactive_max=0), size.health["gpu_nvlink"]["source"])


def _fabric(size: VmSize, mig: MigPlan | None) -> Iterator[Sourced]:
    """What CUDA needs beside the GPUs. No source says what a divided GPU registers, so its state has no verdict."""
    common = catalog.health()["common_checks"]
    yield gpu_services(size.fabric_manager, source_of(size, "nvlink_fabric") if size.fabric_manager else None)
    if size.fabric_registration and not mig:
        fabric = common["gpu_fabric"]
        line = check_line("gpu_fabric", registration=size.fabric_registration, grace_s=fabric["grace_s"])
        yield sourced(line, fabric["source"])
    if size.fabric_registration == "rack":
        yield sourced(check_line("imex_channel"), common["imex_channel"]["source"])
    if size.infiniband:
        yield sourced(check_line("gpu_peermem"), common["gpu_peermem"]["source"])


def _boot_services(size: VmSize) -> Sourced:
    """What the image starts at boot, for which the deep checks of a boot wait."""
    services = catalog.health()["common_checks"]["boot_services"]
    units = [*([size.fabric_manager] if size.fabric_manager else []), *services["units"]]
    joins = {"registration": size.fabric_registration} if size.fabric_registration else {}
    line = check_line("boot_services", units=" ".join(units), **joins, within_s=services["within_s"])
    return sourced(line, services["source"])


def _memory_errors(size: VmSize) -> Iterator[Sourced]:
    if "gpu_pages" in size.health:
        pages = size.health["gpu_pages"]
        yield sourced(check_line("gpu_pages", retired_max=pages["retired_max"]), pages["source"])
        return
    limits = figures_of(size, "gpu_memory_errors")
    line = check_line(
        "gpu_ecc",
        sram_uncorrectable_max=limits.get("sram_uncorrectable_max"),
        sram_correctable_max=limits.get("sram_correctable_max"),
        dram_any_max=limits.get("dram_any_max"),
    )
    yield sourced(line, limits.get("source"))
    line = check_line(
        "gpu_remap",
        pending_max=limits.get("remap_pending_max"),
        failure_max=limits.get("remap_failure_max"),
        uncorrectable_max=limits.get("remap_uncorrectable_max"),
    )
    yield sourced(line, limits.get("source"))


def _nvidia_deep(size: VmSize) -> Iterator[Sourced]:
    yield from measured(size)
    if size.health:
        diagnostic = catalog.health()["common_checks"]["gpu_diagnostic"]
        yield sourced(check_line("gpu_diagnostic", level=diagnostic["level"]), diagnostic["source"])
