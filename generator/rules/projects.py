"""Cluster-init projects: shipped, local and from the locker; and the third-party files that they need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from .. import catalog
from ..definition.model.slurm import Slurm
from ..files import assets
from ..plan.assignment import BASE, POLICY
from ..plan.deployment import Plan
from ..plan.file_systems.registry import wanted_by
from ..problems.problem import Problem
from ..projects.local import SHIPPED
from ..words.counts import listed
from .base import ClusterRule, DefinitionRule, Path, PlanRule, Site, choose_from, quoted
from .roles import roles

_PROJECTS = "https://learn.microsoft.com/azure/cyclecloud/how-to/projects"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@cache
def shipped_projects() -> Mapping[str, tuple[str, ...]]:
    """Names of the projects that come with CycleForge, each with its specs."""
    specs = {name: (assets.folder("projects") / name / "specs").glob("*") for name in sorted(SHIPPED)}
    return {name: tuple(sorted(spec.name for spec in found if spec.is_dir())) for name, found in specs.items()}


def known_specs(site: Site) -> dict[str, tuple[str, ...] | None]:
    """Every project that a role may name; its specs, or None where they are not known."""
    specs: dict[str, tuple[str, ...] | None] = dict(shipped_projects())
    for project in site.definition.projects:
        local = site.local_projects.get(project.name)
        specs.setdefault(project.name, local.specs if local and not local.problem and project.path else None)
    return specs


def references(site: Site) -> Iterator[tuple[str, Path, str]]:
    """Every place where a role names a project: the role, the path, `name` or `name:spec`."""
    for node in roles(site):
        for key in ("projects", "extra_projects"):
            for index, reference in enumerate(getattr(node.settings, key) or ()):
                yield node.label, (*node.path, key, index), reference


class UnknownProject(DefinitionRule):
    id = "E1501"
    summary = "A role names a project that does not exist."
    why = "A node that refers to a project without a manifest in the locker never becomes ready."
    fix = "Correct the name, or declare the project below `projects`."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        known = known_specs(site)
        for label, path, reference in references(site):
            name, *rest = reference.split(":")
            if len(rest) > 1 or not _NAME.fullmatch(name):
                text = f"{label}: {quoted(reference)} is not a project, written as name or name:spec"
                yield self.problem(path, text, f"{name}:{rest[0]}" if rest and _NAME.fullmatch(name) else None)
            elif name not in known:
                yield self.problem(
                    path, f"{label}: there is no project {quoted(name)}", choose_from(name, tuple(known))
                )


class UnknownSpec(DefinitionRule):
    id = "E1502"
    summary = "A role names a spec that its project does not have."
    why = "A node that refers to a spec without a manifest in the locker never becomes ready."
    fix = "Name a spec that the project has."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        known = known_specs(site)
        for label, path, reference in references(site):
            name, *rest = reference.split(":")
            specs = known.get(name)
            spec = rest[0] if rest else "default"
            if specs is not None and len(rest) <= 1 and spec not in specs:
                text = f"{label}: the project {quoted(name)} has no spec {quoted(spec)}"
                yield self.problem(path, text, choose_from(spec, specs) if specs else "it has no specs")


class LocalProjectProblem(DefinitionRule):
    id = "E1503"
    summary = "A local project cannot be used."
    why = (
        "Its folder travels with the deployment and is uploaded on the server; mistakes in it are already "
        "reported here."
    )
    fix = "Fix what the message reports; a project has a project.ini and specs/<name>/cluster-init/scripts."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        for index, project in enumerate(site.definition.projects):
            local = site.local_projects.get(project.name)
            if project.path is not None and project.version is None and local is not None and local.problem:
                yield self.problem(("projects", index, "path"), f"project {quoted(project.name)}: {local.problem}")


class PathOrVersion(DefinitionRule):
    id = "E1504"
    summary = "A project has neither a path nor a version, or both."
    why = (
        "A local project is read from its path, with the version of its project.ini; one in the locker is known by "
        "its version."
    )
    fix = "Give path for a local project, or version for one that is already in the locker."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        for index, project in enumerate(site.definition.projects):
            if project.path is None and project.version is None:
                text = f"project {quoted(project.name)} has neither path nor version"
                yield self.problem(
                    ("projects", index), text, "path: <folder>, or version: <version in the locker>", on_key=True
                )
            elif project.path is not None and project.version is not None:
                text = (
                    f"project {quoted(project.name)} has path and version; a local project has its version in "
                    "project.ini"
                )
                yield self.problem(("projects", index, "version"), text, on_key=True)


class ProjectNameTaken(DefinitionRule):
    id = "E1505"
    summary = "A project has the name of another one."
    why = "In the locker both would be in the same folder."
    fix = "Rename the project, also in its project.ini."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        built_in = catalog.rule_figures().built_in_projects.values
        seen: dict[str, int] = {}
        for index, project in enumerate(site.definition.projects):
            path: Path = ("projects", index, "name")
            if project.name.lower() in built_in:
                yield self.problem(
                    path, f"the project name {quoted(project.name)} is taken: {built_in[project.name.lower()]}"
                )
            elif project.name in shipped_projects():
                yield self.problem(
                    path, f"the project name {quoted(project.name)} is taken by a project that CycleForge ships"
                )
            elif project.name in seen:
                first: Path = ("projects", seen[project.name], "name")
                yield self.second(path, f"a second project has the name {quoted(project.name)}", first)
            seen.setdefault(project.name, index)


class ProjectName(DefinitionRule):
    id = "E1506"
    summary = "A project's name or version is not usable in the locker."
    why = (
        "Both become part of blob paths and of references like name:spec:version, so : and / and spaces are "
        "not allowed."
    )
    fix = "Use letters, digits, ., _ and -, beginning with a letter or digit."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        for index, project in enumerate(site.definition.projects):
            for key in ("name", "version"):
                value = getattr(project, key)
                if value is not None and not _NAME.fullmatch(value):
                    text = f"the project {key} {quoted(value)} must be 1 to 64 letters, digits, ., _ and -"
                    yield self.problem(("projects", index, key), text)


class UnusedProject(ClusterRule):
    id = "W1508"
    summary = "A declared project is attached to no role."
    why = "No node runs it, so it is not uploaded either."
    fix = "Add it to extra_projects of a role, or remove it."
    source = _PROJECTS

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        used = {reference.split(":")[0] for _, _, reference in references(site)}
        for index, project in enumerate(site.definition.projects):
            if project.name not in used:
                yield self.problem(("projects", index, "name"), f"no role runs the project {quoted(project.name)}")


class AttachedTwice(DefinitionRule):
    id = "W1509"
    summary = "A role names the same project twice."
    why = "CycleCloud runs a spec once per node; the second entry is ignored or changes the order."
    fix = "Remove one of them."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        seen: set[tuple[Path, str]] = set()
        for label, path, reference in references(site):
            name, _, spec = reference.partition(":")
            key = (path[:-2], f"{name}:{spec or 'default'}")
            if key in seen:
                yield self.problem(path, f"{label}: the project {quoted(reference)} is named twice")
            seen.add(key)


class DefaultsReplaced(DefinitionRule):
    id = "I1510"
    summary = "A role's list of projects leaves out shipped ones that its VM size would get."
    why = "`projects` replaces the choice made from role and VM size; `extra_projects` adds to it."
    fix = "Use extra_projects if the shipped projects should run too; silence this rule if not."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            chosen, choice = node.settings.projects, [name for name in shipped_projects() if name != POLICY]
            if chosen is not None and not any(reference.split(":")[0] in choice for reference in chosen):
                text = f"{node.label}: none of the shipped projects runs ({listed(choice)})"
                yield self.problem((*node.path, "projects"), text, on_key=True)


class ContainersNotMounted(DefinitionRule):
    id = "W1511"
    summary = "A role does not run the project that mounts the blob containers."
    why = f"CycleCloud mounts NFS and Lustre itself; containers are mounted by a script of {BASE}."
    fix = f"Add {BASE} to the role's projects; silence this rule if the role does not need the containers."
    source = _PROJECTS

    def check(self, site: Site) -> Iterator[Problem]:
        paths: dict[str, list[str]] = {}
        for mount in (each.file_system for each in wanted_by(site.definition)):
            if mount.mounted_by is not None:
                paths.setdefault(mount.mounted_by, []).append(mount.path)
        for node in roles(site):
            chosen = node.settings.projects
            if chosen is None:
                continue
            attached = {reference.split(":")[0] for reference in (*chosen, *node.settings.extra_projects)}
            for project, points in paths.items():
                if project not in attached:
                    text = f"{node.label}: without {project} nothing mounts {listed(points)}"
                    yield self.problem((*node.path, "projects"), text, on_key=True)


class ChangedWithoutVersion(PlanRule):
    id = "E1590"
    summary = "A shipped project has changed without a new version."
    why = "Nodes and lockers know a project by its version; two contents under one version cannot be told apart."
    fix = "cycleforge project bump NAME"
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/projects"

    def check(self, plan: Plan) -> Iterator[Problem]:
        from ..projects.lock import shipped_problems

        names = [project.name for project in plan.projects if not project.is_local]
        for found in shipped_problems(names):
            yield self.problem(("slurm",), found.message, found.fix, on_key=True)


_SOURCE = "https://learn.microsoft.com/azure/cyclecloud/how-to/storage-blobs"


def consequences(plans: Iterable[Plan]) -> list[str]:
    """What nodes do without the files that this machine lacks: a line per project and consequence, with its files."""
    from ..blobs import pinned

    pins = pinned()
    files: dict[tuple[str, str], list[str]] = {}
    for plan in plans:
        for project in plan.projects:
            for blob in project.blobs:
                if blob.is_needed and blob.state == "missing":
                    found = files.setdefault((project.name, pins[blob.file].without), [])
                    if blob.file not in found:
                        found.append(blob.file)
    return [f"{', '.join(names)} ({project}): {without}" for (project, without), names in files.items()]


class BlobMissing(PlanRule):
    id = "I1591"
    summary = "A third-party file that the nodes use is missing on this machine, so the deployment does not include it."
    why = (
        "Builds download nothing. The nodes do without the file, unless someone puts it into the locker below "
        "blobs/<project>/; projects/README.md says what that means."
    )
    fix = "cycleforge blobs fetch, then build again; without internet access: cycleforge blobs fetch --from PATH"
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        """One problem for all of them: one command fetches all."""
        missing = consequences((plan,))
        if missing:
            text = f"not on this machine, so the nodes do without: {'; '.join(missing)}"
            yield self.problem(("slurm",), text, "`cycleforge blobs fetch`, then build again", on_key=True)


class BlobDamaged(PlanRule):
    id = "W1592"
    summary = "A fetched third-party file does not have its pinned content, so the deployment does not include it."
    why = "Nodes run it as root; content other than the reviewed one is never used."
    fix = "cycleforge blobs fetch, then build again; `cycleforge blobs status` says what is wrong with it."
    source = _SOURCE

    def check(self, plan: Plan) -> Iterator[Problem]:
        needed = [blob for project in plan.projects for blob in project.blobs if blob.is_needed]
        damaged = [blob.file for blob in needed if blob.state == "damaged"]
        if damaged:
            text = f"damaged on this machine, so the nodes do without: {listed(damaged)}"
            yield self.problem(("slurm",), text, "`cycleforge blobs fetch`, then build again", on_key=True)


OF_THE_MACHINE = frozenset({BlobMissing.id, BlobDamaged.id})
"""They find something on one machine and nothing on the next, so silencing them is never out of date."""
