"""`locker`: compare it with the projects here, list it, fetch a version, remove what nothing refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import CannotRead
from ..locker import prune as pruning
from ..locker.container import Container
from ..locker.layout import ROOT, Listing, Version, blobs_of, blobs_prefix, versions_of
from ..locker.look import Difference, Wanted, compare, proven, wanted_of
from ..locker.prune import Prune, Reference, order
from ..locker.pull import Pulled
from ..locker.pull import pull as fetch
from ..projects.ini import NAME
from ..records import record
from . import definitions
from .packages import Locker, Tell, destinations, plan_of


@record
class Verified:
    """A package beside what the locker has of it."""

    wanted: Wanted
    locker: str
    difference: Difference
    read: int
    """Files of which every byte was read."""
    is_visible: bool
    """Whether nodes see the version: its manifest is there."""


def verify(words: Sequence[str], locker: Locker, tell: Tell, *, content: bool = False) -> Iterator[Verified]:
    """Compare the projects that the words mean with their lockers, one by one; `content` reads every byte."""
    for each in destinations(words, locker, tell):
        container = locker.opened(each.address)
        for package in each.packages:
            yield _verified(container, wanted_of(package), str(each.address), content=content)


def _verified(container: Container, wanted: Wanted, address: str, *, content: bool) -> Verified:
    listing = dict(container.listing(wanted.prefix))
    if wanted.blobs:
        listing |= container.listing(blobs_prefix(wanted.project.name))
    unproven = [name for name in wanted.all if name in listing] if content else compare(wanted, listing).unproven
    listing |= proven(container, listing, unproven)
    difference = compare(wanted, listing)
    return Verified(wanted, address, difference, len(unproven), wanted.manifest_name in listing)


def contents(words: Iterable[str], locker: Locker) -> tuple[Container, list[Version], Mapping[str, Listing]]:
    """List PROJECT or PROJECT:VERSION, or everything: versions, and blobs by project. Raises CannotRead."""
    container = locker.opened(locker.needed())
    asked = [_reference(word) for word in words]
    prefix = f"{ROOT}{asked[0][0]}/" if len(asked) == 1 else ROOT
    listing = container.listing(prefix)
    versions = [
        each for each in versions_of(listing)
        if not asked or (each.project, each.version) in asked or (each.project, None) in asked
    ]  # fmt: skip
    versions.sort(key=lambda each: (each.project, order(each.version)))
    blobs = {
        project: files for project, files in sorted(blobs_of(listing).items()) if not asked or (project, None) in asked
    }
    missing = [
        f"{project}:{version}" if version else project for project, version in asked
        if not any(each.project == project and version in (None, each.version) for each in versions)
        and (version or project not in blobs)
    ]  # fmt: skip
    if missing:
        raise CannotRead(f"{container.address} has no {', '.join(missing)}", "cycleforge locker ls")
    return container, versions, blobs


def _reference(word: str, *, version_needed: bool = False) -> tuple[str, str | None]:
    """Project and version."""
    project, _, version = word.partition(":")
    if not NAME.fullmatch(project) or (version_needed and not version) or (version and not NAME.fullmatch(version)):
        raise CannotRead(
            f"'{word}' is not a project of a locker", "write PROJECT:VERSION, as `cycleforge locker ls` lists it"
        )
    return project, version or None


def pull(words: Iterable[str], locker: Locker, into: Path) -> Iterator[tuple[str, str, Pulled]]:
    """Fetch versions, one by one: project, version, and where it is now."""
    container = locker.opened(locker.needed())
    for word in words:
        project, version = _reference(word, version_needed=True)
        assert version is not None
        yield project, version, fetch(container, project, version, into)


def prune(words: Sequence[str], locker: Locker, tell: Tell, keep: int = 1) -> tuple[Container, Prune]:
    """Look what nothing refers to, for `pruning.prune`; the newest `keep` versions of each project stay in any case."""
    if keep < 0:
        raise CannotRead("--keep is a number of versions", "use 0 or more")
    named = words or [str(path) for path in definitions.here()]
    used = {reference for word in named for reference in _references(word, tell)}
    container = locker.opened(locker.needed())
    return container, pruning.plan_prune(container, {project for project, _ in used}, used, keep)


def _references(word: str, tell: Tell) -> set[Reference]:
    """What a node of the cluster would ask the locker for, what travels with the deployment, and what is only named."""
    plan, definition = plan_of(word, tell)
    nodes = plan.slurm.nodes if plan.slurm else ()
    specs = {(spec.project, spec.version) for node in nodes for spec in node.specs}
    # Those of the definition that are in the locker, also where no role runs them yet.
    projects = (definition.checked.source.data or {}).get("projects") or ()
    named = {(entry["name"], entry["version"]) for entry in projects if entry.get("version")}
    return specs | named | {(project.name, project.version) for project in plan.projects}
