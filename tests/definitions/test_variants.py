"""Kinds of deployment that no shipped definition shows, from the YAML to the files: what is particular to each."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from generator import pipeline
from generator.files.file import Files
from generator.pipeline import Checked
from tests.bicep.compilers import findings_below, selected
from tests.cluster_template.rendered import Rendered, read
from tests.definitions.build import write

IDS = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups"
HTC = "{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true}"
MEASURED = "{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true, dampen_memory_percent: 5}"
VARIANTS = {
    "existing-network": f"""
network:
  access: hub
  existing:
    vnet_id: {IDS}/net-rg/providers/Microsoft.Network/virtualNetworks/corp
    subnets: {{server: mgmt, compute: nodes, lustre: lustre, netapp: anf, database: db}}
  blob_dns_zone: {IDS}/dns-rg/providers/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 500, size_tib: 4}}]
slurm:
  accounting: {{type: new}}
  partitions: [{HTC}]
""",
    "public": f"""
network: {{access: public, allowed_sources: [203.0.113.0/24, 198.51.100.7/32]}}
slurm:
  partitions: [{HTC}]
""",
    "high-availability": f"""
storage:
  home: {{type: existing, address: 10.50.9.4, export_path: /export/home}}
  sched: {{type: existing, address: 10.50.9.4, export_path: /export/sched}}
slurm:
  scheduler: {{high_availability: true, zone: "1", backup_zone: "2"}}
  partitions: [{HTC}]
""",
    "accounting-new": f"""
slurm:
  accounting: {{type: new}}
  partitions: [{HTC}]
""",
    "accounting-existing": f"""
slurm:
  accounting: {{type: existing, host: mysql.example.com, user: slurm, database: acct}}
  partitions: [{HTC}]
""",
    "monitoring": f"""
monitoring:
  workspace_id: {IDS}/monitoring/providers/Microsoft.Monitor/accounts/metrics
  ingestion_endpoint: "https://metrics-abcd.southcentralus-1.metrics.ingest.monitor.azure.com/dataCollectionRules/\\
    dcr-00000000000000000000000000000000/streams/Microsoft-PrometheusMetrics/api/v1/write?api-version=2023-04-24"
  data_collection_rule_id: {IDS}/managed/providers/Microsoft.Insights/dataCollectionRules/rule
slurm:
  partitions: [{HTC}]
""",
    "spot": """
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, default: true, spot: true,
       spot_max_price_usd_per_hour: 0.05}
    - {name: gpu, vm_size: Standard_NC24ads_A100_v4, max_nodes: 4, spot: true}
""",
    "static": f"""
slurm:
  autoscale: false
  start_cluster: true
  login: {{count: 0}}
  partitions: [{MEASURED}]
""",
    "own-image": f"""
server: {{image_id: {IDS}/images/providers/Microsoft.Compute/images/cyclecloud, data_disk_gb: 128}}
slurm:
  image: {IDS}/images/providers/Microsoft.Compute/images/node
  partitions: [{HTC}]
""",
    "projects": """
projects:
  - {name: site, path: site}
  - {name: staged, version: 2.0.1}
slurm:
  login: {extra_projects: [site]}
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 4, extra_projects: ["site:default", "staged:gpu"]}
""",
    "silence": f"""
network: {{nat_gateway: false}}
slurm:
  partitions: [{HTC}]
silence:
  - {{rule: W0321, reason: a firewall of ours routes the traffic}}
""",
    "usgov": f"""
location: usgovvirginia
azure: {{cloud: usgov}}
storage:
  mounts: [{{path: /datasets, type: blob, storage_account: datasets0001, container: data}}]
slurm:
  accounting: {{type: new}}
  partitions: [{HTC}]
""",
    "sizes": f"""
slurm:
  scheduler: {{os_disk_gb: 64}}
  partitions:
    - {HTC}
    - {{name: mpi, vm_size: Standard_HB120rs_v3, max_nodes: 150, zone: "1", os_disk_gb: 128,
       large_scale_set_approved: true}}
