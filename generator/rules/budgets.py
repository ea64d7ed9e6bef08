"""Whether the content fits into the deployment.

Azure compresses a deployment and limits the result. The estimate needs no Bicep compiler: `job_bytes` says how it is
made, and a test compares it with deployments that were compiled.
"""

from __future__ import annotations

import base64
import posixpath
import re
import zlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from .. import catalog
from ..files.file import Files
from ..problems.problem import Problem
from ..words.counts import size_in_kb, size_in_kib
from .base import DefinitionRule, FilesRule, Path, Rendered, Site, quoted

_LIMITS = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-job-size-exceeded"
MAIN = PurePosixPath("main.bicep")
PAYLOAD = PurePosixPath("bootstrap/payload")
_USES = re.compile(r"^module \w+ '([^']+)'", re.MULTILINE)
_LOADS = re.compile(r"\b(loadFileAsBase64|loadTextContent)\('([^']+)'\)")
_BASE64_PERCENT = 101
"""What is left of base64 of compressed bytes after compression, in percent of these bytes; measured: 100.94 to 100.96.
The characters carry 6 bits each, which deflate cannot undercut and does not quite reach."""


def job_budget_bytes() -> int:
    """Most bytes that a deployment job may have after compression, less what Azure may add."""
    return catalog.limits().deployment_job.value - catalog.limits().deployment_job_reserve.value


def payload_bytes(files: Files) -> int:
    """Bytes of the archive for the server, which is compressed."""
    return sum(len(file.content) for path, file in files.items() if path.is_relative_to(PAYLOAD))


def job_bytes(files: Files, main: PurePosixPath = MAIN) -> int:
    """About the bytes of the deployment job after compression.

    The archive counts as it is, and a percent more for base64. All else is compressed by deflate at its highest level:
    `main.bicep`, every module at each of its uses, and what they load. Compiled, the text is twice as long and
    compresses to the same size. Six deployments that were compiled differ from this by less than two percent.
    """
    packer = zlib.compressobj(9)
    packed = sum(len(packer.compress(part)) for part in _parts(files, main)) + len(packer.flush())
    return packed + payload_bytes(files) * _BASE64_PERCENT // 100


def _parts(files: Files, source: PurePosixPath) -> Iterator[bytes]:
    """A Bicep file, what it loads, and its modules in the order in which they are used."""
    if source not in files:
        return
    content = files[source].content
    yield content
    text = content.decode()
    for how, name in _LOADS.findall(text):
        loaded = _beside(source, name)
        if loaded in files and not loaded.is_relative_to(PAYLOAD):
            yield files[loaded].content if how == "loadTextContent" else base64.b64encode(files[loaded].content)
    for name in _USES.findall(text):
        yield from _parts(files, _beside(source, name))


def _beside(source: PurePosixPath, name: str) -> PurePosixPath:
    return PurePosixPath(posixpath.normpath(source.parent / name))


class PayloadTooLarge(FilesRule):
    id = "E1801"
    summary = "The content for the server does not fit into the deployment."
    why = (
        "Projects and scripts travel inside the deployment. Azure compresses it, and refuses a job of more than 1 MB "
        "(DeploymentJobSizeExceeded). The size is estimated: the archive for the server with one percent for base64, "
        "and the compressed text of Bicep; a tenth of the limit is kept for what Azure adds."
    )
    fix = (
        "Leave a local project out of the deployment: write its version instead of its path, deploy without starting "
        "the cluster, upload the project with `cycleforge upload FOLDER`, then start the cluster. Or let its scripts "
        "download large files. A fetched blob stays out when it is removed from the folder that `cycleforge blobs "
        "status` names."
    )
    source = _LIMITS

    def check(self, rendered: Rendered) -> Iterator[Problem]:
        """The problem, at the largest local project, when the deployment is too large; and what is fixed in size."""
        files, limits = rendered.files, catalog.limits()
        size = job_bytes(files)
        if size > job_budget_bytes():
            path, cause, hint = _largest(rendered)
            text = (
                f"the deployment has about {size_in_kb(size)} after compression, of which the content for the server "
                f"is {size_in_kb(payload_bytes(files))}; Azure accepts {size_in_kb(limits.deployment_job.value)}, of "
                f"which {size_in_kb(limits.deployment_job_reserve.value)} are kept for what it adds{cause}"
            )
            yield self.problem(path, text, hint)
        fixed = (
            ("bootstrap/cloud-init.yaml", limits.custom_data.value, "the user data of the server"),
            ("bootstrap/start.sh", limits.extension_script.value, "the script that starts the first boot"),
        )
        for name, most, what in fixed:
            file = files.get(PurePosixPath(name))
            if file is not None and len(file.content) > most:
                text = f"{what} has {size_in_kib(len(file.content))}, Azure accepts {size_in_kib(most)}"
                yield self.problem(("server",), text, on_key=True)
        for loaded, most in _loaded(files):
            if len(files[loaded].content) > most:
                text = f"{loaded} has {size_in_kib(len(files[loaded].content))}, Bicep loads {size_in_kib(most)}"
                yield self.problem(("server",), text, on_key=True)


