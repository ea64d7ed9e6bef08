"""What rules look at, and one class for each stage at which they do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..catalog.sizes import VmSize
from ..definition.certificate import Certificate
from ..definition.model.definition import Definition
from ..definition.model.slurm import Slurm
from ..plan.custom_sizes import size_of
from ..plan.subnets import Layout
from ..problems.problem import Problem
from ..problems.rule import Rule
from ..projects.local import LocalProject
from ..records import record

if TYPE_CHECKING:
    from ..files.file import Files
    from ..plan.deployment import Plan

Path = tuple[str | int, ...]


@record
class Site:
    """Everything that a rule may look at; rules do no input or output."""

    definition: Definition
    data: object
    """The plain data as the user wrote it, environment variables replaced."""
    layout: Layout | None
    """Subnets of a new network; None for an existing one and where the address space is not a CIDR."""
    local_projects: Mapping[str, LocalProject]
    secret_values: tuple[str, ...] = ()
    certificate: Certificate | None = None
    """Of the accounting database's authority, where the definition names one."""

    def vm_size(self, name: str) -> VmSize:
        """A VM size that the definition names; `known` is false where neither it nor the catalogue describes it."""
        return size_of(self.definition, name)


@record
class Rendered:
    """What the deployment folder would hold."""

    site: Site
    files: Files


@record
class Findings:
    """What all other rules found, from before silencing."""

    site: Site
    problems: Sequence[Problem]


@record
class Together:
    """One of several definitions of a run that have no errors of their own."""

    filename: str
    plan: Plan


class DefinitionRule(Rule):
    """A rule about a definition; values may be anything that the model lets through."""

    stage = "definition"

    def check(self, site: Site) -> Iterator[Problem]:
        """The problems of this site, in the order of the file."""
        raise NotImplementedError


class ClusterRule(DefinitionRule):
    """A rule about the Slurm cluster; a definition without one cannot break it."""

    def check(self, site: Site) -> Iterator[Problem]:
        """The problems of the cluster."""
        if site.definition.slurm is not None:
            yield from self.check_cluster(site, site.definition.slurm)

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        """The problems of this cluster, in the order of the file."""
        raise NotImplementedError


class PlanRule(Rule):
    """A rule that needs derived figures; it runs when the definition has no errors."""

    stage = "plan"

    def check(self, plan: Plan) -> Iterator[Problem]:
        """The problems of a plan, at places of its definition."""
        raise NotImplementedError


class FilesRule(Rule):
    """A rule about what was rendered."""

    stage = "files"

    def check(self, rendered: Rendered) -> Iterator[Problem]:
        """The problems of the files, at places of the definition."""
        raise NotImplementedError


class FindingsRule(Rule):
    """A rule about what the other rules found."""

    stage = "findings"

    def check(self, found: Findings) -> Iterator[Problem]:
        """The problems, at places of the definition."""
        raise NotImplementedError


class RunRule(Rule):
    """A rule about two definitions of one run; it is asked once for each of them."""

    stage = "run"

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        """The problems at places of `this`."""
        raise NotImplementedError
