"""What `upload` and `locker` are about: words on the command line → packages, and the locker that they belong to."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import CannotRead, ProblemsFound
from ..operate import definitions, reading
from ..words.suggestions import suggestion
from . import common

if TYPE_CHECKING:
    from ..locker.address import Address
    from ..locker.container import Container
    from ..operate.reading import Definition
    from ..plan.types import Plan
    from ..projects.find import Located
    from ..projects.package import Package

_HOW = (
    "--locker az://ACCOUNT/CONTAINER, or CYCLEFORGE_LOCKER; after a deployment: "
    "az deployment sub show --name {name} --query properties.outputs.lockerAccount.value --output tsv"
)


@dataclass
class Target:
    """Packages that go into one locker, in the order in which they were named."""

    address: Address
    packages: list[Package] = field(default_factory=list)


def add_locker(parser: ArgumentParser) -> None:
    """--locker and --auth."""
    parser.add_argument(
        "--locker", metavar="ADDRESS",
        help="az://ACCOUNT/CONTAINER or https://ACCOUNT.blob.core.windows.net/CONTAINER (default: $CYCLEFORGE_LOCKER, "
        "else what the definition names, else the account that AZURE_STORAGE_* names)",
    )  # fmt: skip
    parser.add_argument(
        "--auth", choices=("auto", "login", "key", "sas", "connection-string"), default="auto",
        help="how to sign in; auto: AZURE_STORAGE_CONNECTION_STRING, _KEY or _SAS_TOKEN if set, else az login, an "
        "identity or anything else that DefaultAzureCredential finds",
    )  # fmt: skip


def opened(address: Address, args: Namespace) -> Container:
    """The container, signed in."""
    from ..locker.container import Container
    from ..locker.credentials import sign_in

    return Container(address, sign_in(address, os.environ, args.auth))


def targets(args: Namespace, words: Sequence[str]) -> list[Target]:
    """The packages that the words mean, by locker.

    A word is a project that CycleForge brings, a project folder, or a definition; none means the project folder we are
    in, else every definition. Raises CannotRead, ProblemsFound.
    """
    chosen = address_of(args)
    found: dict[Address, Target] = {}
    for word in words or _all_words():
        packages, plan = _meant(word)
        if not packages:
            if not args.json:
                print(f"'{word}' has no projects for a locker", file=sys.stderr)
            continue
        address = chosen or _of_plan(plan) or _of_environment()
        if address is None:
            raise CannotRead(f"'{word}': no locker was given", _HOW.format(name=_deployment(plan)))
        target = found.setdefault(address, Target(address))
        for package in packages:
            _add(target, package)
    return list(found.values())


def address_of(args: Namespace) -> Address | None:
    """What --locker or our variable say."""
    from ..locker import address

    if args.locker:
        return address.parse(args.locker)
    return address.parse(os.environ[address.VARIABLE]) if os.environ.get(address.VARIABLE) else None


def needed_address(args: Namespace) -> Address:
    """The locker of a command that is about no definition."""
    address = address_of(args) or _of_environment()
    if address is None:
        raise CannotRead("no locker was given", _HOW.format(name="DEPLOYMENT"))
    return address


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


def _meant(word: str) -> tuple[list[Package], Plan | None]:
    from ..projects.find import SHIPPED, find_project

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
    return _of_definition("-" if definition is None else str(definition))


def _of_definition(word: str) -> tuple[list[Package], Plan]:
    from ..projects.find import Located, find_project

    plan, definition = plan_of(word)
    places = [
        Located(definition.folder / project.source, is_shipped=False)
        if project.is_local
        else find_project(project.name)
        for project in plan.projects
    ]
    return [_package(place) for place in places], plan


def plan_of(word: str) -> tuple[Plan, Definition]:
    """The plan of a definition, and the definition; its problems are printed, and errors raise."""
    (definition,) = reading.read([word])
    plan = definition.checked.plan
    if plan is None:
        common.print_problems([definition], Namespace(no_color=False, all=False))
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


def _add(target: Target, package: Package) -> None:
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
