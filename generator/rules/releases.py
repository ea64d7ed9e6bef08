"""The compatibility table: CycleCloud release, cyclecloud-slurm, Slurm, operating systems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .. import catalog
from ..catalog.releases import OperatingSystem, Release, SlurmProject
from ..definition.model.slurm import Slurm
from ..plan.cluster import server_release
from ..problems.problem import Problem
from ..words.counts import listed
from .azure_names import GUID, is_gallery_image
from .base import ClusterRule, DefinitionRule, Path, Site, choose_from, first_given, meant, quoted
from .roles import image_users, roles
from .vm_images import image_facts, is_urn

_NOTES = "https://learn.microsoft.com/azure/cyclecloud/release-notes"
_SLURM = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"
_RELEASE: Path = ("server", "release")
_BUILD: Path = ("server", "image_version")


def release_path(site: Site) -> Path:
    return _RELEASE if site.definition.server.existing is None else ("server", "existing", "release")


def release_row(site: Site) -> Release | None:
    return catalog.release(server_release(site.definition))


def project_row(site: Site) -> SlurmProject | None:
    """The row of the chosen cyclecloud-slurm version, else of the one that the server brings."""
    slurm = site.definition.slurm
    version = slurm.project_version if slurm else None
    if version is not None:
        return catalog.slurm_project(version)
    row = release_row(site)
    return catalog.slurm_project(row.slurm_projects[0]) if row and row.slurm_projects else None


def slurm_version(site: Site, slurm: Slurm) -> str:
    """The version of Slurm that nodes get: as the definition names it, else the first of cyclecloud-slurm's."""
    return slurm.version or (project_row(site) or catalog.default_slurm_project()).slurm


def operating_systems(site: Site) -> Sequence[OperatingSystem]:
    """Operating systems of the cyclecloud-slurm version; the server release's where the project publishes none."""
    project, release = project_row(site), release_row(site)
    return (project.os if project else ()) or (release.os if release else ())


def os_row(site: Site, os: str) -> OperatingSystem | None:
    """What cyclecloud-slurm does on one operating system."""
    return next((row for row in operating_systems(site) if row.os == os), None)


def _is_4(version: str) -> bool:
    return version.split(".")[0] == "4"


def _deployable() -> list[str]:
    rows = catalog.releases()
    return [
        row.cyclecloud
        for row in rows
        if row.image_version and row.slurm_projects and all(map(_is_4, row.slurm_projects))
    ]


def _release_of_build(site: Site) -> str | None:
    build = site.definition.server.image_version
    return catalog.release_of_build(build) if build is not None else None


def _is_unlisted(site: Site) -> bool:
    """Whether the server runs a release that is newer than the table, and its image, if it is a new one, is known."""
    server, release = site.definition.server, server_release(site.definition)
    has_image = server.existing is not None or server.image_version is not None or server.image_id is not None
    return has_image and catalog.is_newer_than_table(release)


class UnknownRelease(DefinitionRule):
    id = "E0701"
    summary = "The CycleCloud release is not in the compatibility table."
    why = "Server, cyclecloud-slurm and Slurm belong together; a release without a row cannot be checked."
    fix = (
        "Choose a release that `cycleforge list releases` shows. Of a newer one, name the build in "
        "server.image_version; of a server that was upgraded to it, the build that the server was created from."
    )
    source = _NOTES

    def check(self, site: Site) -> Iterator[Problem]:
        server, release = site.definition.server, server_release(site.definition)
        if catalog.release(release) is not None or _is_unlisted(site):
            return
        path = _BUILD if server.image_version is not None and server.release is None else release_path(site)
        hint = f"known: {', '.join(_deployable())}"
        if found := re.fullmatch(r"([0-9.]{5,11})-[0-9]+", release):
            hint = f"release: {found[1]}"
        elif server.existing is None:
            hint += "; for a newer one, its build as server.image_version"
        yield self.problem(path, f"the CycleCloud release {quoted(release)} is not known", hint)


