"""What leaves the network follows from the definition."""

from __future__ import annotations

import ipaddress
import json
import re
from pathlib import PurePosixPath

import pytest

from generator import catalog
from generator.plan.deployment import Plan
from generator.plan.egress import EgressRule
from generator.render import firewall, readme
from tests.bed.plans import plan_from
from tests.bicep import variants

GPU = "slurm: {partitions: [{name: gpu, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}]}"


def rules(*changes: str) -> dict[str, EgressRule]:
    return {rule.name: rule for rule in plan_from(*changes).egress.rules}


def test_a_cluster_of_cpus_reaches_azure_and_its_packages() -> None:
    found = rules()
    assert {"azure-management", "azure-sign-in", "projects-from-github", "microsoft-packages", "ubuntu-packages",
            "python-packages"} <= set(found)  # fmt: skip
    assert not {"almalinux-packages", "metrics", "lustre-hosts", "windows-activation", "nvidia-containers"} & set(found)
    assert found["azure-management"].sources == ("server",)
    assert found["azure-management"].prefixes == ("10.50.2.0/27",)
    assert found["microsoft-packages"].prefixes == ("10.50.2.0/27", "10.50.0.0/23")


@pytest.mark.parametrize(
    ("change", "comes"),
    [
        ("server: {jumpbox: {vm_size: Standard_D2as_v5}}", {"windows-activation", "windows-updates"}),
        ("slurm: {login: {image: almalinux9}}", {"almalinux-packages"}),
        (
            "network: {address_space: 10.50.0.0/20}\n"
            "storage: {mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]}",
            {"lustre-addresses", "lustre-hosts", "lustre-services", "lustre-time"},
        ),
        (variants.EVERYTHING.split("monitoring:")[1].join(["monitoring:", ""]), {"metrics", "metrics-software"}),
    ],
)
def test_each_choice_brings_its_rules(change: str, comes: set[str]) -> None:
    assert set(rules(change)) - set(rules()) == comes


def test_jobs_bring_the_hosts_of_their_settings() -> None:
    job = (
        "jobs: {training: [{recipe: mpt, partition: gpu, settings: {CONTAINER: 'docker://images.example.com#a/b:1'}}]}"
    )
    lustre = (
        "network: {address_space: 10.50.0.0/20}\n"
        "storage: {mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]}"
    )
    found = rules(GPU, lustre, job)
    assert found["images.example.com"].reason == "a setting of the job mpt names it"
    assert found["hugging-face"].sources == ("nodes",)
    assert "images.example.com" not in rules(GPU, lustre)


def test_other_clouds_have_other_names() -> None:
    plan = plan_from("location: usgovvirginia\nazure: {cloud: usgov}")
    by_name = {rule.name: rule.fqdns for rule in plan.egress.rules}
    assert by_name["azure-management"] == ("management.usgovcloudapi.net",)
    assert by_name["azure-sign-in"] == ("login.microsoftonline.us",)


def test_an_existing_server_and_network_leave_the_nodes() -> None:
    found = variants.existing_server().egress.rules
    assert {rule.sources for rule in found} == {("nodes",)}
    assert {rule.prefixes for rule in found} == {()}


@pytest.mark.parametrize("name", variants.VARIANTS)
def test_each_rule_is_one_that_a_firewall_takes(name: str) -> None:
    """Names, service tags and addresses never in one rule: https://learn.microsoft.com/azure/firewall/rule-processing"""
    plan = variants.VARIANTS[name]()
    for rule in plan.egress.rules:
        assert [bool(kind) for kind in (rule.fqdns, rule.service_tags, rule.addresses, rule.described)].count(
            True
        ) == 1, rule.name
        assert rule.sources
        assert rule.protocol in ("TCP", "UDP")
        assert all(0 < port < 65536 for port in rule.ports)
        assert all(re.fullmatch(r"(\*\.)?[a-z0-9-]+(\.[a-z0-9-]+)+", host) for host in rule.fqdns), rule.fqdns
        assert all(ipaddress.ip_network(each) for each in rule.addresses)


@pytest.mark.parametrize("name", ["minimal", "behind_a_firewall", "existing_server"])
def test_file_and_readme_have_every_rule(name: str) -> None:
    plan = variants.VARIANTS[name]()
    written = json.loads(firewall.render(plan)[PurePosixPath("firewall-rules.json")].content)
    text = readme_of(plan)
    assert [row["name"] for row in written] == [rule.name for rule in plan.egress.rules]
    for rule, row in zip(plan.egress.rules, written, strict=True):
        targets = row.get("fqdns", []) + row.get("serviceTags", []) + row.get("addresses", [])
        assert targets == list(rule.targets)
        assert row.get("described", "") == rule.described
        assert f"| {', '.join(f'`{target}`' for target in targets)}{rule.described}" in text
        assert f"{rule.reason}{' (may be closed)' if rule.optional else ''} |" in text


def readme_of(plan: Plan) -> str:
    return readme.render(plan)[PurePosixPath("README.md")].content.decode()


def test_every_row_applies_to_something() -> None:
    """Its condition is one that the plan knows; a misspelt one would never hold."""
    pattern = re.compile(
        r"any|server|marketplace-server|jumpbox|lustre|cluster|os:(ubuntu|almalinux)|hpc-image|monitoring(-gpu)?"
        r"|certificate-address|host:[a-z0-9.]+"
    )
    for name, row in catalog.egress().rules.items():
        assert pattern.fullmatch(row.when), name
        assert row.source, name
