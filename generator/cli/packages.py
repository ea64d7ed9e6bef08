"""What `upload` and `locker` are about: words on the command line → packages, and the locker that they belong to."""

from __future__ import annotations

import logging
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from generator import assets
from generator.cli import common
from generator.errors import CannotRead, ProblemsFound
from generator.problems import suggestion

if TYPE_CHECKING:
    from generator.locker.address import Address
    from generator.locker.container import Container
    from generator.plan.types import Plan
    from generator.projects.package import Package

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
        "else what the definition says, else the account that AZURE_STORAGE_* names)",
    )  # fmt: skip
    parser.add_argument(
        "--auth", choices=("auto", "login", "key", "sas", "connection-string"), default="auto",
        help="how to sign in; auto: AZURE_STORAGE_CONNECTION_STRING, _KEY or _SAS_TOKEN where set, else az login, an "
        "identity or whatever else DefaultAzureCredential finds",
    )  # fmt: skip


def opened(address: Address, args: Namespace) -> Container:
    """The container, signed in."""
    from generator.locker.container import Container
    from generator.locker.credentials import sign_in

    # What the SDK warns about, our problems say; without a handler it would go to standard error.
    logging.getLogger("azure").setLevel(logging.CRITICAL + 1)
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
        address = chosen or _of_plan(plan) or _of_environment()
        if address is None:
            name = plan.name if plan is not None else "DEPLOYMENT"
            raise CannotRead(f"'{word}': no locker is named", _HOW.format(name=name))
        target = found.setdefault(address, Target(address))
        for package in packages:
            _add(target, package)
    return list(found.values())


def address_of(args: Namespace) -> Address | None:
    """What --locker or our variable say."""
    from generator.locker import address

    if args.locker:
        return address.parse(args.locker)
    return address.parse(os.environ[address.VARIABLE]) if os.environ.get(address.VARIABLE) else None


def needed_address(args: Namespace) -> Address:
    """The locker of a command that is about no definition."""
    address = address_of(args) or _of_environment()
    if address is None:
        raise CannotRead("no locker is named", _HOW.format(name="DEPLOYMENT"))
    return address


def _of_environment() -> Address | None:
    from generator.locker.address import from_environment

    return from_environment(os.environ)


def _of_plan(plan: Plan | None) -> Address | None:
    from generator.locker.address import of_account

    if plan is None or plan.locker.account_name is None:
        return None
    return of_account(plan.locker.account_name, plan.locker.container)


def _all_words() -> list[str]:
    if Path("project.ini").is_file():
        return ["."]
    return [str(path) for path in common.all_definitions()]


def _meant(word: str) -> tuple[list[Package], Plan | None]:
    from generator.projects.package import SHIPPED, package_folder

    path = Path(word)
    if word in SHIPPED:
        return _shipped([word]), None
    if (path / "project.ini").is_file():
        if path.resolve().parent == assets.folder("projects").resolve():
            return _shipped([path.resolve().name]), None
        return [package_folder(path)], None
    if path.is_dir():
        raise CannotRead(f"{word} is a folder without project.ini", "name a project folder or a definition")
    try:
        found = common.find_definition(word)
    except CannotRead as error:
        raise CannotRead(error.message, suggestion(word, SHIPPED) or error.hint) from None
    return _of_definition("-" if found is None else str(found))


def _of_definition(word: str) -> tuple[list[Package], Plan]:
    from generator.projects.package import package_folder

    plan, definition = plan_of(word)
    folder = definition.folder
    packages = _shipped([project.name for project in plan.projects if not project.is_local])
    packages += [package_folder(folder / project.source) for project in plan.projects if project.is_local]
    return packages, plan


def plan_of(word: str) -> tuple[Plan, common.Definition]:
    """The plan of a definition, and the definition; its problems are printed, and errors raise."""
    (definition,) = common.read_definitions([word])
    plan = definition.checked.plan
    if plan is None:
        common.print_problems([definition], Namespace(no_color=False))
        raise ProblemsFound(f"{definition.filename} has errors, so nothing was done", f"cycleforge validate {word}")
    return plan, definition


def _shipped(names: Sequence[str]) -> list[Package]:
    from generator.blobs import store_of
    from generator.projects.lock import shipped_problems
    from generator.projects.package import package_shipped

    for problem in shipped_problems(names):
        raise ProblemsFound(problem.message, problem.fix)
    return [package_shipped(name, store_of(os.environ)) for name in names]


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


def as_title(package: Package) -> str:
    """Name and version."""
    return f"{package.project.name} {package.project.version}"


def short(names: Sequence[str], shown: int = 10) -> list[str]:
    """At most so many lines, and how many there are more."""
    more = [f"… and {len(names) - shown} more; --json lists all"] if len(names) > shown else []
    return [*names[:shown], *more]


def size_text(size_bytes: float) -> str:
    """A size for people, in powers of 1024."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size_bytes < 1024 or unit == "GiB":
            return f"{size_bytes:.0f} {unit}" if unit == "B" or size_bytes >= 10 else f"{size_bytes:.1f} {unit}"
        size_bytes /= 1024
    raise AssertionError("the last unit takes everything")