""",
}


@dataclass(frozen=True)
class Built:
    """One variant: its judgement, its files and its cluster read back."""

    checked: Checked
    files: Files
    cluster: Rendered

    def text(self, path: str) -> str:
        return self.files[PurePosixPath(path)].content.decode()

    @property
    def bicep(self) -> str:
        return self.text("main.bicep")

    @property
    def readme(self) -> str:
        return self.text("README.md")

    @property
    def bootstrap(self) -> dict[str, object]:
        content: dict[str, object] = json.loads(self.text("bootstrap/bootstrap.json"))
        return content


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the definitions are, with a local project beside them."""
    target = tmp_path_factory.mktemp("definitions")
    scripts = target / "site/specs/default/cluster-init/scripts"
    scripts.mkdir(parents=True)
    (target / "site/project.ini").write_text("[project]\nname = site\nversion = 1.2.3\ntype = application\n")
    (scripts / "10-hello.sh").write_text("#!/bin/bash\necho hello\n")
    return target


@cache
def built(name: str, folder: Path) -> Built:
    body = VARIANTS[name]
    start = "" if "\nlocation:" in body else "location: southcentralus\n"
    checked = pipeline.check(f"name: lab-{name}\n{start}{body}".encode(), f"{name}.yaml", {}, folder)
    assert checked.plan is not None, checked.problems
    return Built(checked, pipeline.render(checked.plan, folder), read(checked.plan))


# ---------------------------------------------------------------- every variant


@pytest.mark.parametrize("name", VARIANTS)
def test_nothing_to_complain_about(name: str, folder: Path) -> None:
    assert [problem for problem in built(name, folder).checked.problems if problem.level != "info"] == []