class UnknownBuild(DefinitionRule):
    id = "E0702"
    summary = "The marketplace image of the CycleCloud release is not known."
    why = "Image versions contain a build date that is not published for this release, and a guess fails at deployment."
    fix = (
        f"Look the build up with `{catalog.server_image().listing_command}` and write it as server.image_version; or "
        "choose a release whose image is known, or give your own image in server.image_id. Of a server that was "
        "upgraded to this release, server.image_version is the build that it was created from."
    )
    source = _NOTES

    def check(self, site: Site) -> Iterator[Problem]:
        row, server = release_row(site), site.definition.server
        has_image = row is not None and (row.image_version or server.image_version or server.image_id)
        if row is not None and server.existing is None and not has_image:
            yield self.problem(
                _RELEASE,
                f"the build number of CycleCloud {row.cyclecloud}'s marketplace image is not published",
                f"image_version with the build that `{catalog.server_image().listing_command}` shows; or release: "
                f"{catalog.default_versions().cyclecloud}, or server.image_id",
            )


class NotABuild(DefinitionRule):
    id = "E0712"
    summary = "The version of the server image is not that of a build."
    why = (
        "Azure has no image of another version, and `latest` would give the next server another CycleCloud than the "
        "one that was reviewed."
    )
    fix = f"Write a version that `{catalog.server_image().listing_command}` shows."
    source = "https://learn.microsoft.com/azure/virtual-machines/linux/cli-ps-findimage"

    def check(self, site: Site) -> Iterator[Problem]:
        build = site.definition.server.image_version
        if build is not None and _release_of_build(site) is None:
            text = (
                f"{quoted(build)} is not a build of the server image, whose version ends with the patch release and a "
                "date: 8.9.120260630 is CycleCloud 8.9.1 of 2026-06-30"
            )
            yield self.problem(_BUILD, text, f"`{catalog.server_image().listing_command}` shows all builds")


class ContradictingImages(DefinitionRule):
    id = "E0713"
    summary = "Two settings contradict each other about the server's image or its release."
    why = (
        "A VM has one image, and the CycleCloud that it runs is that of the image or, after an upgrade, a newer one; "
        "everything that is checked depends on it."
    )
    fix = (
        "Of a new server keep server.image_version and leave server.release out: the build names its release. Of one "
        "that was upgraded, server.release is what it runs now. For your own image keep server.image_id, and "
        "server.release for the CycleCloud in it."
    )
    source = _NOTES

    def check(self, site: Site) -> Iterator[Problem]:
        server, of_build = site.definition.server, _release_of_build(site)
        if server.image_version is not None and server.image_id is not None:
            text = "server.image_version is a build of the marketplace image, but server.image_id names your own image"
            yield self.problem(_BUILD, text, "remove one of them", on_key=True)
        if server.release is not None and of_build is not None and catalog.is_newer(of_build, server.release):
            text = f"the build {server.image_version} is CycleCloud {of_build}, but server.release is {server.release}"
            yield self.problem(_RELEASE, text, f"release: {of_build}, or leave server.release out")


class UnlistedRelease(ClusterRule):
    id = "W0714"
    summary = "The CycleCloud of the server is newer than the compatibility table."
    why = (
        "What this CycleCloud brings is not known here, so versions of cyclecloud-slurm and Slurm, and the operating "
        "systems of nodes, are not checked. A Slurm version that its cyclecloud-slurm cannot install stops every node."
    )
    fix = (
        "Write slurm.project_version and slurm.version as its release notes or the server name them (SELECT Name, "
        "Version FROM Cloud.Project), and try the release with a small cluster first."
    )
    source = _NOTES

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        release = server_release(site.definition)
        if not _is_unlisted(site):
            return
        assumed = catalog.default_slurm_project()
        wanted = {
            "project_version": (slurm.project_version, assumed.version),
            "version": (slurm.version, assumed.slurm),
        }
        missing = {key: value for key, (given_, value) in wanted.items() if given_ is None}
        if missing:
            names = {"project_version": "cyclecloud-slurm", "version": "Slurm"}
            text = f"CycleCloud {release} is newer than the compatibility table; assumed: " + listed(
                [f"{names[key]} {value}" for key, value in missing.items()]
            )
            path = first_given(site, release_path(site), _BUILD)
            yield self.problem(path, text, f"write {' and '.join(f'slurm.{key}' for key in missing)}")


