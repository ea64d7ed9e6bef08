"""What the plan decides is what `cycleforge plan`, the README and `effective.yaml` print."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml

from generator.cli.plan_text import plan_text
from generator.plan.types import Plan
from tests.definitions.build import NAMES, checked, rendered

every_definition = pytest.mark.parametrize("name", NAMES)


def plan_of(name: str) -> Plan:
    plan = checked(name).plan
    assert plan is not None
    return plan


def readme(name: str) -> str:
    return rendered(name)[PurePosixPath("README.md")].content.decode()


def derived(name: str) -> dict[str, Any]:
    content = yaml.safe_load(rendered(name)[PurePosixPath("effective.yaml")].content)
    found: dict[str, Any] = content["derived"]
    return found


def table(text: str, header: str) -> list[list[str]]:
    """Cells of the Markdown table with that header."""
    rows = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def section(text: str, title: str) -> list[str]:
    """Lines of a section of `cycleforge plan`."""
    found = re.search(rf"^{title}.*\n((?: .*\n)+)", text, re.MULTILINE)
    assert found, title
    return [line.strip() for line in found[1].splitlines()]


@every_definition
def test_quota_is_the_same_everywhere(name: str) -> None:
    limits = [[limit["name"], str(limit["vcpus"])] for limit in derived(name)["quota"]["limits"]]
    assert limits
    assert table(readme(name), "| quota | vCPUs |") == limits
    printed = section(plan_text(plan_of(name)), "quota needed")[1:]
    assert [re.split(r"\s{2,}", line) for line in printed] == limits
    uses = [[str(use[key]) for key in ("name", "vm_size", "vms", "vcpus")] for use in derived(name)["quota"]["uses"]]
    assert table(readme(name), "| who | VM size |") == uses


@every_definition
def test_limits_are_the_sums_of_what_is_used(name: str) -> None:
    quota = plan_of(name).quota
    regular = [use for use in quota.uses if not use.spot]
    total = next(limit for limit in quota.limits if limit.usage == "cores")
    assert total.vcpus == sum(use.vcpus or 0 for use in regular)
    families = {limit.usage: limit.vcpus for limit in quota.limits}
    for family in {use.family for use in regular if use.family}:
        used = sum(use.vcpus or 0 for use in regular if use.family == family)
        assert families[family.replace(" ", "")] == used


@every_definition
def test_providers_are_the_same_everywhere(name: str) -> None:
    providers = derived(name)["providers"]
    assert re.findall(r"^az provider register --namespace (\S+) --wait$", readme(name), re.MULTILINE) == providers
    assert section(plan_text(plan_of(name)), "resource providers") == [", ".join(providers)]


@every_definition
def test_every_provider_of_the_deployment_is_registered(name: str) -> None:
    """The resource types in the modules in use say which providers it takes."""
    modules = (file for path, file in rendered(name).items() if path.parts[0] == "modules")
    types = {found for file in modules for found in re.findall(rb"resource \w+ '(Microsoft\.\w+)/", file.content)}
    built_in = {"Microsoft.Authorization", "Microsoft.Resources"}
    assert {found.decode() for found in types} - built_in <= set(derived(name)["providers"])


@every_definition
def test_names_are_the_same_everywhere(name: str) -> None:
    values, text = derived(name), readme(name)
    assert set(re.findall(r"az deployment sub \w[\w-]* --name (\S+)", text)) == {values["deployment_name"]}
    bicep = rendered(name)[PurePosixPath("main.bicep")].content.decode()
    for written in (values["resource_group"], values["server"]["vm_name"], values["network"]["vnet_name"]):
        assert f"'{written}'" in bicep
    assert set(re.findall(r"--resource-group (\S+)", text)) >= {values["resource_group"]}
    for array in values["slurm"]["node_arrays"]:
        assert array["host_list"].startswith(f"{values['slurm']['config_name']}-{array['name']}-")
