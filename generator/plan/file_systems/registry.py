"""The kinds of file system, and the file systems that a definition asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ...definition.kinds import kind_of, sections, type_tags
from ...definition.model.definition import Definition
from ...definition.model.storage import Storage
from .. import names
from ..bicep_modules import BicepModule
from ..computed import computed_once
from . import __name__ as package
from . import __path__ as folders
from .base import FileSystem, NodeSettings, Place

_Kind = TypeVar("_Kind", bound=FileSystem)


def _types() -> Iterator[str]:
    """The values that `type` of a file system takes, in the order of the definition's sections."""
    for key in ("home", "mounts"):
        kind = kind_of(Storage.declared_keys[key])
        yield from (tag for section in sections(kind) for tag in type_tags(section))


def _kinds() -> dict[str, type[FileSystem]]:
    """Class by type. A type without a class is a KeyError at the first import, and a test compares both ways."""
    for module in iter_modules(folders):
        if module.name != "registry":
            import_module(f"{package}.{module.name}")
    classes = {kind.default("kind"): kind for kind in FileSystem.__subclasses__()}
    return {name: classes[name] for name in _types()}


_BY_TYPE = _kinds()
KINDS: tuple[type[FileSystem], ...] = tuple(_BY_TYPE.values())
"""Each module beside this one holds one; their order is that in which `main.bicep` creates them."""


def is_created(section: Any) -> bool:
    """Whether the deployment creates what a section of the definition asks for, in a service of Azure."""
    return _BY_TYPE[section.type].is_created(section)


class Wanted(Struct, frozen=True):
    """A file system with the section of the definition that asks for it."""

    definition_path: tuple[str | int, ...]
    section: Any
    file_system: FileSystem

    @property
    def zone(self) -> str | None:
        """The zone that the definition names; the plan may choose one where it names none."""
        zone: str | None = getattr(self.section, "zone", None)
        return zone

    @property
    def own_mount_options(self) -> str | None:
        """The mount options that the definition gives in place of the recommended ones."""
        options: str | None = getattr(self.section, "mount_options", None)
        return options


@computed_once
def wanted_by(definition: Definition) -> tuple[Wanted, ...]:
    """/sched, /shared and the definition's own mounts, in that order; without a cluster no scheduler has disks."""
    storage = definition.storage
    of_cluster = (
        _wanted(("storage", "sched"), Place("sched", "/sched", definition), storage.sched),
        _wanted(("storage", "home"), Place("home", "/shared", definition), storage.home),
    )
    return (
        *(each for each in of_cluster if definition.slurm is not None or not each.file_system.is_scheduler_disk),
        *(
            _wanted(("storage", "mounts", index), Place(names.mount_name(mount.path), mount.path, definition), mount)
            for index, mount in enumerate(storage.mounts)
        ),
    )


def _wanted(path: tuple[str | int, ...], place: Place, section: Any) -> Wanted:
    return Wanted(path, section, _BY_TYPE[section.type].planned(place, section))


def of_kind(definition: Definition, kind: type[_Kind]) -> Iterator[tuple[Wanted, _Kind]]:
    """The file systems of one kind that a definition asks for: for what concerns that kind alone."""
    for wanted in wanted_by(definition):
        if isinstance(wanted.file_system, kind):
            yield wanted, wanted.file_system


def by_kind(mounts: Iterable[FileSystem]) -> tuple[tuple[type[FileSystem], tuple[FileSystem, ...]], ...]:
    """The kinds that occur, each with its file systems."""
    listed = tuple(mounts)
    found = ((kind, tuple(mount for mount in listed if type(mount) is kind)) for kind in KINDS)
    return tuple((kind, same) for kind, same in found if same)


def modules(mounts: Iterable[FileSystem]) -> tuple[BicepModule, ...]:
    """The modules that create file systems, in an order in which each is declared before it is used."""
    return tuple(module for kind, same in by_kind(mounts) for module in (*kind.shared_modules(same), *_own(kind, same)))


def _own(kind: type[FileSystem], same: tuple[FileSystem, ...]) -> Iterator[BicepModule]:
    # The others name what they share by its name, not by an output: `what-if` could not tell what they create.
    shared = tuple(module.symbol for module in kind.shared_modules(same))
    before: tuple[str, ...] = ()
    for index, each in enumerate(same):
        module = each.module(index)
        if module is not None:
            yield replace(module, after=(*shared, *before))
            before = (module.symbol,) if kind.one_by_one else ()


def requirements(mounts: Iterable[FileSystem]) -> tuple[str, ...]:
    """What the subscription must have before they can be created."""
    return tuple(text for kind, same in by_kind(mounts) for text in kind.requirements(same))


def late_addresses(mounts: Iterable[FileSystem]) -> tuple[tuple[str, str], ...]:
    """(key of the server's facts, symbol of the module whose output `address` it is) of what the deployment creates."""
    return tuple(
        (each.address_fact, module.symbol)
        for _, same in by_kind(mounts)
        for index, each in enumerate(same)
        if (module := each.module(index)) is not None and each.address_fact is not None
    )


def node_settings(mounts: Iterable[FileSystem]) -> tuple[NodeSettings, ...]:
    """What every node needs to know for the mounts that our projects make."""
    return tuple(found for kind, same in by_kind(mounts) if (found := kind.node_settings(same)) is not None)
