"""What `upload` and `locker` are about: words → packages, and the locker that they belong to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CannotRead, ProblemsFound
from ..records import record
from ..words.suggestions import suggestion
from . import definitions
from .reading import Definition, read

if TYPE_CHECKING:
    from ..locker.address import Address
    from ..locker.container import Container
    from ..locker.credentials import Way
    from ..plan.deployment import Plan
    from ..projects.local import Located
    from ..projects.package import Package

_HOW = (
    "--locker az://ACCOUNT/CONTAINER, or CYCLEFORGE_LOCKER; after a deployment: "
    "az deployment sub show --name {name} --query properties.outputs.lockerAccount.value --output tsv"
)
Tell = Callable[[Definition | str], None]
"""Shows the problems of a definition that stop it, or a sentence."""


def _silent(_: Definition | str) -> None:
    pass


@record
class Locker:
    """Which locker is meant, and how to sign in; without an address the environment and the definition say it."""

    address: str | None = None
    auth: Way = "auto"

    def opened(self, address: Address) -> Container:
        """The container, signed in."""
        from ..locker.container import Container
        from ..locker.credentials import sign_in

        return Container(address, sign_in(address, os.environ, self.auth))

    @property
    def chosen(self) -> Address | None:
        """What was said here or in our variable."""
        from ..locker import address

        word = self.address or os.environ.get(address.VARIABLE)
        return address.parse(word) if word else None

    def needed(self) -> Address:
        """Its address, for what is about no definition. Raises CannotRead."""
        address = self.chosen or _of_environment()
        if address is None:
            raise CannotRead("no locker was given", _HOW.format(name="DEPLOYMENT"))
        return address


@dataclass
class Destination:
    """Packages that go into one locker, in the order in which they were named."""

    address: Address
    packages: list[Package] = field(default_factory=list)


def destinations(words: Sequence[str], locker: Locker, tell: Tell = _silent) -> list[Destination]:
    """The packages that the words mean, by locker.

    A word is a project that CycleForge brings, a project folder, or a definition; none means the project folder we are
    in, else every definition. Raises CannotRead, ProblemsFound.
    """
    chosen = locker.chosen
    found: dict[Address, Destination] = {}
    for word in words or _all_words():
        packages, plan = _meant(word, tell)
        if not packages:
            tell(f"'{word}' has no projects for a locker")
            continue
        address = chosen or _of_plan(plan) or _of_environment()
        if address is None:
            raise CannotRead(f"'{word}': no locker was given", _HOW.format(name=_deployment(plan)))
        target = found.setdefault(address, Destination(address))
        for package in packages:
            _add(target, package)
    return list(found.values())


def _of_environment() -> Address | None:
    from ..locker.address import from_environment

    return from_environment(os.environ)


def _of_plan(plan: Plan | None) -> Address | None:
    from ..locker.address import parse

    if plan is None or plan.locker.account_name is None:
        return None
    locker = plan.locker
    if locker.blob_suffix is None:
        return parse(f"az://{locker.account_name}/{locker.container}")
    return parse(f"https://{locker.account_name}.{locker.blob_suffix}/{locker.container}")


def _deployment(plan: Plan | None) -> str:
    return "DEPLOYMENT" if plan is None else plan.deployment_name


def _all_words() -> list[str]:
    if Path("project.ini").is_file():
        return ["."]
    return [str(path) for path in definitions.here()]


def _meant(word: str, tell: Tell) -> tuple[list[Package], Plan | None]:
    from ..projects.local import SHIPPED, find_project

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
    from ..projects.local import Located, find_project

    plan, definition = plan_of(word, tell)
    places = [
        Located(definition.folder / project.source, is_shipped=False)
        if project.is_local
        else find_project(project.name)
        for project in plan.projects
    ]
    return [_package(place) for place in places], plan


def plan_of(word: str, tell: Tell = _silent) -> tuple[Plan, Definition]:
    """The plan of a definition, and the definition. Raises ProblemsFound where it has errors."""
    (definition,) = read([word])
    plan = definition.checked.plan
    if plan is None:
        tell(definition)
        raise ProblemsFound(f"{definition.filename} has errors, so nothing was sent", f"cycleforge validate {word}")
    return plan, definition


def _package(found: Located) -> Package:
    """The package; a shipped project must be as its version was released."""
    from ..projects.lock import shipped_problems
    from ..projects.package import package_of

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
