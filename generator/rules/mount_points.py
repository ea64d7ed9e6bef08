"""Where file systems are mounted on the nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from .. import catalog
from ..plan.file_systems.registry import Wanted, wanted_by
from ..plan.names import mount_name
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site, quoted

_POINT = re.compile(r"(?:/[A-Za-z0-9_][\w.-]*)+", re.ASCII)
_LONGEST = 255


def _points(site: Site) -> Iterator[tuple[Path, str]]:
    for index, mount in enumerate(site.definition.storage.mounts):
        yield ("storage", "mounts", index, "path"), mount.path


def _normal(point: str) -> str | None:
    """The mount point without a trailing slash or doubled ones; None when it is not usable at all."""
    plain = re.sub(r"/+", "/", point[: _LONGEST + 1]).rstrip("/") or "/"
    return plain if len(plain) <= _LONGEST and (plain == "/" or _POINT.fullmatch(plain)) else None


class NotAMountPoint(DefinitionRule):
    id = "E0604"
    summary = "A mount point is not a plain absolute path."
    why = "It goes into /etc/fstab, the cluster template and scripts of the nodes."
    fix = "Write an absolute path of letters, digits, _, - and ., without a slash at its end."
    source = "https://man7.org/linux/man-pages/man5/fstab.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, point in _points(site):
            if point != "/" and not (len(point) <= _LONGEST and _POINT.fullmatch(point)):
                near = _normal(point) or _normal(f"/{point}")
                text = f"the mount point {quoted(point)} is not a plain absolute path"
                yield self.problem(path, text, f"for example {near}" if near and near != "/" else "for example /data")


class MountPointTwice(DefinitionRule):
    id = "E0605"
    summary = "Two file systems have the same mount point."
    why = "The second mount hides the first."
    fix = "Choose another mount point for one of them."
    source = "https://man7.org/linux/man-pages/man8/mount.8.html"

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, Path] = {}
        for path, point in _points(site):
            normal = _normal(point)
            if normal is None:
                continue
            if normal in seen:
                yield self.second(path, f"a second file system is mounted at {quoted(normal)}", seen[normal])
            seen.setdefault(normal, path)


class ReservedMountPoint(DefinitionRule):
    id = "E0606"
    summary = "A mount point is reserved."
    why = (
        "System, CycleCloud, Slurm and the cluster's own file systems are there; a mount would hide them or be hidden."
    )
    fix = "Choose another one, for example /data or /scratch."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        reserved: dict[str, str] = catalog.limits().reserved_mount_points.paths
        below = catalog.rule_figures().mount_points_below.paths
        for path, point in _points(site):
            normal = _normal(point)
            if normal is None:
                continue
            owner = next((each for each in below if normal.startswith(f"{each}/") or normal == each), None)
            if normal in reserved:
                yield self.problem(
                    path, f"the mount point {quoted(normal)} is reserved: {reserved[normal]}", "for example /data"
                )
            elif owner:
                reason = reserved.get(owner, "programs of CycleCloud")
                yield self.problem(
                    path,
                    f"the mount point {quoted(normal)} is below {owner}, which is reserved: {reason}",
                    "for example /data",
                )


class NestedMountPoint(DefinitionRule):
    id = "W0607"
    summary = "A mount point is inside another file system."
    why = "It works only when the outer one is mounted first; nodes do not guarantee an order."
    fix = "Choose mount points that are not nested."
    source = "https://man7.org/linux/man-pages/man8/mount.8.html"

    def check(self, site: Site) -> Iterator[Problem]:
        points = {normal: path for path, point in _points(site) if (normal := _normal(point)) and normal != "/"}
        outer = {*points, "/shared"}
        for normal, path in points.items():
            parent = next((str(each) for each in PurePosixPath(normal).parents if str(each) in outer), None)
            if parent:
                yield self.problem(path, f"the mount point {quoted(normal)} is inside the file system {quoted(parent)}")


class MountNamesClash(DefinitionRule):
    id = "E0617"
    summary = "Two mount points give the same resource name."
    why = (
        "File systems are named after their mount points, with every character outside a-z and 0-9 replaced by a "
        "hyphen, and cut where a service takes fewer characters (pools and volumes of NetApp Files 64, exports 80); "
        "Azure and the cluster template do not tell such names apart."
    )
    fix = "Choose mount points that differ in their letters and digits, near the beginning."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, tuple[str, Path]] = {
            key: (point, ("storage", key)) for key, point in (("home", "/shared"), ("sched", "/sched"))
        }
        for path, point in _points(site):
            normal = _normal(point)
            if normal is None or normal == "/":
                continue
            key = _plain(normal)
            other = seen.setdefault(key, (normal, path))
            if other[0] != normal:
                yield self._clash(normal, path, *other)
        yield from self._cut_names(site)

    def _cut_names(self, site: Site) -> Iterator[Problem]:
        """Names that are equal only after Azure's limits have cut them, or made them begin with a letter."""
        seen: dict[str, Wanted] = {}
        for each in wanted_by(site.definition):
            point = each.file_system.path
            for name in each.file_system.own_names:
                other = seen.setdefault(name.lower(), each)
                if _plain(other.file_system.path) != _plain(point):
                    yield self._clash(point, _path_of(each), other.file_system.path, _path_of(other))
                    break

    def _clash(self, point: str, path: Path, other: str, other_path: Path) -> Problem:
        text = f"the mount points {quoted(other)} and {quoted(point)} give the same resource name"
        return self.second(path, text, other_path)


def _plain(point: str) -> str:
    """What is left of a mount point in the names that are made from it."""
    return re.sub(r"[^a-z0-9]", "", mount_name(point))


def _path_of(wanted: Wanted) -> Path:
    """Where its mount point is given, or the section that has a fixed one."""
    path = wanted.definition_path
    return (*path, "path") if path[1] == "mounts" else path
