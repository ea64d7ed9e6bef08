"""The lines of deep checks that measure bandwidth, each with the environment in which its floor was measured.

A floor holds for the environment, the message and the number of tries of its own row. So a size names an environment
of the catalogue (`health_tests.json`) beside every floor of NCCL, and the node runs the test with exactly its
variables. Where no floor is published the node measures as well: `cycleforge health report` compares the value with
that of the other nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.health_facts import HealthTests
from ..catalog.sizes import Figures, VmSize
from .sourced import Sourced, check_line

_MPI_SOURCE = "Azure/azurehpc:experimental/cc_slurm_nhc (module mpi/hpcx; NC sizes mpi/openmpi)"
_OF_NCCL = ("CUDA_", "NCCL_")
_NOT_FOR_CHECKS = ("NCCL_DEBUG", "NCCL_TOPO_FILE")
"""Variables of jobs that a test without a floor does not take: the node's own `/etc/nccl.conf` names the file."""
_OWN = "jobs"
"""The environment of a size for which nobody has published one: the variables of its jobs."""


def figures_of(size: VmSize, check: str) -> Figures:
    """What a check of the size needs; nothing if it is not published."""
    return size.health.get(check, {})


def measured(size: VmSize) -> Iterator[Sourced]:
    """Copies and NCCL of a size with NVIDIA's GPUs."""
    lock = _clock_lock(size)
    for check in ("gpu_copy_to_device", "gpu_copy_from_device"):
        yield _copies(check, figures_of(size, "gpu_copy"), lock)
    if size.gpu_count > 1:
        yield _copies("gpu_copy_peer", figures_of(size, "gpu_copy_peer"), lock)
        if size.health:
            yield from _nccl(size)


def ib_write(size: VmSize) -> Sourced:
    """GPU memory where a floor is published for it, host memory otherwise; the tool's arguments are the source's."""
    write = figures_of(size, "ib_write")
    if not write:
        if size.gpu_vendor != "NVIDIA":
            return check_line("ib_write", None, floor_gbit_per_s=None)
        defaults = tests().relative
        return check_line(
            "ib_write", defaults.source, floor_gbit_per_s=None, message_bytes=defaults.message_bytes, gpu_memory="yes"
        )
    of_host = {} if write["gpu_memory"] else {"queue_pairs": 2, "seconds": 10}
    return check_line(
        "ib_write",
        write["source"],
        floor_gbit_per_s=write["floor_gbit_per_s"],
        message_bytes=write["message_bytes"],
        gpu_memory="yes" if write["gpu_memory"] else "no",
        **of_host,
        **_clock_lock(size) if write["gpu_memory"] else {},
    )


def tests() -> HealthTests:
    """Environments, tools of images, and the sizes of tests without a floor."""
    return catalog.health_tests()


def _clock_lock(size: VmSize) -> dict[str, object]:
    """The clock (MHz) at which the GPUs are held during the source's tests; nothing where it holds none."""
    lock = figures_of(size, "clock_lock")
    return {"lock_mhz": lock["mhz"]} if lock else {}


def _copies(check: str, figures: Figures, lock: dict[str, object]) -> Sourced:
    floor, warn = figures.get("floor_gb_per_s"), figures.get("warn_below_gb_per_s")
    return check_line(
        check, figures.get("source"), floor_gb_per_s=floor, warn_below_gb_per_s=warn, **lock if figures else {}
    )


def _nccl(size: VmSize) -> Iterator[Sourced]:
    """All-reduce, then the same over InfiniBand alone, in the environment that stands before them."""
    reduce, loopback = all_reduce_figures(size), loopback_figures(size)
    yield _environment(size, reduce["environment"])
    yield _all_reduce(size, "nccl_all_reduce", reduce)
    if loopback:
        yield _all_reduce(size, "nccl_loopback", loopback)


def all_reduce_figures(size: VmSize) -> Figures:
    """Environment, message, tries and floor (GB/s) of NCCL's all-reduce in one node; the floor is None if unpublished.

    Where the size's own row does not have the figures they are those of the run of one node, by which jobs are judged,
    too.
    """
    found = figures_of(size, "nccl_all_reduce")
    if "floor_gb_per_s" in found:
        return found
    relative = tests().relative
    if not found:
        return {
            "environment": _OWN,
            "message": relative.message,
            "attempts": relative.attempts,
            "floor_gb_per_s": None,
            "source": relative.source,
        }
    (of_node,) = (figure for figure in size.nccl if figure.nodes == 1)
    return {**found, "message": of_node.message_size, "floor_gb_per_s": of_node.fail}


def loopback_figures(size: VmSize) -> Figures | None:
    """The same for NCCL over InfiniBand alone; None where the size cannot run it: no source does on Grace."""
    if not size.infiniband or size.arch != "x86_64":
        return None
    relative = tests().relative
    return figures_of(size, "nccl_loopback") or {
        "environment": all_reduce_figures(size)["environment"],
        "message": relative.loopback_message,
        "message_end": relative.loopback_message_end,
        "attempts": relative.attempts,
        "floor_gb_per_s": None,
        "source": relative.source,
    }


def _all_reduce(size: VmSize, check: str, figures: Figures) -> Sourced:
    end = {"message_end": figures["message_end"]} if "message_end" in figures else {}
    return check_line(
        check,
        figures["source"],
        ranks=size.gpu_count,
        message=figures["message"],
        **end,
        floor_gb_per_s=figures["floor_gb_per_s"],
        attempts=figures["attempts"],
    )


def _environment(size: VmSize, name: str) -> Sourced:
    """`place`: on the host, or in the container of Azure's health checks; the rest is how its row starts the ranks."""
    module = "mpi/openmpi" if size.name.startswith("Standard_NC") else "mpi/hpcx"
    if name == _OWN:
        variables = {
            key: value for key, value in size.nccl_env if key.startswith(_OF_NCCL) and key not in _NOT_FOR_CHECKS
        }
        return check_line(
            "nccl_environment",
            [*size.sources.get("nccl_env", ()), _MPI_SOURCE],
            name=name,
            place="host",
            bind_to="numa",
            module=module,
            **variables,
        )
    row = tests().environments[name]
    library = {"library_path": row.library_path} if row.library_path else {}
    return check_line(
        "nccl_environment",
        [row.source, _MPI_SOURCE],
        name=name,
        place=row.place,
        bind_to=row.bind_to,
        hcoll=row.hcoll,
        module=module,
        **library,
        **row.variables,
    )
