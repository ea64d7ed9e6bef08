"""What the plan decides is what `cycleforge plan`, the README and `effective.yaml` print."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import Any

import pytest

from generator.cli.plan import plan_text
from generator.plan.deployment import Plan
from tests.bed.yaml_data import yaml_data
from tests.definitions.build import NAMES, checked, rendered

every_definition = pytest.mark.parametrize("name", NAMES)


def plan_of(name: str) -> Plan:
    plan = checked(name).plan
    assert plan is not None
    return plan


def readme(name: str) -> str:
    return rendered(name)[PurePosixPath("README.md")].content.decode()


def derived(name: str) -> dict[str, Any]:
    content = yaml_data(rendered(name)[PurePosixPath("effective.yaml")].content)
    found: dict[str, Any] = content["derived"]
    return found


def table(text: str, header: str) -> list[list[str]]:
    """Cells of the Markdown table with that header."""
    rows = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows]


def section(text: str, title: str) -> list[str]:
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
    assert table(readme(name), "| used by | VM size |") == uses


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


def strings(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(strings, value.values()))
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return {value} if isinstance(value, str) else set()


@every_definition
def test_every_name_in_main_bicep_is_in_effective_yaml(name: str) -> None:
    """Names, sizes and tiers of resources; of one that the deployment completes, its stem."""
    bicep = rendered(name)[PurePosixPath("main.bicep")].content.decode()
    known = {part for text in strings(derived(name)) for part in (text, *text.split("/"))}
    keys = r"name|\w+Name|vmSize|skuTier|serviceLevel|zone|version"
    named = re.findall(rf"^    (?:{keys}): '([^'$]+)(?:\$\{{unique\}})?'$", bicep, re.MULTILINE)
    assert len(named) >= 8
    assert {text for text in named if text not in known} <= {"to-hub"}


@every_definition
def test_what_the_server_is_told_is_in_effective_yaml(name: str) -> None:
    """Every text and number of `bootstrap.json` but the paths of what travels beside it and where values come from."""
    content = json.loads(rendered(name)[PurePosixPath("bootstrap/bootstrap.json")].content)
    values = derived(name)
    told = {key: content[key] for key in ("name", "admin", "account", "locker", "slurmProject", "projects", "secrets")}
    told["cluster"] = {key: content["cluster"][key] for key in ("name", "templateName", "machineTypes")}
    assert strings(told) <= strings(values)
    server = values["server"]
    assert list(content["server"].values()) == [
        server[key] for key in ("http_port", "https_port", "cluster_port", "java_heap_mb")
    ]
    assert list(content["limits"].values()) == [server["boot_limit_s"], server["upload_limit_s"]]


@every_definition
def test_parameters_of_the_cluster_are_in_effective_yaml(name: str) -> None:
    """Sizes, images, counts and versions that CycleCloud gets as parameters."""
    values = derived(name)
    slurm = values["slurm"]
    path = PurePosixPath("cluster") / f"{slurm['cluster_name']}.params.json"
    content = json.loads(rendered(name)[path].content)
    texts = strings(values)
    sized = {key: value for key, value in content.items() if key.endswith(("MachineType", "ImageName", "Address"))}
    assert {value for value in sized.values() if value is not None} <= texts
    assert content["configuration_slurm_version"] == slurm["version"]
    assert content["NodeTags"] == values["tags"]
    assert (content["additional_slurm_config"] or "").splitlines() == slurm["additional_config"]
    counts = [value for key, value in content.items() if re.fullmatch(r"Max\w+ExecuteNodeCount", key)]
    assert counts == [array["max_nodes"] for array in slurm["node_arrays"]]


@every_definition
def test_descriptions_of_the_readme_are_in_effective_yaml(name: str) -> None:
    values = derived(name)
    rows = {row[0]: row[1] for row in table(readme(name), "| what | this deployment |")}
    assert rows["Access"] == values["access"]["description"]
    for mount in (values["slurm"]["sched"], values["slurm"]["home"], *values["mounts"]):
        assert rows[f"`{mount['path']}`"] == mount["description"]
