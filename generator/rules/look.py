"""What several rules look at: the roles with their VM sizes and images, prefixes, figures, and how values are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path as FilePath
from typing import Any

from .. import catalog
from ..definition.model.slurm import NodeProjects, Partition
from ..plan.cluster import image_of
from ..words.suggestions import did_you_mean
from .base import Path, Site

_LONGEST_SUGGESTION = 80
_LONGEST_SHOWN = 60
GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


@cache
def figures() -> Mapping[str, Any]:
    """Figures that only rules need, each with its source."""
    content: Mapping[str, Any] = json.loads(
        (FilePath(catalog.__file__).parent / "rule_figures.json").read_text(encoding="utf-8")
    )
    return content


def limit(name: str) -> int:
    """The plain value of one entry of the catalogue's limits."""
    value: int = catalog.limits()[name]["value"]
    return value


# ---------------------------------------------------------------- words


def quoted(text: str) -> str:
    """A value as the user wrote it, on one line and short."""
    short = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return "'" + "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in short) + "'"


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def count_of(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`, `2 addresses`."""
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    return f"{number} {noun if number == 1 else plural}"


def meant(word: str, allowed: Sequence[str]) -> str | None:
    """The hint `did you mean '…'?`; None when nothing is close or the word is too long to be a slip."""
    return _meant(word, tuple(allowed)) if 0 < len(word) <= _LONGEST_SUGGESTION else None


@lru_cache(maxsize=1024)
def _meant(word: str, allowed: tuple[str, ...]) -> str | None:
    close = did_you_mean(word, allowed)
    return f"did you mean '{close}'?" if close and close != word else None


def size_meant(word: str) -> str | None:
    """The hint for a misspelt VM size; the common `Standard_` does not count as likeness."""
    if not 0 < len(word) <= _LONGEST_SUGGESTION:
        return None
    near = catalog.canonical_vm_size(word)
    if near:
        return f"did you mean '{near}'?"
    hint = meant(re.sub("^standard_", "", word, flags=re.IGNORECASE), _short_sizes())
    return hint.replace("'", "'Standard_", 1) if hint else None


@cache
def _short_sizes() -> tuple[str, ...]:
    return tuple(name.removeprefix("Standard_") for name in catalog.vm_size_names())


def choose_from(word: str, allowed: Sequence[str], few: int = 12) -> str | None:
    """A suggestion, else the allowed words when they are few."""
    return meant(word, allowed) or (f"allowed: {', '.join(allowed)}" if 0 < len(allowed) <= few else None)


# ---------------------------------------------------------------- places


def given(site: Site, path: Path) -> bool:
    """Whether the user wrote a value at this path."""
    data: Any = site.data
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not in_list and not (isinstance(data, Mapping) and step in data):
            return False
        data = data[step]
    return data is not None


def first_given(site: Site, *paths: Path) -> Path:
    """The first path that the user wrote; else the last one, whose section the position falls back to."""
    return next((path for path in paths if given(site, path)), paths[-1])


# ---------------------------------------------------------------- roles

SCHEDULER: Path = ("slurm", "scheduler")
LOGIN: Path = ("slurm", "login")
PARTITIONS: Path = ("slurm", "partitions")


@dataclass(frozen=True)
class Machine:
    """One VM size of the definition: of a role of the cluster, the server or the jumpbox."""

    label: str
    path: Path
    """Path of the section that holds `vm_size`."""
    vm_size: str

    @property
    def size_path(self) -> Path:
        """Path of the VM size."""
        return (*self.path, "vm_size")


@dataclass(frozen=True)
class RoleNode(Machine):
    """A role whose nodes run projects."""

    settings: NodeProjects
    image: str
    image_path: Path
    """Where the image is written: at the role, at `slurm.image`, or (default image) the VM size."""

    @property
    def partition(self) -> Partition | None:
        """The partition, when this is one."""
        return self.settings if isinstance(self.settings, Partition) else None


def partitions(site: Site) -> Iterator[tuple[Path, Partition]]:
    """The partitions with their paths."""
    for index, partition in enumerate(site.definition.slurm.partitions):
        yield (*PARTITIONS, index), partition


def partition_label(partition: Partition) -> str:
    """How messages name a partition."""
    return f"partition {quoted(partition.name)}"


def roles(site: Site) -> Iterator[RoleNode]:
    """Scheduler, login nodes and partitions."""
    slurm = site.definition.slurm
    yield _role(site, "the scheduler", SCHEDULER, slurm.scheduler, slurm.scheduler.vm_size)
    yield _role(site, "the login nodes", LOGIN, slurm.login, slurm.login.vm_size)
    for path, partition in partitions(site):
        yield _role(site, partition_label(partition), path, partition, partition.vm_size)


def _role(site: Site, label: str, path: Path, settings: NodeProjects, vm_size: str) -> RoleNode:
    image = image_of(site.definition, settings, vm_size)
    return RoleNode(
        label,
        path,
        vm_size,
        settings,
        image,
        first_given(site, (*path, "image"), ("slurm", "image"), (*path, "vm_size")),
    )


def image_users(site: Site) -> Iterator[RoleNode]:
    """The roles, only one of those that take their image from `slurm.image`: for what depends on the image alone."""
    seen = False
    for node in roles(site):
        shared = node.image_path == ("slurm", "image")
        if not (shared and seen):
            yield replace(node, label="all roles without an image of their own") if shared else node
        seen = seen or shared


def machines(site: Site) -> Iterator[Machine]:
    """Everything that has a VM size: server, jumpbox, roles."""
    server = site.definition.server
    yield Machine("the CycleCloud server", ("server",), server.vm_size)
    if server.jumpbox is not None:
        yield Machine("the jumpbox", ("server", "jumpbox"), server.jumpbox.vm_size)
    yield from roles(site)


def is_hpc(partition: Partition) -> bool:
    """Whether the partition's nodes share one placement group: as written, else where the size has InfiniBand."""
    if partition.hpc is not None:
        return partition.hpc
    return catalog.vm_size(partition.vm_size).infiniband


def gpus(vm_size: str) -> int:
    """GPUs of a size; 0 for an unknown one."""
    return catalog.vm_size(vm_size).gpu_count


def login_maximum(site: Site) -> int:
    """Most login nodes that may run."""
    login = site.definition.slurm.login
    return login.max_count if login.max_count is not None else max(login.count, 1)


# ---------------------------------------------------------------- images


@dataclass(frozen=True)
class ImageFacts:
    """What the catalogue knows of a node image."""

    os: str
    arch: tuple[str, ...]
    variant: str
    """GPU driver variant: `nvidia`, `v100` or `rocm`."""


_URN = re.compile(r"[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+")


def is_urn(image: str) -> bool:
    """Whether the text has the four parts of a marketplace URN."""
    return _URN.fullmatch(image) is not None


def image_variant(urn: str) -> str:
    """GPU driver variant that an HPC image's SKU names."""
    return next((variant for variant in ("v100", "rocm") if variant in urn.lower()), "nvidia")


def image_facts(image: str) -> ImageFacts | None:
    """Facts of a CycleCloud image name or of a known HPC image; None for others, about which nothing can be said."""
    row = catalog.image(image)
    if row is None and is_urn(image):
        latest = f"{image.rsplit(':', 1)[0]}:latest".lower()
        row = catalog.images()["hpc_marketplace"].get(latest)
    return ImageFacts(row["os"], tuple(row["arch"]), image_variant(image)) if row else None


# ---------------------------------------------------------------- resource ids


def resource_id_fault(text: str, provider: str, kind: str) -> str | None:
    """What is wrong with a resource id that should name a `provider/kind`; None when it is well-formed."""
    parts = text.split("/")
    if len(parts) != 9 or parts[0] or parts[1].lower() != "subscriptions" or parts[3].lower() != "resourcegroups":
        return "is not of the form /subscriptions/…/resourceGroups/…/providers/…/…/…"
    if not re.fullmatch(GUID, parts[2]):
        return (
            f"names the subscription {quoted(parts[2])}, which is not an id like 00000000-0000-0000-0000-000000000000"
        )
    if not re.fullmatch(r"[\w.()-]{1,90}", parts[4]):
        return f"names the resource group {quoted(parts[4])}, which cannot exist"
    if parts[5].lower() != "providers" or (parts[6].lower(), parts[7].lower()) != (provider.lower(), kind.lower()):
        return f"names a {quoted(parts[6] + '/' + parts[7])}, not a {provider}/{kind}"
    if not re.fullmatch(r"[\w.-]{1,260}", parts[8], re.ASCII):
        return "ends without a valid name"
    return None
