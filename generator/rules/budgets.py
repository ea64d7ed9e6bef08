"""Whether the content fits into the deployment."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from ..files.file import Files
from ..problems.problem import Problem
from .base import DefinitionRule, FilesRule, Path, Rendered, Site
from .figures import limit
from .wording import quoted

_LIMITS = "https://learn.microsoft.com/azure/azure-resource-manager/templates/best-practices"
PAYLOAD = PurePosixPath("bootstrap/payload")


def payload_budget_bytes() -> int:
    """Most bytes that the chunks of one deployment carry."""
    return limit("payload_chunk") * limit("payload_chunks")


def _kib(size_bytes: int) -> str:
    return f"{-(-size_bytes // 1024)} KiB"


class PayloadTooLarge(FilesRule):
    id = "E1801"
    summary = "The content for the server does not fit into the deployment."
    why = (
        "Projects and scripts travel inside the deployment in chunks; Azure Resource Manager limits a template to 4 "
        "MiB."
    )
    fix = (
        "Make local projects smaller: let their scripts download large files, or upload the project to the locker "
        "and name its version. A fetched blob stays out when it is removed from the folder that `cycleforge blobs "
        "status` names."
    )
    source = _LIMITS

    def check(self, rendered: Rendered) -> Iterator[Problem]:
        """The problem, at the largest local project, when the rendered payload or the user data is too large."""
        if rendered.refusal:
            yield self.problem(_place_of_largest(rendered.site), rendered.refusal, self.fix)
        files = rendered.files
        size = sum(len(file.content) for path, file in files.items() if path.is_relative_to(PAYLOAD))
        if size > payload_budget_bytes():
            path, name = _largest_local_project(rendered)
            cause = f"; the largest local project is {quoted(name)}" if name else _largest_blob(files)
            text = (
                f"the content for the server has {_kib(size)}, the deployment carries "
                f"{_kib(payload_budget_bytes())}{cause}"
            )
            yield self.problem(path, text)
        user_data = files.get(PurePosixPath("bootstrap/cloud-init.yaml"))
        if user_data is not None and len(user_data.content) > limit("custom_data"):
            text = (
                f"the user data of the server has {_kib(len(user_data.content))}, Azure accepts "
                f"{_kib(limit('custom_data'))}"
            )
            yield self.problem(("server",), text, on_key=True)


def _place_of_largest(site: Site) -> Path:
    local = [
        (site.local_projects[project.name].size_bytes, -index)
        for index, project in enumerate(site.definition.projects)
        if project.name in site.local_projects
    ]
    return ("projects", -max(local)[1], "path") if local else ("name",)


def _largest_blob(files: Files) -> str:
    """Which blob of a shipped project takes most room, if one travels."""
    sizes = {path.name: len(file.content) for path, file in files.items() if path.match("projects/*/blobs/*")}
    if not sizes:
        return ""
    name = max(sizes, key=lambda each: (sizes[each], each))
    return f"; the largest fetched blob is {quoted(name)} with {_kib(sizes[name])}"


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
        for index, project in enumerate(site.definition.projects):
            local = site.local_projects.get(project.name)
            if (
                project.path is not None
                and local is not None
                and not local.problem
                and local.size_bytes > payload_budget_bytes()
            ):
                text = (
                    f"the project {quoted(project.name)} has {_kib(local.size_bytes)}, the deployment carries "
                    f"{_kib(payload_budget_bytes())} after compression"
                )
                yield self.problem(("projects", index, "path"), text)
