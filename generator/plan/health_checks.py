"""The lines of the health configuration of a VM size, out of the catalogue.

They reach nodes of that size as node attributes (`generator.plan.size_facts`); what does not depend on the size stands
in the project `slurm_nhc` (`generator.plan.common_checks`). A node writes both into the two files that LBNL NHC reads.
A limit that nobody published is `null`: the node then reports "no baseline", never a pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .. import catalog
from ..catalog.sizes import VmSize
from .sourced import Sourced, check_line, sourced

Checks = Mapping[str, Any]
_MPI_SOURCE = "Azure/azurehpc:experimental/cc_slurm_nhc (module mpi/hpcx; NC sizes mpi/openmpi)"
_NOT_FOR_CHECKS = ("NCCL_DEBUG", "NCCL_TOPO_FILE", "LD_LIBRARY_PATH_PREPEND")
"""Variables that a node takes from its own image: `misc_ndv4` knows where the files are."""


def quick(size: VmSize) -> Iterator[Sourced]:
    """Checks that read counters: processors, memory, disks, links, GPUs."""
    checks = _checks(size)
    yield from _machine(size, checks)
    if "ib_ports" in checks:
        ports = checks["ib_ports"]
        line = check_line("ib_ports", count=ports["expect_count"], rate_gbit_per_s=ports["expect_rate"])
        yield sourced(line, ports["source"])
    vendor, count = _gpus(size)
    if vendor == "NVIDIA":
        yield sourced("use nvidia", None)
        yield from _nvidia_quick(size, count, checks)
    elif vendor == "AMD":
        yield sourced(check_line("amd_gpu_count", count=count), _gpu_count_source(size, checks))


def deep(size: VmSize) -> Iterator[Sourced]:
    """Checks that measure: copies, NCCL, diagnostics, InfiniBand."""
    checks = _checks(size)
    vendor, count = _gpus(size)
    if vendor == "NVIDIA":
        yield from _nvidia_deep(size, count or 0, checks)
    elif vendor == "AMD":
        missing = "gpu_copy_to_device gpu_copy_from_device gpu_copy_peer rccl_all_reduce"
        yield sourced(check_line("not_supported", checks=missing), "ROCm's tools are not read by this version")
    yield from _ib_write(checks)


def source_of(size: VmSize, group: str) -> object:
    """Source keys of a group of figures, or the page of a size whose figures all stand there."""
    return sorted(size.sources.get(group, ())) if size.sources else size.page


def _entry(size: VmSize) -> Checks | None:
    entry: Checks | None = catalog.health()["vm_sizes"].get(size.name)
    return entry


def _checks(size: VmSize) -> Checks:
    entry = _entry(size)
    return entry["checks"] if entry else {}


def _also(size: VmSize) -> tuple[str, ...]:
    """Checks without figures of their own that the size's source runs."""
    entry = _entry(size)
    return tuple(entry["common_checks"]) if entry else ()


def _machine(size: VmSize, checks: Checks) -> Iterator[Sourced]:
    cpus = checks.get("cpu_topology") or {}
    expect = cpus.get("expect") or {}
    if expect.get("threads") is not None:
        line = check_line("cpu", threads=expect["threads"], sockets=expect.get("sockets"))
        yield sourced(line, cpus["source"])
    else:
        yield sourced(check_line("cpu", threads=size.vcpus), source_of(size, "cpu"))
    memory = checks.get("memory_total") or {}
    if memory:
        line = check_line(
            "memory",
            expected_kib=memory.get("expect_kib"),
            tolerance_percent=memory.get("tolerance_percent_of_actual"),
        )
        yield sourced(line, memory.get("source"))
    if "swap_total" in checks:
        swap = checks["swap_total"]
        yield sourced(check_line("swap", max_kib=swap["expect"]), swap["source"])
    load = checks.get("load_average_1min") or {}
    if load.get("fail_at_or_above") is not None:
        yield sourced(check_line("load", warn_at=load["fail_at_or_above"]), load["source"])
    disks = (checks.get("nvme_count") or {}).get("expect")
    documented = size.nvme_count or None
    if disks is not None:
        yield sourced(check_line("nvme_disks", count=disks), checks["nvme_count"]["source"])
    elif documented is not None:
        yield sourced(check_line("nvme_disks", documented=documented), source_of(size, "local_storage"))


