"""A rendered template, read back: what its nodes get when CycleCloud fills in the parameters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath

from generator.cctemplate import syntax
from generator.cctemplate.checks import check, variables
from generator.cctemplate.resolve import ResolvedNode, resolve
from generator.cctemplate.syntax import Template
from generator.cctemplate.values import Value, value_of
from generator.plan.deployment import Plan
from generator.problems.problem import Problem
from generator.render.cluster_template import late_parameters, render
from tests.bed.plans import slurm_of


@dataclass(frozen=True)
class Rendered:
    """Both files and their meaning."""

    text: str
    values: dict[str, Value]
    template: Template
    nodes: dict[str, ResolvedNode]
    known: dict[str, Value]
    findings: tuple[Problem, ...]

    def attribute(self, node: str, name: str) -> Value:
        """A node's attribute; None if it has none."""
        found = self.nodes[node].attributes.get(name.lower())
        return None if found is None else value_of(found.value, self.known)

    def configuration(self, node: str, key: str) -> Value:
        """What `jetpack config KEY` prints on a node; None if nothing."""
        found = self.nodes[node].configuration.get(key.lower())
        return None if found is None else value_of(found.value, self.known)

    def mounts(self, node: str) -> dict[str, dict[str, Value]]:
        """Mounts that are not switched off on a node, by section name."""
        found: dict[str, dict[str, Value]] = {}
        for key in self.nodes[node].configuration:
            if key.startswith("cyclecloud.mounts."):
                _, _, name, option = key.split(".", 3)
                found.setdefault(name, {})[option] = self.configuration(node, key)
        return {name: options for name, options in found.items() if options.get("disabled") is not True}

    def volumes(self, node: str) -> dict[str, dict[str, Value]]:
        """A node's own disks that are not switched off."""
        volumes = {
            section.name: {item.name: value_of(item.value, self.known) for item in section.attributes}
            for section in self.nodes[node].section.of_kind("volume")
        }
        return {name: options for name, options in volumes.items() if options.get("Disabled") is not True}


def parse(text: str) -> Template:
    """A template of which every line can be read."""
    template, unreadable = syntax.read(text)
    assert unreadable == ()
    return template


def read(plan: Plan, **late: Value) -> Rendered:
    """Render a plan and read it back; `late` are values that the server fills in."""
    files = render(plan)
    start = PurePosixPath("cluster") / slurm_of(plan).cluster_name
    text = files[start.with_suffix(".txt")].content.decode()
    values = json.loads(files[PurePosixPath(f"{start}.params.json")].content)
    template = parse(text)
    specs = frozenset((project.name, spec, project.version) for project in plan.projects for spec in project.specs)
    findings = check(template, values=values, late=frozenset(late_parameters(plan)), specs=specs)
    known = variables(template, values | late)
    return Rendered(text, values, template, resolve(template.clusters[0]), known, findings)
