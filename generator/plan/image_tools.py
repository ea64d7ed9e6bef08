"""Which deep checks of a VM size an image can do: each needs a tool, and images bring different ones."""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from ..catalog.node_images import NodeImage, image_row
from ..catalog.sizes import VmSize
from .measured_checks import all_reduce_figures, loopback_figures, tests


class MissingTool(Struct, frozen=True):
    """A deep check that an image cannot do."""

    check: str
    tools: tuple[str, ...]
    """Any of them would do, as `health_tests.json` calls them."""


def missing_tools(size: VmSize, image: str) -> tuple[MissingTool, ...] | None:
    """The deep checks of a size that an image has no tool for; None for an image of which nobody says what it brings,
    and for one that does not run on the size at all.

    Sources: the `tools` of each image and of each check in the catalogue.
    """
    brought = _tools_of(size, image)
    if brought is None or not size.health:
        return None if brought is None else ()
    rows, tools = tests().checks, tests().tools
    here = {name for name in brought if size.arch in tools[name].arch}
    missing = []
    for check in _checks(size):
        wanted = _needed(size, check, tuple(rows[check]))
        if not here & set(wanted):
            missing.append(MissingTool(check, wanted))
    return tuple(missing)


def _tools_of(size: VmSize, image: str) -> tuple[str, ...] | None:
    row = image_row(image)
    if row is not None:
        runs = size.arch in row.arch and _driver(row) in {_driver(image_row(urn)) for urn in size.images or (image,)}
        return row.tools if runs else None
    publisher, *rest = image.lower().split(":")
    return () if len(rest) == 3 and publisher in tests().plain_publishers.values else None


def _driver(row: NodeImage | None) -> str | None:
    """For whose GPUs an image is; one that does not say it has NVIDIA's driver."""
    return row.gpu if row else None


def _checks(size: VmSize) -> tuple[str, ...]:
    if not size.gpu_count:
        # Without a published floor nothing is run.
        stream = ("cpu_stream",) if size.name in catalog.streams() else ()
        return (*stream, "ib_write") if size.infiniband else ()
    network = ("ib_write",) if size.infiniband else ()
    if size.gpu_vendor == "AMD":
        return ("gpu_copies", "rccl_all_reduce", *network)
    several = ("gpu_copy_peer", "nccl_all_reduce") if size.gpu_count > 1 else ()
    loopback = ("nccl_loopback",) if several and loopback_figures(size) else ()
    return ("gpu_copy_to_device", "gpu_copy_from_device", *several, *loopback, "gpu_diagnostic", *network)


def _needed(size: VmSize, check: str, tools: tuple[str, ...]) -> tuple[str, ...]:
    """NCCL's tests run on the host or in the container, as their floor was measured; the other one is a fallback that
    is judged by no floor."""
    figures = {"nccl_all_reduce": all_reduce_figures, "nccl_loopback": loopback_figures}.get(check)
    found = figures(size) if figures else None
    if found is None or found["floor_gb_per_s"] is None:
        return tools
    place = tests().environments[found["environment"]].place
    return ("aznhc",) if place == "container" else ("nccl-tests",)


def tool_titles(names: tuple[str, ...]) -> str:
    """The tools in words, for messages."""
    rows = tests().tools
    return ", ".join(str(rows[name].title) for name in names)