class SlurmNotOffered(ClusterRule):
    id = "E0703"
    summary = "The Slurm version does not belong to the cyclecloud-slurm version."
    why = "Each cyclecloud-slurm release installs one Slurm version; another one fails when the first node starts."
    fix = "Leave slurm.version out, or choose a version that the message lists."
    source = "https://github.com/Azure/cyclecloud-slurm-workspace/issues/141"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        version, project = slurm.version, project_row(site)
        if version is None or project is None:
            return
        offered = project.slurm_versions
        if offered and version not in offered:
            text = f"cyclecloud-slurm {project.version} installs Slurm {listed(offered)}, not {quoted(version)}"
            yield self.problem(("slurm", "version"), text, f'version: "{offered[0]}"')


class ProjectNotOfServer(ClusterRule):
    id = "E0704"
    summary = "The cyclecloud-slurm version does not belong to the CycleCloud release."
    why = "The mapping is strict: template, autoscaler and server are tested together only in the pairs of the table."
    fix = "Leave slurm.project_version out, or choose the CycleCloud release that brings it."
    source = "https://github.com/Azure/cyclecloud-slurm-workspace/issues/141"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        version, row = slurm.project_version, release_row(site)
        if version is None or row is None:
            return
        allowed, path = row.slurm_projects, ("slurm", "project_version")
        if catalog.slurm_project(version) is None:
            known = [each.version for each in catalog.slurm_projects()]
            text = f"cyclecloud-slurm {quoted(version)} is not in the compatibility table"
            yield self.problem(path, text, f'project_version: "{allowed[0]}"' if allowed else meant(version, known))
        elif allowed and version not in allowed and _is_4(version):
            text = f"CycleCloud {row.cyclecloud} brings cyclecloud-slurm {' or '.join(allowed)}, not {quoted(version)}"
            yield self.problem(path, text, f'project_version: "{allowed[0]}"')


class ProjectOpen(ClusterRule):
    id = "W0711"
    summary = "Which cyclecloud-slurm version the server brings is not known for certain."
    why = "Template and node scripts depend on it; the newest one that public sources name is assumed."
    fix = "Look it up on the server (SELECT Name, Version FROM Cloud.Project) and write slurm.project_version."
    source = _NOTES

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        row, server = release_row(site), site.definition.server
        if row is None or slurm.project_version is not None or row.slurm_project:
            return
        if server.existing is None and not (row.image_version or server.image_version or server.image_id):
            return  # E0702 says that this release cannot be used at all
        candidates = row.slurm_projects
        if candidates and all(map(_is_4, candidates)):
            text = (
                f"CycleCloud {row.cyclecloud} brings cyclecloud-slurm {' or '.join(candidates)}; which one is not "
                "published"
            )
            yield self.problem(
                first_given(site, release_path(site), _BUILD, ("server",), ("name",)),
                text,
                f'project_version: "{candidates[0]}"',
            )


class OldProject(ClusterRule):
    id = "E0707"
    summary = "The cluster template is written for cyclecloud-slurm 4.x; this is an older one."
    why = "3.x converges nodes with Chef, has other parameters and does not bring enroot and pyxis."
    fix = "Choose CycleCloud 8.8.0 or newer."
    source = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        version, row = slurm.project_version, release_row(site)
        default = catalog.release(catalog.default_versions().cyclecloud)
        hint = f"release: {catalog.default_versions().cyclecloud}"
        if default is not None and site.definition.server.image_version is not None:
            hint = f"image_version: {default.image_version}"
        if version is not None and catalog.slurm_project(version) is not None and not _is_4(version):
            yield self.problem(
                ("slurm", "project_version"),
                f"cyclecloud-slurm {version} is older than 4.0, which the cluster template needs",
                hint,
            )
        elif version is None and row is not None and not all(map(_is_4, row.slurm_projects)):
            brought = " or ".join(row.slurm_projects)
            yield self.problem(
                first_given(site, release_path(site), _BUILD),
                f"CycleCloud {row.cyclecloud} brings cyclecloud-slurm {brought}, the cluster template needs 4.x",
                hint,
            )


