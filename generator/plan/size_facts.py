"""What nodes are told about their VM size: three node attributes, so that no project carries a table of sizes.

`cycleforge.vm_size.base` is read by `misc_ndv4`, `cycleforge.vm_size.quick` and `.deep` by `slurm_nhc`. Each is one
line of plain text (`docs/projects.md` says why):

    1 standard_nd96isr_h100_v5 | from ms-nd-h100 | gpus=8 | gpu_vendor=NVIDIA | from azhpc-images | …

The number of the format, the VM size in lower case, then records. `from SOURCE` names where the records after it come
from (`null`: the figure is not published), `use SET` stands for the checks that a project itself has for such nodes.
`%XX` is a byte that the format, a template or a shell would take for something else.

A node array of several sizes has the attributes of each, with the size in their names:
`cycleforge.vm_size.standard_d64ds_v5.base`. A node reads those of the size that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..catalog.sizes import VmSize
from . import health_checks
from .health_checks import source_of
from .mig import MigPlan
from .sourced import Sourced, sourced

FORMAT = 1
PREFIX = "cycleforge.vm_size"
MAX_CHARACTERS = 2000
"""Of one attribute. Microsoft's own template puts a certificate (PEM, about as long) into one.

Source: `slurm.accounting.certificate` in https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt
"""
_SEPARATOR = " | "
_RESERVED = frozenset('%|"\\$`')

_OF_THE_MACHINE = (
    "CUDA_DEVICE_ORDER",
    "NCCL_GRAPH_FILE",
    "NCCL_IB_DISABLE",
    "NCCL_IB_PCI_RELAXED_ORDERING",
    "NCCL_IGNORE_CPU_AFFINITY",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_SOCKET_IFNAME",
    "NCCL_TOPO_FILE",
)
"""Variables for every job of a node, because they describe the machine.

The rest of the catalogue's list tunes one benchmark and stays with the jobs that want it: UCX_TLS=tcp would take
InfiniBand away from every other MPI program, NCCL_MIN_NCHANNELS cores from every kernel.
"""


def base_attributes(sizes: tuple[VmSize, ...]) -> dict[str, str]:
    """What `misc_ndv4` reads: disks, GPUs, NCCL files and variables; nothing for an unknown size."""
    return {f"{start}.base": written(size, _base(size)) for start, size in _starts(sizes)}


def check_attributes(sizes: tuple[VmSize, ...], mig: MigPlan | None = None) -> dict[str, str]:
    """What `slurm_nhc` reads: the lines of its two configurations; nothing for an unknown size."""
    values: dict[str, str] = {}
    for start, size in _starts(sizes):
        values[f"{start}.quick"] = written(size, health_checks.quick(size, mig))
        values[f"{start}.deep"] = written(size, health_checks.deep(size, mig))
    return values


def _starts(sizes: tuple[VmSize, ...]) -> Iterator[tuple[str, VmSize]]:
    """What the attributes of each known size begin with: its name is a part only where a node array has several."""
    for size in sizes:
        if size.known:
            yield (PREFIX if len(sizes) == 1 else f"{PREFIX}.{size.name.lower()}"), size


def written(size: VmSize, records: Iterable[Sourced]) -> str:
    """The attribute's text; ValueError when it is longer than MAX_CHARACTERS, which only our own data can cause."""
    words, source = [f"{FORMAT} {size.name.lower()}"], None
    for record in records:
        if record.source != source and not record.text.startswith("use "):
            source = record.source
            words.append(f"from {_escaped(source)}")
        words.append(_escaped(record.text))
    text = _SEPARATOR.join(words)
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"an attribute of {size.name} has {len(text)} characters, more than {MAX_CHARACTERS}")
    return text


def _escaped(text: str) -> str:
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in _RESERVED else f"%{byte:02X}" for byte in text.encode()
    )


def _fact(key: str, value: object, source: object) -> Sourced:
    return sourced(f"{key}={'null' if value is None else value}", source)


def _base(size: VmSize) -> Iterator[Sourced]:
    if not size.known:
        return
    if size.gpu_count:
        yield _fact("gpus", size.gpu_count, source_of(size, "gpu"))
        yield _fact("gpu_vendor", size.gpu_vendor, source_of(size, "gpu"))
    yield _fact("nvme_disks", size.nvme_count, source_of(size, "local_storage"))
    yield from _nccl(size)


def _nccl(size: VmSize) -> Iterator[Sourced]:
    """Places of NCCL's files and the variables of the machine; those of jobs win over those of the image."""
    of_image, of_jobs = size.sources.get("topology"), size.sources.get("nccl_env")
    for key, path in (
        ("nccl_topo_file", size.nccl_topo_file),
        ("nccl_topo_link", size.nccl_topo_link),
        ("nccl_graph_file", size.nccl_graph_file),
    ):
        if path:
            yield _fact(key, path, of_image)
    image, jobs = dict(size.nccl_conf), dict(size.nccl_env)
    for variable in _OF_THE_MACHINE:
        if variable in jobs:
            yield _fact(f"variable.{variable}", jobs[variable], of_jobs)
        elif variable in image:
            yield _fact(f"variable.{variable}", image[variable], of_image)
    if "LD_LIBRARY_PATH_PREPEND" in jobs:
        yield _fact("nccl_library_path", jobs["LD_LIBRARY_PATH_PREPEND"], of_jobs)