@pytest.fixture(scope="module")
def bicep_findings(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> dict[str, list[str]]:
    top, names = tmp_path_factory.mktemp("folders"), selected(VARIANTS, request)
    for name in names:
        write(built(name, folder).files, top / name)
    return findings_below({name: top / name / "main.bicep" for name in names})


@pytest.mark.bicep
@pytest.mark.parametrize("name", VARIANTS)
def test_bicep(name: str, bicep_findings: dict[str, list[str]]) -> None:
    assert bicep_findings[name] == []


@pytest.mark.parametrize("name", VARIANTS)
def test_the_cluster_template(name: str, folder: Path) -> None:
    cluster = built(name, folder).cluster
    # A staged project is in the locker already and not in the folder.
    assert [finding for finding in cluster.findings if "'staged:gpu:2.0.1'" not in str(finding)] == []


@pytest.mark.parametrize("name", VARIANTS)
def test_what_the_server_fills_in_has_a_source(name: str, folder: Path) -> None:
    """Facts of main.bicep, secrets of main.bicep, and what bootstrap.json asks of both."""
    one = built(name, folder)
    facts, secrets = (
        set(re.findall(r"^      ([a-zA-Z]+):", part, re.MULTILINE))
        for part in re.search(
            r"    facts: \{\n(.*?)\n    \}\n    secrets: \{\n(.*?)\n    \}", one.bicep, re.DOTALL
        ).groups()  # type: ignore[union-attr]
    )
    cluster = one.bootstrap["cluster"]
    assert isinstance(cluster, dict)
    for source in cluster["late"].values():
        kind, _, secret = source.partition(":")
        assert secret in secrets if kind == "secret" else source in facts, source
    assert set(one.bootstrap["secrets"]) == secrets  # type: ignore[call-overload]


@pytest.mark.parametrize("name", VARIANTS)
def test_outputs_and_parameters_that_the_readme_names_exist(name: str, folder: Path) -> None:
    one = built(name, folder)
    outputs = set(re.findall(r"^output (\w+) ", one.bicep, re.MULTILINE))
    assert set(re.findall(r"properties\.outputs\.(\w+)", one.readme)) <= outputs
    parameters = set(re.findall(r"^param (\w+) ", one.bicep, re.MULTILINE))
    assert set(re.findall(r"^param (\w+) ", one.text("main.bicepparam"), re.MULTILINE)) <= parameters


# ---------------------------------------------------------------- one by one


def test_an_existing_network_is_left_as_it_is(folder: Path) -> None:
    one = built("existing-network", folder)
    for module in ("network.bicep", "bastion.bicep", "peering.bicep", "private-dns-link.bicep"):
        assert f"modules/{module}" not in one.bicep
    assert "scope: resourceGroup('00000000-0000-0000-0000-000000000000', 'net-rg')" in one.bicep
    assert "subnetId: 'net-rg/corp/nodes'" in one.bicep
    assert "exportName: 'lab-existing-network-home'" in one.bicep
    assert one.cluster.values["NFSSharedExportPath"] == "/lab-existing-network-home"
    assert "az network vnet peering delete" not in one.readme
    assert "the network `corp` in `net-rg`" in one.readme


def test_a_public_server_is_open_for_the_listed_sources_only(folder: Path) -> None:
    one = built("public", folder)
    assert "publicAccess: true" in one.bicep
    assert "param allowedSources string[] = [\n  '203.0.113.0/24'\n  '198.51.100.7/32'\n]" in one.bicep
    assert one.bicep.count("allowedSources: userSources") == 1
    assert "--query publicIps" in one.readme
    assert one.cluster.values["UsePublicNetwork"] is False


def test_two_schedulers_mount_what_both_need(folder: Path) -> None:
    cluster = built("high-availability", folder).cluster
    for node, zone in (("scheduler", "1"), ("scheduler-ha", "2")):
        assert cluster.attribute(node, "Zone") == zone
        mounts = cluster.mounts(node)
        assert {options["mountpoint"] for options in mounts.values()} == {"/sched", "/shared"}
        assert {options["address"] for options in mounts.values()} == {"10.50.9.4"}
        assert cluster.volumes(node) == {}
    assert cluster.attribute("scheduler-ha", "InitialCount") == 1


def test_accounting_in_a_new_server(folder: Path) -> None:
    one = built("accounting-new", folder)
    late = one.bootstrap["cluster"]["late"]  # type: ignore[index]
    assert late["configuration_slurm_accounting_url"] == "databaseHost"
    assert late["configuration_slurm_accounting_password"] == "secret:databasePassword"
    assert "administratorLogin: 'slurmadmin'" in one.bicep
    assert one.cluster.values["configuration_slurm_accounting_user"] == "slurmadmin"
    assert f"databaseName: '{one.cluster.values['configuration_slurm_accounting_storageloc']}'" in one.bicep


def test_accounting_in_an_existing_server(folder: Path) -> None:
    one = built("accounting-existing", folder)
    assert "modules/mysql.bicep" not in one.bicep
    assert "databaseHost" not in one.bicep
    assert one.cluster.configuration("htc", "slurm.accounting.url") == "mysql.example.com"
    assert one.cluster.configuration("htc", "slurm.accounting.storageloc") == "acct"
    assert "export SLURM_DATABASE_PASSWORD=''" in one.text(".envrc.template")


def test_monitoring_gets_its_role_before_the_first_boot(folder: Path) -> None:
    one = built("monitoring", folder)
    assert "module monitoringRoles 'modules/roles-monitoring.bicep'" in one.bicep
    assert "resourceGroup('00000000-0000-0000-0000-000000000000', 'managed')" in one.bicep
    assert one.cluster.configuration("htc", "cyclecloud.monitoring.enabled") is True
    assert str(one.cluster.configuration("htc", "cyclecloud.monitoring.ingestion_endpoint")).startswith("https://")
    # Its role is deleted in the subscription of the rule, which may be another one.
    assert "az role assignment list --all --subscription 00000000-0000-0000-0000-000000000000 " in one.readme


def test_spot_nodes_and_what_they_may_cost(folder: Path) -> None:
    one = built("spot", folder)
    assert one.cluster.attribute("htc", "Interruptible") is True
    assert one.cluster.attribute("htc", "MaxPrice") == 0.05
    assert one.cluster.attribute("gpu", "MaxPrice") == -1
    assert "lowPriorityCores" in one.readme


def test_a_static_pool(folder: Path) -> None:
    one = built("static", folder)
    assert one.cluster.values["Autoscale"] is False
    assert (
        "SuspendTime=315360000" in str(one.cluster.configuration("scheduler", "slurm.additional.config")).splitlines()
    )
    assert one.cluster.attribute("login", "InitialCount") == 0
    assert one.bootstrap["cluster"]["start"] is True  # type: ignore[index]
    assert "sudo scontrol update 'nodename=lab-static-htc-[1-4]' state=power_up\n" in one.readme


def test_an_own_image_has_no_plan_and_no_terms(folder: Path) -> None:
    one = built("own-image", folder)
    assert f"imageId: '{IDS}/images/providers/Microsoft.Compute/images/cyclecloud'" in one.bicep
    assert "dataDiskGb: 128" in one.bicep
    assert "publisher:" not in one.bicep
    assert "az vm image terms" not in one.readme
    assert one.cluster.attribute("htc", "ImageName") == f"{IDS}/images/providers/Microsoft.Compute/images/node"


def test_local_projects_travel_and_staged_ones_do_not(folder: Path) -> None:
    one = built("projects", folder)
    assert "[[[cluster-init site:default:1.2.3]]]" in one.cluster.text
    assert "[[[cluster-init staged:gpu:2.0.1]]]" in one.cluster.text
    assert PurePosixPath("projects/site/specs/default/cluster-init/scripts/10-hello.sh") in one.files
    carried = {project["name"] for project in one.bootstrap["projects"]}  # type: ignore[attr-defined]
    assert carried == {"misc_ubuntu", "pyxis_enroot", "site"}


def test_a_silenced_warning_keeps_its_reason(folder: Path) -> None:
    one = built("silence", folder)
    assert one.checked.plan is not None
    assert one.checked.plan.silenced == (("W0321", "a firewall of ours routes the traffic"),)
    assert "a firewall of ours routes the traffic" in one.text("effective.yaml")
    assert "natGateway: false" in one.bicep


def test_another_cloud_has_other_names(folder: Path) -> None:
    one = built("usgov", folder)
    assert "private.mysql.database.usgovcloudapi.net" in one.bicep
    assert "az cloud set --name AzureUSGovernment" in one.readme
    endpoint = one.cluster.configuration("htc", "cycleforge.blobfuse.datasets.endpoint")
    assert endpoint == "https://datasets0001.blob.core.usgovcloudapi.net"
    for path, file in one.files.items():
        if path.parts[0] in ("cluster", "main.bicep", "main.bicepparam"):
            assert b"core.windows.net" not in file.content, path


def test_sizes_reach_the_nodes(folder: Path) -> None:
    cluster = built("sizes", folder).cluster
    assert cluster.attribute("mpi", "Azure.MaxScalesetSize") == 150
    assert cluster.configuration("mpi", "slurm.hpc") is True
    assert cluster.attribute("mpi", "Zone") in ("1", ["1"])
    assert cluster.attribute("htc", "Zone") is None
    assert cluster.configuration("htc", "slurm.hpc") is False


def test_a_key_that_was_set_at_build_is_not_asked_for_again(folder: Path) -> None:
    """The folder holds it; the environment template says so instead of asking for it."""
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPZ8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8y8d8 me"
    body = VARIANTS["public"].replace("slurm:", "admin: {ssh_public_key: '${LAB_KEY}'}\nslurm:")
    definition = f"name: lab\nlocation: southcentralus\n{body}".encode()
    for environment, line in (({}, "\nexport LAB_KEY=''\n"), ({"LAB_KEY": key}, "\n# export LAB_KEY=''\n")):
        plan = pipeline.check(definition, "lab.yaml", environment, folder).plan
        assert plan is not None
        files = pipeline.render(plan, folder)
        assert line in files[PurePosixPath(".envrc.template")].content.decode()
        asks = "LAB_KEY" in files[PurePosixPath("main.bicepparam")].content.decode()
        assert asks is not environment.get("LAB_KEY", "").startswith("ssh-")
