"""NCCL and MPI: variables, and what floors are derived from."""

from __future__ import annotations

from .files import Fact, Figure, Row, table
from .sizes import NcclTypical


class DerivedRule(Row, frozen=True, kw_only=True):
    """A share of what ports carry, for messages and numbers of nodes from these on."""

    share: Figure
    collectives: tuple[str, ...]
    message_at_least: str
    nodes_at_least: int
    algorithms: tuple[str, ...] = ()


class DerivedShare(Row, frozen=True, kw_only=True):
    share: Figure


class Derived(Fact, frozen=True, kw_only=True):
    line_rate: DerivedRule
    one_port: DerivedRule
    typical: DerivedShare


class Environment(Row, frozen=True, kw_only=True):
    sizes: tuple[str, ...]
    variables: dict[str, int | str]


class Environments(Fact, frozen=True, kw_only=True):
    """What they add to the variables of a VM size."""

    benchmark: Environment
    training: Environment
    sharp: Environment


class Program(Row, frozen=True, kw_only=True):
    path: str


class Relative(Row, frozen=True, kw_only=True):
    """When a run is slower than its peers."""

    fail_percent: int
    warn_percent: Figure
    runs_at_least: int


class SizeCap(Row, frozen=True, kw_only=True):
    """Which message nccl-tests does not lower by itself."""

    buffers: int
    headroom_gib: int
    reserve_gib_at_most: int
    reserve_per_gib: int
    usable_share: Figure


class Nccl(Fact, frozen=True, kw_only=True):
    derived: Derived
    environments: Environments
    programs: dict[str, Program]
    """By vendor of the GPUs."""
    relative: Relative
    size_cap: SizeCap
    typical: dict[str, tuple[NcclTypical, ...]]
    """By VM size."""


class Bandwidth(Row, frozen=True, kw_only=True):
    nics: int
    share: Figure
    """Of a port, that a healthy pair reaches."""


class Latency(Row, frozen=True, kw_only=True):
    bytes: int
    us: Figure
    allowance: Figure


class Mpi(Fact, frozen=True, kw_only=True):
    """Of MPI between two nodes without GPUs."""

    bandwidth: Bandwidth
    latency: dict[str, Latency]
    """Of a small message, by quota family."""


nccl = table("nccl", Nccl)
