"""Host names, public addresses, termination notices and the database's certificate, as a cluster gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator import pipeline
from generator.definition.certificate import checked
from tests.bed.plans import KEY, plan_from, slurm_of
from tests.cluster_template.rendered import read

AUTHORITY = (Path(__file__).parent / "authority.pem").read_text(encoding="utf-8")
"""A certificate whose key was never stored."""


def test_names_follow_the_cluster_unless_the_definition_says_otherwise() -> None:
    usual, own = plan_from("{}"), plan_from("slurm: {host_names: {node_prefix: lab-, scheduler: lab-head}}")
    assert slurm_of(usual).node_arrays[0].host_list == "minimal-htc-[1-2]"
    assert slurm_of(own).node_arrays[0].host_list == "lab-htc-[1-2]"
    assert read(own).configuration("htc", "slurm.node_prefix") == "lab-"
    assert read(own).attribute("scheduler", "ComputerName") == "lab-head"
    assert own.access.scheduler_target == f"{own.admin.username}@lab-head"
    assert read(usual).configuration("htc", "slurm.node_prefix") == "minimal-"
    assert read(usual).attribute("scheduler", "ComputerName") == "minimal-scheduler"


def test_an_empty_prefix_leaves_partition_and_number() -> None:
    plan = plan_from("slurm: {host_names: {node_prefix: ''}}")
    assert slurm_of(plan).node_arrays[0].host_list == "htc-[1-2]"
    assert read(plan).configuration("htc", "slurm.node_prefix") == ""


def test_host_names_may_be_made_by_cyclecloud() -> None:
    rendered = read(plan_from("slurm: {host_names: {node_name_is_host_name: false}}"))
    assert rendered.findings == ()
    assert rendered.configuration("htc", "slurm.use_nodename_as_hostname") is False
    assert rendered.configuration("htc", "cyclecloud.hosts.standalone_dns.enabled") is True


def test_the_end_of_a_vm_is_announced_where_the_definition_asks() -> None:
    assert read(plan_from("{}")).attribute("htc", "EnableTerminateNotification") is False
    assert (
        read(plan_from("slurm: {terminate_notification: true}")).attribute("htc", "EnableTerminateNotification") is True
    )


def definition(certificate: str) -> bytes:
    indented = certificate.replace("\n", "\n      ")
    return f"""
name: acct
location: southcentralus
admin: {{ssh_public_key: "{KEY}"}}
slurm:
  accounting:
    type: existing
    host: mysql.example.com
    user: slurm
    certificate: |-
      {indented}
  partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2}}]
""".encode()


@pytest.mark.parametrize("as_file", [False, True])
def test_the_certificate_reaches_slurmdbd(as_file: bool, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("Subject: CN=test\r\n" + AUTHORITY.replace("\n", "\r\n"))
    found = pipeline.check(definition("ca.pem" if as_file else AUTHORITY.strip()), "acct.yaml", {}, tmp_path)
    assert found.plan is not None, found.problems
    rendered = read(found.plan, configuration_slurm_accounting_password="secret")
    assert rendered.configuration("scheduler", "slurm.accounting.certificate") == AUTHORITY
    assert rendered.values["configuration_slurm_accounting_custom_certificate"] == AUTHORITY
    assert rendered.findings == ()


def test_what_is_no_certificate_is_refused_without_showing_it() -> None:
    key = AUTHORITY + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    truncated = AUTHORITY.replace("BAMC", "BAMD").replace(AUTHORITY.splitlines()[2], "")
    for text, word in (
        (key, "private key"),
        (truncated, "X.509"),
        ("-----BEGIN", "no PEM"),
        (AUTHORITY.replace("CERT", "CRT"), "CRTIFICATE"),
    ):
        found = checked(text)
        assert found.text is None
        assert word in (found.fault or "")
        assert "AAAA" not in (found.fault or "")
    assert checked(AUTHORITY * 2).text == AUTHORITY * 2
    assert "longer" in (checked("x" * 300_000).fault or "")


def test_a_file_that_cannot_be_read_is_a_problem_at_its_key(tmp_path: Path) -> None:
    (tmp_path / "der.crt").write_bytes(b"\x30\x82\xff")
    for name, word in (("der.crt", "DER"), ("missing.pem", "neither"), (".", "neither")):
        found = pipeline.check(definition(name), "acct.yaml", {}, tmp_path)
        (problem,) = [each for each in found.problems if each.rule_id == "E1014"]
        assert word in problem.message
        assert problem.path == ("slurm", "accounting", "certificate")