class SystemNotSupported(DefinitionRule):
    id = "E0705"
    summary = "cyclecloud-slurm does not support the operating system of an image."
    why = "Its installer knows the package repositories of certain systems and stops on all others."
    fix = "Choose cycle.image.ubuntu24, cycle.image.ubuntu22, almalinux8 or almalinux9."
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        systems = operating_systems(site)
        project = project_row(site)
        name = f"cyclecloud-slurm {project.version}" if project else "cyclecloud-slurm"
        for node in image_users(site) if systems and (project is None or _is_4(project.version)) else ():
            facts = image_facts(node.image)
            if facts is None:
                continue
            row = os_row(site, facts.os)
            size = site.vm_size(node.vm_size)
            arch = "arm64" if size.arch == "aarch64" else "amd64"
            if row is None:
                yield self.problem(
                    node.image_path, f"{node.label}: {name} does not support {facts.os}", "image: cycle.image.ubuntu24"
                )
            elif arch not in row.arch and (not size.known or size.arch in facts.arch):
                yield self.problem(
                    node.image_path,
                    f"{node.label}: {name} does not support {facts.os} on {arch}",
                    "image: cycle.image.ubuntu24",
                )


class LimitedSystem(DefinitionRule):
    id = "W0706"
    summary = "cyclecloud-slurm supports the operating system only in part."
    why = (
        "SLES gets an old Slurm without REST service, monitoring and health checks; Azure Linux needs an image with "
        "Slurm in it."
    )
    fix = "Choose cycle.image.ubuntu24 or almalinux8 unless you need this system."
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        for node in image_users(site):
            facts = image_facts(node.image)
            row = os_row(site, facts.os) if facts else None
            if facts is None or row is None:
                continue
            if row.slurm_override:
                text = (
                    f"{node.label}: {facts.os} gets Slurm {row.slurm_override} without REST service, monitoring "
                    "and health checks"
                )
                yield self.problem(node.image_path, text)
            elif row.custom_image_with_slurm_packages:
                yield self.problem(
                    node.image_path,
                    f"{node.label}: {facts.os} works only with an image that contains the Slurm packages",
                )


class UnknownImage(DefinitionRule):
    id = "E0708"
    summary = "An image is neither a CycleCloud image, a marketplace URN nor a resource id."
    why = "CycleCloud refuses a node array whose image it cannot resolve."
    fix = "Use an image that `cycleforge list images` shows, publisher:offer:sku:version, or a resource id."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/create-custom-image"

    def check(self, site: Site) -> Iterator[Problem]:
        seen: set[Path] = set()
        for node in roles(site):
            if node.image_path in seen or _is_image(node.image):
                continue
            seen.add(node.image_path)
            names = tuple(
                name for name in catalog.images().node_images if os_row(site, catalog.images().node_images[name].os)
            )
            fault = (
                "is not a resource id of an image"
                if node.image.startswith("/")
                else "is not an image that CycleCloud knows"
            )
            yield self.problem(node.image_path, f"{quoted(node.image)} {fault}", choose_from(node.image, names))


def _is_image(text: str) -> bool:
    managed = (
        rf"/subscriptions/{GUID}/resourceGroups/[\w.()-]{{1,90}}/providers/Microsoft\.Compute/images/[\w.-]{{1,80}}"
    )
    community = r"/(?:CommunityGalleries|SharedGalleries)/[\w.-]{1,120}/images/[\w.-]{1,80}(?:/versions/[\w.]{1,40})?"
    return (
        text in catalog.images().node_images
        or is_urn(text)
        or is_gallery_image(text)
        or re.fullmatch(f"(?:{managed}|{community})", text, re.IGNORECASE) is not None
    )


class DataDiskWithoutImage(DefinitionRule):
    id = "E0710"
    summary = "A data disk is given for the marketplace image of the server."
    why = "The marketplace image brings its own data disk; a second one would be unused."
    fix = "Remove server.data_disk_gb, or give your own image in server.image_id."
    source = "https://learn.microsoft.com/azure/cyclecloud/qs-install-marketplace"

    def check(self, site: Site) -> Iterator[Problem]:
        server = site.definition.server
        if server.data_disk_gb is not None and server.image_id is None:
            text = "server.data_disk_gb is for your own image; the marketplace image brings its data disk"
            yield self.problem(("server", "data_disk_gb"), text, on_key=True)