def _loaded(files: Files) -> Iterator[tuple[PurePosixPath, int]]:
    """(file that Bicep loads, most bytes of it)."""
    limits = catalog.limits()
    most = {"loadTextContent": limits.loaded_text.value}
    for source, file in files.items():
        if source.suffix == ".bicep":
            for how, name in _LOADS.findall(file.content.decode()):
                path = _beside(source, name)
                if path in files:
                    yield path, most.get(how, limits.loaded_file.value)


def _largest(rendered: Rendered) -> tuple[Path, str, str | None]:
    """Where the problem is, what takes most room, and how to leave that out."""
    path, name = _largest_local_project(rendered)
    if name is None:
        return path, _largest_blob(rendered.files), None
    local = rendered.site.local_projects.get(name)
    version = local.version if local is not None and local.version else "its version"
    return (
        path,
        f"; the largest local project is {quoted(name)}",
        f"version: {version} instead of path, and `cycleforge upload` of its folder between the deployment and the "
        "first start of the cluster",
    )


def _largest_blob(files: Files) -> str:
    """Which blob of a shipped project takes most room, if one travels."""
    sizes = {path.name: len(file.content) for path, file in files.items() if path.match("projects/*/blobs/*")}
    if not sizes:
        return ""
    name = max(sizes, key=lambda each: (sizes[each], each))
    return f"; the largest fetched blob is {quoted(name)} with {size_in_kib(sizes[name])}"


def _largest_local_project(rendered: Rendered) -> tuple[Path, str | None]:
    sizes: dict[str, int] = {}
    for path, file in rendered.files.items():
        if path.parts[0] == "projects" and len(path.parts) > 2:
            sizes[path.parts[1]] = sizes.get(path.parts[1], 0) + len(file.content)
    local = [
        (sizes.get(project.name, 0), index, project.name)
        for index, project in enumerate(rendered.site.definition.projects)
        if project.path is not None
    ]
    if not local:
        return ("name",), None
    _, index, name = max(local, key=lambda each: (each[0], -each[1]))
    return ("projects", index, "path"), name


class LocalProjectTooLarge(DefinitionRule):
    id = "W1802"
    summary = "A single local project is larger than what the deployment can carry."
    why = "It fits only if it compresses well; archives and programs do not."
    fix = "Let its scripts download large files, or upload the project to the locker and name its version."
    source = _LIMITS

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.server.existing is not None:
            return  # its projects do not travel with the deployment
        for index, project in enumerate(site.definition.projects):
            local = site.local_projects.get(project.name)
            if (
                project.path is not None
                and local is not None
                and not local.problem
                and local.size_bytes > job_budget_bytes()
            ):
                text = (
                    f"the project {quoted(project.name)} has {size_in_kb(local.size_bytes)}, the deployment carries "
                    f"{size_in_kb(job_budget_bytes())} after compression"
                )
                yield self.problem(("projects", index, "path"), text)
