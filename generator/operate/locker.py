"""`upload` and `locker`: which packages the words mean, and the locker that they belong to; send, compare, list, fetch
and tidy up.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from ..errors import CannotRead, ProblemsFound
from ..locker import address as addresses
from ..locker import prune as pruning
from ..locker.address import Address
from ..locker.container import Container
from ..locker.credentials import Way, sign_in
from ..locker.layout import ROOT, Listing, Version, blobs_of, blobs_prefix, versions_of
from ..locker.look import Difference, Look, Wanted, compare, look, proven, wanted_of
from ..locker.prune import Prune, Reference, order
from ..locker.pull import Pulled
from ..locker.pull import pull as fetch
from ..locker.upload import Done, Progress, replace
from ..locker.upload import upload as send
from ..plan.deployment import Plan
from ..projects.ini import NAME
from ..projects.local import SHIPPED, Located, find_project
from ..projects.lock import shipped_problems
from ..projects.package import Package, package_of
from ..words.counts import first_lines
from ..words.suggestions import suggestion
from . import definitions
from .reading import Definition, read


class Verified(Struct, frozen=True):
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


_HOW = (
    "--locker az://ACCOUNT/CONTAINER, or CYCLEFORGE_LOCKER; after a deployment: "
    "az deployment sub show --name {name} --query properties.outputs.lockerAccount.value --output tsv"
)
Tell = Callable[[Definition | str], None]
"""Shows the problems of a definition that stop it, or a sentence."""


class Locker(Struct, frozen=True):
    """Which locker is meant, and how to sign in; without an address the environment and the definition say it."""

    address: str | None = None
    auth: Way = "auto"

    def opened(self, address: Address) -> Container:
        return Container(address, sign_in(address, os.environ, self.auth))

    @property
    def chosen(self) -> Address | None:
        word = self.address or os.environ.get(addresses.VARIABLE)
        return addresses.parse(word) if word else None

    def needed(self) -> Address:
        """Return its address, for verbs that are about no definition. Raises CannotRead."""
        address = self.chosen or addresses.from_environment(os.environ)
        if address is None:
            raise CannotRead("no locker was given", _HOW.format(name="DEPLOYMENT"))
        return address


@dataclass
class Destination:
    """Packages that go into one locker, in the order in which they were named."""

    address: Address
    packages: list[Package] = field(default_factory=list)


def destinations(words: Sequence[str], locker: Locker, tell: Tell = lambda _: None) -> list[Destination]:
    """The packages that the words mean, by locker.

    A word is a project that CycleForge brings, a project folder, or a definition; none means the project folder we are
    in, else every definition. Raises CannotRead, ProblemsFound.
    """
    chosen = locker.chosen
    found: dict[Address, Destination] = {}
    if not words:
        words = ["."] if Path("project.ini").is_file() else [str(path) for path in definitions.here()]
    for word in words:
        packages, plan = _meant(word, tell)
        if not packages:
            tell(f"'{word}' has no projects for a locker")
            continue
        address = chosen or _of_plan(plan) or addresses.from_environment(os.environ)
        if address is None:
            name = "DEPLOYMENT" if plan is None else plan.deployment_name
            raise CannotRead(f"'{word}': no locker was given", _HOW.format(name=name))
        target = found.setdefault(address, Destination(address))
        for package in packages:
            _add(target, package)
    return list(found.values())


def _of_plan(plan: Plan | None) -> Address | None:
    if plan is None or plan.locker.account_name is None:
        return None
    locker = plan.locker
    if locker.blob_suffix is None:
        return addresses.parse(f"az://{locker.account_name}/{locker.container}")
    return addresses.parse(f"https://{locker.account_name}.{locker.blob_suffix}/{locker.container}")


def _meant(word: str, tell: Tell) -> tuple[list[Package], Plan | None]:
    try:
        found = find_project(word)
    except CannotRead:
        if Path(word).is_dir():
            raise
    else:
        return [_package(found)], None
    try:
        definition = definitions.find(word)
    except CannotRead as error:
        raise CannotRead(error.message, suggestion(word, SHIPPED) or error.hint) from None
    return _of_definition("-" if definition is None else str(definition), tell)


def _of_definition(word: str, tell: Tell) -> tuple[list[Package], Plan]:
    plan, definition = plan_of(word, tell)
    places = [
        Located(definition.folder / project.source, is_shipped=False)
        if project.is_local
        else find_project(project.name)
        for project in plan.projects
    ]
    return [_package(place) for place in places], plan


def plan_of(word: str, tell: Tell = lambda _: None) -> tuple[Plan, Definition]:
    """The plan of a definition, and the definition. Raises ProblemsFound where it has errors."""
    (definition,) = read([word])
    plan = definition.checked.plan
    if plan is None:
        tell(definition)
        raise ProblemsFound(f"{definition.filename} has errors, so nothing was sent", f"cycleforge validate {word}")
    return plan, definition


def _package(found: Located) -> Package:
    """Package it. Raises ProblemsFound for a shipped project that is not as its version was released."""
    if found.is_shipped:
        for problem in shipped_problems([found.folder.resolve().name]):
            raise ProblemsFound(problem.message, problem.fix)
    return package_of(found)


def _add(target: Destination, package: Package) -> None:
    """Definitions share projects; one version with two contents cannot be meant."""
    project = package.project
    for other in target.packages:
        if (other.project.name, other.project.version) != (project.name, project.version):
            continue
        if (dict(other.files), dict(other.blobs)) != (dict(package.files), dict(package.blobs)):
            raise ProblemsFound(
                f"{other.project.folder} and {project.folder} are both {project.name} {project.version}, with "
                "different content",
                f"cycleforge project bump {project.folder}",
            )
        return
    target.packages.append(package)


_SHOWN = 10
"""Differences of a refused version that are listed."""


@dataclass
class Sending:
    """One project, and what became of it."""

    found: Look
    locker: str
    done: Done | None = None
    """None where it was not sent."""
    seconds: float = 0.0

    @property
    def title(self) -> str:
        return f"{self.found.wanted.project.name} {self.found.wanted.project.version}"


def upload(
    words: Sequence[str],
    locker: Locker,
    rows: list[Sending],
    progress: Progress,
    *,
    force: bool = False,
    dry_run: bool = False,
    tell: Tell,
    ended: Callable[[Sending], None],
    note: Callable[[str], None],
) -> None:
    """Send the projects that the words mean; `rows` gets what is known of each, also where it is interrupted.

    Raises ProblemsFound before anything is sent where a version has other content; `force` replaces it.
    """
    containers: dict[str, Container] = {}
    for each in destinations(words, locker, tell):
        container = containers[str(each.address)] = locker.opened(each.address)
        rows += [Sending(look(container, wanted_of(package)), str(each.address)) for package in each.packages]
    refused = [row for row in rows if row.found.state == "different"]
    if refused and not force:
        raise _refusal(refused)
    for row in rows:
        if not dry_run:
            began = time.monotonic()
            container = containers[row.locker]
            if row.found.state == "different":
                row.done = replace(container, row.found, progress, note)
            else:
                row.done = send(container, row.found, progress)
            row.seconds = time.monotonic() - began
        ended(row)


def _refusal(refused: Sequence[Sending]) -> ProblemsFound:
    """Everything that is refused, in one message."""
    texts = []
    for row in refused:
        lines = "".join(f"\n  {line}" for line in first_lines(row.found.reasons, _SHOWN))
        texts.append(f"the locker has different content under {row.title}; nothing was sent{lines}")
    looks = [row.found for row in refused]
    if all(look.reasons == ("differs: manifest.json",) and look.wanted.project.name in SHIPPED for look in looks):
        hint = (
            "only its list of project blobs differs: this machine has other blobs than the one that uploaded it; "
            "`cycleforge blobs status` shows them, `cycleforge blobs fetch` gets them, --force replaces the list"
        )
    else:
        first = looks[0].wanted.project
        word = first.name if first.name in SHIPPED else first.folder
        hint = (
            "a version never changes, because nodes remember what has run by its name: cycleforge project bump --taken "
            f"{word} makes the next one; --force replaces the content, and running nodes keep the old content"
        )
    return ProblemsFound("\n".join(texts), hint)
