"""CycleCloud releases, the cyclecloud-slurm versions that they bring, and the operating systems of those."""

from __future__ import annotations

import re

from msgspec import field

from .files import Fact, Row, table


class OperatingSystem(Fact, frozen=True, kw_only=True):
    """What cyclecloud-slurm does on the nodes of one operating system."""

    os: str
    arch: tuple[str, ...]
    """`amd64`, `arm64`."""
    enroot_pyxis: bool = False
    monitoring: bool = True
    slurm_override: str | None = None
    """The Slurm version that these nodes get whatever is chosen."""
    custom_image_with_slurm_packages: bool = False
    """Only images that have the Slurm packages in them work."""


class Release(Row, frozen=True, kw_only=True):
    """One release of the CycleCloud server."""

    cyclecloud: str
    image_version: str | None
    """Version of the marketplace image; None = nobody published it."""
    release_date: str | None
    status: str
    slurm: str
    slurm_project: str | None
    """The cyclecloud-slurm version that it brings; None = not known for certain."""
    slurm_project_candidates: tuple[str, ...]
    os_row: str | None = field(name="os")

    @property
    def os(self) -> tuple[OperatingSystem, ...]:
        return _table().operating_systems.get(self.os_row or "", ())

    @property
    def slurm_projects(self) -> tuple[str, ...]:
        """The cyclecloud-slurm versions that it may bring, likeliest first."""
        named = (self.slurm_project,) if self.slurm_project else ()
        return tuple(dict.fromkeys((*named, *self.slurm_project_candidates)))


class SlurmProject(Row, frozen=True, kw_only=True):
    """One version of the cyclecloud-slurm project."""

    version: str
    slurm: str
    """The Slurm version that it installs by default."""
    slurm_versions: tuple[str, ...]
    carries_containers: bool
    """Whether it brings enroot and pyxis to every node."""
    certificate_key: str
    """What it reads of the certificate of the accounting database's authority: the PEM itself, or its address."""
    os_row: str | None = field(name="os")

    @property
    def os(self) -> tuple[OperatingSystem, ...]:
        """Empty if it is not published."""
        return _table().operating_systems.get(self.os_row or "", ())

    @property
    def takes_certificate(self) -> bool:
        """Whether it takes the PEM; else an address, from which the scheduler downloads it."""
        return not self.certificate_key.endswith("_url")


class DefaultVersions(Fact, frozen=True, kw_only=True):
    """What a definition gets that names no versions."""

    cyclecloud: str
    slurm_project: str


class ServerImage(Row, frozen=True, kw_only=True):
    """Where the marketplace has the CycleCloud server."""

    publisher: str
    offer: str
    sku: str

    @property
    def listing_command(self) -> str:
        """Prints every published build."""
        return (
            f"az vm image list --publisher {self.publisher} --offer {self.offer} --sku {self.sku} --all --output table"
        )


class Releases(Fact, frozen=True, kw_only=True):
    defaults: DefaultVersions
    marketplace: ServerImage
    matrix: tuple[Release, ...]
    operating_systems: dict[str, tuple[OperatingSystem, ...]]
    slurm_projects: tuple[SlurmProject, ...]


_table = table("releases", Releases)
_BUILD = re.compile(r"([0-9]+\.[0-9]+\.[0-9]{1,2})20[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")

_RELEASE = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})\.([0-9]{1,3})")


def release_of_build(image_version: str) -> str | None:
    """The CycleCloud release in a build of the marketplace image; None where its number is not one of a build.

    The last part of the number is the patch release and the date of the build: 8.9.120260630 is 8.9.1 of 2026-06-30.
    Every build that public sources name is made that way; a test compares all of the table.
    """
    found = _BUILD.fullmatch(image_version)
    return found[1] if found else None


def is_newer_than_table(cyclecloud: str) -> bool:
    """Whether a release came after everything that the table knows; no text of another form did."""
    return all(is_newer(cyclecloud, row.cyclecloud) for row in releases())


def is_newer(one: str, other: str) -> bool:
    """Whether one release came after another; never where one of them is not three numbers."""
    numbers = [_RELEASE.fullmatch(each) for each in (one, other)]
    first, second = (tuple(map(int, found.groups())) if found else None for found in numbers)
    return first is not None and second is not None and first > second


def releases() -> tuple[Release, ...]:
    """All known CycleCloud releases, newest first."""
    return _table().matrix


def slurm_projects() -> tuple[SlurmProject, ...]:
    """All known versions of cyclecloud-slurm, newest first."""
    return _table().slurm_projects


def release(cyclecloud: str) -> Release | None:
    """One release of the CycleCloud server, for example `8.9.1`."""
    return next((row for row in releases() if row.cyclecloud == cyclecloud), None)


def slurm_project(version: str) -> SlurmProject | None:
    """One version of the cyclecloud-slurm project, for example `4.0.9`."""
    return next((row for row in slurm_projects() if row.version == version), None)


def default_versions() -> DefaultVersions:
    """The newest combination of which image build, Slurm version and template are all in public source."""
    return _table().defaults


def default_slurm_project() -> SlurmProject:
    """The cyclecloud-slurm version of the default release."""
    return next(row for row in slurm_projects() if row.version == default_versions().slurm_project)


def server_image() -> ServerImage:
    """The marketplace image of the CycleCloud server, without its version."""
    return _table().marketplace
