"""docs/health-floors.md: every floor of a deep check with the environment it was measured in, out of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import Figures, VmSize
from .measured_checks import all_reduce_figures, figures_of, loopback_figures, tests

PAGE = "docs/health-floors.md"
_START = """# Floors of the deep health checks

Generated from the catalogue by `make accept`. Do not edit.

A deep check compares what it measures with a published floor. A floor holds for the environment, the
message and the number of tries of its own row, so a node runs each test in exactly that environment. Where the
environment cannot be had on a node, the test runs in another one under another name (`nccl_all_reduce_host`,
`ib_write_host`) and is judged by no floor. A value without a floor is compared with the median of comparable nodes
by `cycleforge health report`, which warns at most.

"""
_UNPUBLISHED = """## Quick checks of GPU sizes without a published figure

Azure's node health checks have no figure of these sizes for these checks. The check uses what Microsoft's page of the
size documents; memory, of which a guest sees less than documented, is measured and has no baseline.

| VM size | checks |
|---|---|
"""
_ENVIRONMENTS = """## Environments of NCCL's tests

`container` is the image of Azure's node health checks, `host` the nccl-tests of the HPC image with its HPC-X (NC sizes:
Open MPI). NCCL gets these variables and no others, beside `/etc/nccl.conf`, which it reads itself. The test of
InfiniBand alone (`nccl_loopback`) adds `NCCL_SHM_DISABLE=1` and `NCCL_P2P_DISABLE=1`. `jobs` stands for the NCCL
variables that jobs of the size get, where nobody has published a test of one node.

"""
_TOOLS = """## Which image has which tool

Images for NVIDIA's GPUs and those for AMD's (the ROCm images) bring different tools.

| tool | architectures | images for GPUs of | checks |
|---|---|---|---|
"""
_HEADER = """| VM size | check | floor | warns below | tries | how | environment | source |
|---|---|---|---|---|---|---|---|
"""


def page() -> str:
    rows = "".join(row for name in catalog.vm_size_names() for row in _rows(catalog.vm_size(name)))
    parts = (_START + _HEADER + rows, _UNPUBLISHED + _unpublished(), _ENVIRONMENTS + _environments(), _TOOLS + _tools())
    return "\n".join(parts)


def _unpublished() -> str:
    sizes = map(catalog.vm_size, catalog.vm_size_names())
    return "".join(f"| {size.name} | {', '.join(size.unpublished)} |\n" for size in sizes if size.unpublished)


def _rows(size: VmSize) -> Iterator[str]:
    if not size.health:
        return
    if size.gpu_vendor == "NVIDIA":
        yield from _nvidia_rows(size)
    elif size.gpu_vendor == "AMD":
        yield from _amd_rows(size)
    else:
        yield from _stream_rows(size)
    write = figures_of(size, "ib_write")
    if write:
        memory = "GPU memory" if write["gpu_memory"] else "host memory"
        how = f"{write['message_bytes']} bytes, {memory}{_held(size) if write['gpu_memory'] else ''}, "
        how += "every device to itself, all at once"
        yield _row(size, "ib_write", write["floor_gbit_per_s"], "Gb/s", write, how)


def _held(size: VmSize) -> str:
    lock = figures_of(size, "clock_lock")
    return f", GPU clock held at {lock['mhz']} MHz" if lock else ""


def _amd_rows(size: VmSize) -> Iterator[str]:
    copies, reduce = figures_of(size, "amd_copies"), figures_of(size, "rccl_all_reduce")
    for check, figure in (("gpu_copy_to_device, gpu_copy_from_device", "host"), ("gpu_copy_peer", "peer")):
        if copies:
            how = "rocm-bandwidth-test -a, the slowest pair"
            yield _row(size, check, copies[f"{figure}_floor_gb_per_s"], "GB/s", copies, how)
    if reduce:
        (of_node,) = (figure for figure in size.nccl if figure.nodes == 1)
        how = f"{size.gpu_count} ranks, {of_node.message_size}, average bus bandwidth, rccl-tests of the image"
        yield _row(size, "rccl_all_reduce", of_node.fail, "GB/s", reduce, how)


def _stream_rows(size: VmSize) -> Iterator[str]:
    """STREAM runs where jobs span nodes; of some sizes nobody has published a floor."""
    if not size.infiniband:
        return
    stream = catalog.streams().get(size.name)
    how = "not run"
    if stream:
        how = f"{stream.program} of the container, {stream.threads} threads on given processors, "
        how += "each of Copy, Scale, Add, Triad"
    row = {"attempts": 2, "source": stream.source} if stream else {}
    yield _row(size, "cpu_stream", stream.floor_mb_per_s if stream else None, "MB/s", row, how)


def _nvidia_rows(size: VmSize) -> Iterator[str]:
    held = _held(size)
    for group, check in (("gpu_copy", "gpu_copy_to_device, gpu_copy_from_device"), ("gpu_copy_peer", "gpu_copy_peer")):
        copy = figures_of(size, group)
        if copy:
            how = f"nvbandwidth -i 10, every GPU{held}"
            yield _row(size, check, copy["floor_gb_per_s"], "GB/s", copy, how, warn=copy["warn_below_gb_per_s"])
    if size.gpu_count > 1:
        reduce, loopback = all_reduce_figures(size), loopback_figures(size)
        for check, figures in (("nccl_all_reduce", reduce), ("nccl_loopback", loopback)):
            if figures:
                end = f" to {figures['message_end']}" if "message_end" in figures else ""
                how = f"{size.gpu_count} ranks, {figures['message']}{end}, average bus bandwidth"
                yield _row(size, check, figures["floor_gb_per_s"], "GB/s", figures, how)


def _row(
    size: VmSize, check: str, floor: float | None, unit: str, figures: Figures, how: str, warn: object = ""
) -> str:
    shown = "none" if floor is None else f"{floor} {unit}"
    cells = (
        size.name,
        check,
        shown,
        f"{warn} {unit}" if warn else "",
        figures.get("attempts", 1),
        how,
        figures.get("environment", ""),
        figures["source"].replace(" ", "<br>") if floor is not None else "",
    )
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def _environments() -> str:
    text = "| environment | place | ranks bound to | plug-in path | variables | source |\n|---|---|---|---|---|---|\n"
    for name, row in sorted(tests().environments.items()):
        variables = "<br>".join(f"`{key}={value}`" for key, value in sorted(row.variables.items()))
        text += f"| {name} | {row.place} | {row.bind_to} | {row.library_path or ''} | {variables} | "
        text += f"{row.source} |\n"
    return text


def _tools() -> str:
    checks = tests().checks
    text = ""
    for name, row in sorted(tests().tools.items()):
        used = ", ".join(check for check, wanted in sorted(checks.items()) if name in wanted)
        text += f"| {row.title} | {', '.join(row.arch)} | {_drivers(name)} | {used} |\n"
    return text


def _drivers(tool: str) -> str:
    """For whose GPUs the images are that bring a tool."""
    gpus = {row.gpu for row in catalog.images().hpc_marketplace.values() if tool in (row.tools or ())}
    names = {"amd": "AMD", "nvidia": "NVIDIA", "nvidia-v100": "NVIDIA"}
    return ", ".join(sorted({names[gpu] for gpu in gpus})) or "NVIDIA"