def _gpus(size: VmSize) -> tuple[str | None, int | None]:
    """Vendor and number of GPUs; health sources come before the size's documentation."""
    entry = _entry(size)
    vendor = {"nvidia_gpu": "NVIDIA", "amd_gpu": "AMD"}.get(entry["class"]) if entry else None
    count = ((entry["checks"].get("gpu_count") or {}).get("expect")) if entry else None
    if size.gpu_count:
        return vendor or size.gpu_vendor, count if count is not None else size.gpu_count
    return vendor, count


def _gpu_count_source(size: VmSize, checks: Checks) -> object:
    return (checks.get("gpu_count") or {}).get("source") or source_of(size, "gpu")


def _nvidia_quick(size: VmSize, count: int | None, checks: Checks) -> Iterator[Sourced]:
    yield sourced(check_line("gpu_count", count=count), _gpu_count_source(size, checks))
    yield from _memory_errors(checks)
    if "nvlink_links_active" in _also(size):
        source = catalog.health()["common_checks"]["nvlink_links_active"]["source"]
        yield sourced(check_line("gpu_nvlink", inactive_max=0), source)


def _memory_errors(checks: Checks) -> Iterator[Sourced]:
    limits = checks.get("gpu_ecc_limits") or {}
    source = limits.get("source")
    if "retired_pages_max" in limits:
        yield sourced(check_line("gpu_pages", retired_max=limits["retired_pages_max"]), source)
        return
    line = check_line(
        "gpu_ecc",
        sram_uncorrectable_max=limits.get("sram_uncorrectable_max"),
        sram_correctable_max=limits.get("sram_correctable_max"),
        dram_any_max=limits.get("dram_any_counter_max"),
    )
    yield sourced(line, source)
    line = check_line(
        "gpu_remap",
        pending_max=limits.get("row_remap_pending_max"),
        failure_max=limits.get("row_remap_failure_max"),
        uncorrectable_max=limits.get("row_remap_uncorrectable_max"),
    )
    yield sourced(line, source)


def _nvidia_deep(size: VmSize, count: int, checks: Checks) -> Iterator[Sourced]:
    copies = checks.get("gpu_h2d_d2h_bandwidth") or {}
    for check in ("gpu_copy_to_device", "gpu_copy_from_device"):
        yield sourced(_copies(check, copies), copies.get("source"))
    if count > 1:
        peer = checks.get("gpu_p2p_bandwidth") or {}
        yield sourced(_copies("gpu_copy_peer", peer), peer.get("source"))
        yield from _nccl(size, count, checks)
    if "dcgm_diagnostic" in _also(size):
        dcgm = catalog.health()["common_checks"]["dcgm_diagnostic"]
        yield sourced(check_line("gpu_diagnostic", level=dcgm["level"]), dcgm["source"])


def _copies(check: str, figures: Checks) -> str:
    return check_line(check, floor_gb_per_s=figures.get("floor"), warn_below_gb_per_s=figures.get("warn_below"))


def _nccl(size: VmSize, count: int, checks: Checks) -> Iterator[Sourced]:
    module = "mpi/openmpi" if size.name.startswith("Standard_NC") else "mpi/hpcx"
    variables = {key: value for key, value in size.nccl_env if key not in _NOT_FOR_CHECKS}
    sources = [*size.sources.get("nccl_env", ()), _MPI_SOURCE]
    yield sourced(check_line("nccl_environment", module=module, **variables), sources)
    for check, key in (
        ("nccl_all_reduce", "nccl_allreduce_single_node"),
        ("nccl_loopback", "nccl_allreduce_ib_loopback"),
    ):
        figures = checks.get(key)
        if figures is not None:
            line = check_line(
                check, ranks=count, message=figures.get("message_size"), floor_gb_per_s=figures.get("floor"), attempts=2
            )
            yield sourced(line, figures.get("source"))


def _ib_write(checks: Checks) -> Iterator[Sourced]:
    """GPU memory where a floor is published for it, host memory otherwise; the tool's arguments are the source's."""
    gpu, host = checks.get("ib_write_bw_gdr") or {}, checks.get("ib_write_bw_non_gdr") or {}
    if gpu.get("floor") is not None:
        line = check_line(
            "ib_write", floor_gbit_per_s=gpu["floor"], message_bytes=gpu["message_size_bytes"], gpu_memory="yes"
        )
        yield sourced(line, gpu["source"])
    elif host.get("floor") is not None:
        line = check_line(
            "ib_write",
            floor_gbit_per_s=host["floor"],
            message_bytes=host["message_size_bytes"],
            gpu_memory="no",
            queue_pairs=2,
            seconds=10,
        )
        yield sourced(line, host["source"])
    elif gpu or host:
        yield sourced(check_line("ib_write", floor_gbit_per_s=None), None)
