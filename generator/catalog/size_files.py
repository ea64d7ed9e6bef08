"""VM sizes by name: those with GPUs or InfiniBand have a file each, all others are rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from msgspec import field

from .files import FOLDER, Fact, Row, read, table
from .nccl_facts import Environment, nccl
from .sizes import Arch, NcclFigure, Pairs, VmSize


class Cpu(Row, frozen=True, kw_only=True):
    arch: Arch
    vcpus: int


class Gpu(Row, frozen=True, kw_only=True):
    count: int = 0
    vendor: str | None = None
    model: str | None = None
    memory_gb: int | None = None


class InfiniBand(Row, frozen=True, kw_only=True):
    nics: int = 0
    gbps_per_nic: int | None = None


class LocalStorage(Row, frozen=True, kw_only=True):
    nvme_count: int | None = None


class Memory(Row, frozen=True, kw_only=True):
    gib: float


class GuestMemory(Row, frozen=True, kw_only=True):
    mib: int | None = None


class Named(Row, frozen=True, kw_only=True):
    name: str | None = None


class Images(Row, frozen=True, kw_only=True):
    marketplace_urns: tuple[str, ...] = ()


class Launch(Row, frozen=True, kw_only=True):
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpu_masks: tuple[str, ...] | None = None


class NcclVariables(Row, frozen=True, kw_only=True):
    vars: dict[str, int | str] = field(default_factory=dict)


class NvlinkFabric(Row, frozen=True, kw_only=True):
    manager: str | None = None
    registration: str | None = None


class Topology(Row, frozen=True, kw_only=True):
    nccl_topo_file: str | None = None
    image_link: str | None = None
    nccl_graph_file: str | None = None
    etc_nccl_conf: tuple[str, ...] = ()


class Retirement(Row, frozen=True, kw_only=True):
    date: str | None = None


class Needs(Row, frozen=True, kw_only=True):
    text: str | None = None


class Unpublished(Row, frozen=True, kw_only=True):
    checks: tuple[str, ...] = ()


class SizeFile(Fact, frozen=True, kw_only=True):
    """A file of `vm_sizes/`; a group that is missing there has no figure."""

    cpu: Cpu
    gpu: Gpu = Gpu()
    infiniband: InfiniBand = InfiniBand()
    local_storage: LocalStorage = LocalStorage()
    memory: Memory | None = None
    guest_memory: GuestMemory = GuestMemory()
    quota_family: Named = Named()
    health: dict[str, dict[str, Any]] = field(default_factory=dict)
    images: Images = Images()
    launch: Launch = Launch()
    nccl: tuple[NcclFigure, ...] = ()
    nccl_env: NcclVariables = NcclVariables()
    nvlink_fabric: NvlinkFabric = NvlinkFabric()
    topology: Topology = Topology()
    retirement: Retirement = Retirement()
    needs: Needs = Needs()
    unpublished: Unpublished = Unpublished()
    page: str | None = None

    @property
    def sources(self) -> dict[str, tuple[str, ...]]:
        """Of the groups whose figures reach nodes together with their source."""
        groups = {
            "cpu": self.cpu, "gpu": self.gpu, "infiniband": self.infiniband, "local_storage": self.local_storage,
            "nvlink_fabric": self.nvlink_fabric, "topology": self.topology, "nccl_env": self.nccl_env,
        }  # fmt: skip
        return {name: group.source for name, group in groups.items() if group.source}


class TableRow(Fact, frozen=True, kw_only=True):
    vcpus: int
    memory_gib: float
    nvme_disks: int | None


class Series(Row, frozen=True, kw_only=True):
    """Sizes without GPU and InfiniBand that have a page in common."""

    arch: Arch
    page: str
    premium_storage: bool
    quota_family: str | None
    retirement: str | None
    sizes: dict[str, TableRow]


class OtherVmSizes(Fact, frozen=True, kw_only=True):
    guest_memory: dict[str, GuestMemory]
    series: dict[str, Series]


_others = table("other_vm_sizes", OtherVmSizes)


@cache
def vm_size(name: str) -> VmSize:
    """All published figures of a VM size; `known` is false for a size that the catalogue does not have."""
    if name in _names_of_files():
        return size_of_file(name, read(f"vm_sizes/{name}.json", SizeFile))
    if name in _series_of():
        guest = _others().guest_memory.get(name, GuestMemory())
        return size_of_table(name, _others().series[_series_of()[name]], guest)
    return VmSize(name)


@cache
def vm_size_names() -> tuple[str, ...]:
    """All known VM sizes, sorted."""
    return tuple(sorted(_names_of_files() | _series_of().keys()))


def canonical_vm_size(name: str) -> str | None:
    """The known size that differs from `name` at most in case or a missing `Standard_`; for suggestions only."""
    lower = name.strip().lower()
    known = _by_lower_name()
    return known.get(lower) or known.get(f"standard_{lower}")


@cache
def _by_lower_name() -> Mapping[str, str]:
    return {name.lower(): name for name in vm_size_names()}


@cache
def _names_of_files() -> frozenset[str]:
    """Sizes with a file of their own; the listing also guards against names that are paths."""
    return frozenset(path.stem for path in (FOLDER / "vm_sizes").glob("*.json"))


@cache
def _series_of() -> Mapping[str, str]:
    return {size: name for name, series in _others().series.items() for size in series.sizes}


def size_of_file(name: str, content: SizeFile) -> VmSize:
    """A GPU or InfiniBand size, from its own file."""
    environments = nccl().environments
    return VmSize(
        name=name,
        known=True,
        vcpus=content.cpu.vcpus,
        memory_gib=_memory_gib(content),
        guest_memory_mib=content.guest_memory.mib,
        arch=content.cpu.arch,
        gpu_count=content.gpu.count,
        gpu_vendor=content.gpu.vendor,
        gpu_model=content.gpu.model,
        gpu_memory_gb=content.gpu.memory_gb,
        infiniband_nics=content.infiniband.nics,
        infiniband_gbps_per_nic=content.infiniband.gbps_per_nic,
        nvme_count=content.local_storage.nvme_count,
        needs=content.needs.text,
        images=content.images.marketplace_urns,
        fabric_manager=content.nvlink_fabric.manager,
        fabric_registration=content.nvlink_fabric.registration,
        nccl_topo_file=content.topology.nccl_topo_file,
        nccl_topo_link=content.topology.image_link,
        nccl_graph_file=content.topology.nccl_graph_file,
        nccl_conf=tuple(_pair(line) for line in content.topology.etc_nccl_conf),
        nccl_env=_variables(content.nccl_env.vars),
        nccl_benchmark_env=_added(name, environments.benchmark),
        nccl_training_env=_added(name, environments.training),
        nccl_sharp_env=_added(name, environments.sharp),
        nccl=content.nccl,
        nccl_typical=nccl().typical.get(name, ()),
        tasks_per_node=content.launch.tasks_per_node,
        cpus_per_task=content.launch.cpus_per_task,
        cpu_masks=content.launch.cpu_masks or (),
        health=content.health,
        unpublished=content.unpublished.checks,
        quota_family=content.quota_family.name,
        retirement=content.retirement.date,
        page=content.page,
        sources=content.sources,
    )


def _memory_gib(content: SizeFile) -> float | None:
    if content.memory is not None:
        return content.memory.gib
    return round(content.health["memory"]["expected_kib"] / 2**20, 1) if "memory" in content.health else None


def _variables(figures: Mapping[str, int | str]) -> Pairs:
    return tuple(sorted((name, str(value)) for name, value in figures.items()))


def _added(size: str, environment: Environment) -> Pairs:
    return _variables(environment.variables) if size in environment.sizes else ()


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key, value


def size_of_table(name: str, series: Series, guest: GuestMemory) -> VmSize:
    """A size without GPU and InfiniBand, from its row, the figures of its series and those of its guests."""
    row = series.sizes[name]
    return VmSize(
        name=name,
        known=True,
        vcpus=row.vcpus,
        memory_gib=row.memory_gib,
        guest_memory_mib=guest.mib,
        arch=series.arch,
        premium_storage=series.premium_storage,
        nvme_count=row.nvme_disks,
        quota_family=series.quota_family,
        retirement=series.retirement,
        page=series.page,
    )
