"""How the links of a VM size are measured, and by which floors: settings of the fabric's jobs.

A published floor fails, a derived one warns at most. What has neither is judged by the median of the nodes.
"""

from __future__ import annotations

from .. import catalog
from ..catalog.sizes import VmSize
from .measured_checks import figures_of, tests
from .nccl_baselines import baselines, message_size

_PROGRAMS = {"NVIDIA": "/opt/nccl-tests/build/all_reduce_perf", "AMD": "/opt/rccl-tests/all_reduce_perf"}
_NO_FLOOR = {"FLOOR_FAIL": "", "FLOOR_SOURCE": "none is published", "FLOOR_WARN": ""}


def pairs(size: VmSize) -> dict[str, str]:
    """Two nodes with each other."""
    settings = _gpu_pairs(size) if size.gpu_count else _cpu_pairs(size)
    return settings | {"FAR_IS_SLOWER": "1" if size.fabric_registration == "rack" else "0"}


def _gpu_pairs(size: VmSize) -> dict[str, str]:
    """All-reduce of two nodes, by rings over all their ports; GB/s of bus bandwidth."""
    message = message_size(size, 2, "8G")
    rows = [
        row for row in baselines(size)
        if row.applies(2) and row.metric == "busbw" and (row.or_larger or row.message_size == message)
        and (not row.algorithms or "RING" in row.algorithms) and row.fabric in (None, "infiniband")
    ]  # fmt: skip
    floors = dict(_NO_FLOOR)
    if rows:
        row = rows[0]
        floors["FLOOR_FAIL"] = _text(row.fail if row.kind == "published" else None)
        floors["FLOOR_WARN"] = _text(row.warn)
        floors["FLOOR_SOURCE"] = f"{row.kind}: {row.formula or row.source}"
    binary = _PROGRAMS.get(size.gpu_vendor or "", "")
    return {"BINARY": binary, "MESSAGE_SIZE": message, "METHOD": "nccl", **floors}


def _cpu_pairs(size: VmSize) -> dict[str, str]:
    """One process per node sends to another; GB/s."""
    figures = catalog.mpi().bandwidth
    floors = dict(_NO_FLOOR)
    if size.infiniband_nics == figures.nics and size.infiniband_gbps_per_nic:
        gbps = size.infiniband_gbps_per_nic
        floors["FLOOR_WARN"] = str(round(figures.share * gbps / 8, 2))
        floors["FLOOR_SOURCE"] = f"derived: {figures.share} x {gbps} Gb/s / 8, the line rate of the port"
    return {"BINARY": "osu_bw", "MESSAGE_SIZE": "4M", "METHOD": "osu", **floors}


def ports(size: VmSize) -> dict[str, str]:
    """Every port of a node with the same port of another; GB/s of one port."""
    write, relative = figures_of(size, "ib_write"), tests().relative
    share, gbps = catalog.mpi().bandwidth.share, size.infiniband_gbps_per_nic
    return {
        "LINK_GPU_MEMORY": "1" if write.get("gpu_memory", False) else "0",
        "LINK_MESSAGE_BYTES": _text(write.get("message_bytes", relative.message_bytes)),
        "LINK_PORTS": str(size.infiniband_nics),
        "PORT_FLOOR_WARN": str(round(share * gbps / 8, 2)) if gbps else "",
        "PORT_SOURCE": f"derived: {share} x {gbps} Gb/s / 8, the line rate of the port"
        if gbps
        else "none is published",
    }


def links(size: VmSize) -> dict[str, str]:
    """Every port by itself, and all without the way through the node; floors of the deep health checks."""
    write, loopback = figures_of(size, "ib_write"), figures_of(size, "nccl_loopback")
    relative = tests().relative
    gpu_memory = write.get("gpu_memory", False)
    return {
        "LINK_FLOOR_GBPS": _text(write.get("floor_gbit_per_s")),
        "LINK_GPU_MEMORY": "1" if gpu_memory else "0",
        "LINK_MESSAGE_BYTES": _text(write.get("message_bytes", relative.message_bytes)),
        "LINK_PORTS": str(size.infiniband_nics),
        "LINK_SOURCE": f"published: {write['source']}" if write else "",
        "LOOPBACK_FLOOR": _text(loopback.get("floor_gb_per_s")),
        "LOOPBACK_MESSAGE_END": str(loopback.get("message_end", relative.loopback_message_end)),
        "LOOPBACK_SOURCE": f"published: {loopback['source']}" if loopback.get("source") else "",
    }


def latency(size: VmSize) -> dict[str, str]:
    """Microseconds of a small message between two nodes; a warning at most."""
    row = catalog.mpi().latency.get(size.quota_family or "") if not size.gpu_count else None
    if not row:
        return {"LATENCY_BYTES": "8", "LATENCY_SOURCE": "none is published", "LATENCY_WARN_US": ""}
    allowance = row.allowance
    formula = f"{allowance} x {row.us} us, " if allowance != 1 else ""
    return {
        "LATENCY_BYTES": str(row.bytes),
        "LATENCY_SOURCE": f"{'derived' if formula else 'published'}: {formula}{size.page or size.quota_family}",
        "LATENCY_WARN_US": str(round(allowance * row.us, 2)),
    }


def _text(value: float | None) -> str:
    return "" if value is None else str(value)
