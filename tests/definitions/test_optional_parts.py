"""Deployment folders without a cluster, and beside an existing server: whole, and what must not be in them."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
from syrupy.assertion import SnapshotAssertion

from generator import pipeline
from generator.operate.locker import Locker, destinations
from generator.pipeline import Checked
from tests.bed.plans import plan_from
from tests.bed.yaml_data import yaml_data
from tests.bicep.compilers import findings_below
from tests.definitions.build import write
from tests.definitions.folder_text import Folder, whole
from tests.definitions.optional_parts import SECOND_CLUSTER, SERVER, TEXTS, plan_of, rendered
from tests.definitions.test_folders import SHELLCHECK
from tests.definitions.test_snapshots import TextFile

every_form = pytest.mark.parametrize("name", TEXTS)
OF_A_SERVER = {"server", "server-bootstrap", "payload", "jumpbox", "bastion", "locker", "private-endpoint"}
ROLES_OF_A_NEW_SERVER = {"roles", "roles-subscription", "roles-network"}


def text(name: str, path: str) -> str:
    return rendered(name)[PurePosixPath(path)].content.decode()


def modules(name: str) -> set[str]:
    return {path.stem for path in rendered(name) if path.parts[0] == "modules"}


@every_form
def test_whole_folder(name: str, snapshot: SnapshotAssertion) -> None:
    assert whole(Folder(plan_of(name), rendered(name))) == snapshot(extension_class=TextFile)


@every_form
@pytest.mark.bicep
def test_the_checker_finds_nothing(name: str, bicep_findings: dict[str, list[str]]) -> None:
    assert bicep_findings[name] == []


EVERY_FILE_SYSTEM = {
    "nothing": "",
    "created": "home: {type: anf, size_tib: 4}, mounts: [{path: /data, type: amlfs, tier: 250, size_tib: 128}]",
    "volumes": "sched: {type: anf, size_tib: 1}, mounts: [{path: /data, type: anf, size_tib: 4}]",
    "someone_elses": (
        "home: {type: existing, address: 10.0.0.4, export_path: /home}, "
        "mounts: [{path: /models, type: blob, storage_account: datasets0001, container: models}]"
    ),
}
_SHARED = "{vnet_id: /subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/net-rg/providers/"
_SHARED += "Microsoft.Network/virtualNetworks/vnet, "
_SUBNETS = "server: server, compute: compute, netapp: netapp, lustre: lustre, database: database"
EVERY_WAY_IN = {
    "bastion": "{access: bastion}",
    "hub": f"{{access: hub, hub: {_SHARED}use_remote_gateway: true}}}}",
    "asked_hub": '{access: hub, hub: {vnet_id: "${HUB_VNET_ID}"}}',
    "public": "{access: public, allowed_sources: [198.51.100.7/32]}",
    "existing_bastion": f"{{existing: {_SHARED}subnets: {{{_SUBNETS}}}}}}}",
    "existing_hub": f"{{access: hub, existing: {_SHARED}subnets: {{{_SUBNETS}}}}}}}",
    "existing_public": f"{{access: public, existing: {_SHARED}subnets: {{{_SUBNETS}}}}}}}",
}
WAYS_TO_AN_EXISTING_SERVER = ("hub", "asked_hub", "existing_bastion", "existing_hub", "existing_public")


ALONE = (*((way, "created") for way in EVERY_WAY_IN), ("bastion", "nothing"), ("bastion", "volumes"))


def alone(way: str, storage: str) -> str:
    """Infrastructure alone, with this way in and these file systems."""
    network = EVERY_WAY_IN[way]
    if way == "existing_public":
        network = network.replace("access: public,", "access: public, allowed_sources: [198.51.100.7/32],")
    return _definition(f"network: {network}", f"storage: {{{EVERY_FILE_SYSTEM[storage]}}}")


CLUSTERS = {
    "cluster": "slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 4}]}",
    "accounting": (
        "slurm: {accounting: {type: new}, partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 4}]}"
    ),
    "none": "jobs: {}",
}
BESIDE = (
    *((way, "created", "cluster") for way in WAYS_TO_AN_EXISTING_SERVER),
    *(("existing_bastion", storage, "cluster") for storage in ("nothing", "volumes", "someone_elses")),
    *((way, "created", cluster) for way in ("hub", "existing_hub") for cluster in ("accounting", "none")),
)


def beside(way: str, storage: str, cluster: str) -> str:
    """An existing server, with this way in, these file systems and this cluster."""
    network = EVERY_WAY_IN[way].replace("server: server, ", "")
    return _definition(SERVER, f"network: {network}", f"storage: {{{EVERY_FILE_SYSTEM[storage]}}}", CLUSTERS[cluster])


def _definition(*parts: str) -> str:
    return "\n".join(("name: tried", "location: southcentralus", *parts))


@cache
def tried(text: str) -> Checked:
    return pipeline.check(text.encode(), "tried.yaml", {}, Path())


@pytest.fixture(scope="module")
def bicep_findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What is found in the deployment of each form by its name, of each other definition by its text."""
    top = tmp_path_factory.mktemp("folders")
    folders = {name: rendered(name) for name in TEXTS}
    for text in (*(alone(*case) for case in ALONE), *(beside(*case) for case in BESIDE)):
        if plan := tried(text).plan:
            folders[text] = pipeline.render(plan, Path())
    mains = {}
    for number, (name, files) in enumerate(folders.items()):
        write(files, top / str(number))
        mains[name] = top / str(number) / "main.bicep"
    return findings_below(mains)


@pytest.mark.bicep
@pytest.mark.parametrize(("way", "storage"), ALONE)
def test_infrastructure_alone_compiles(way: str, storage: str, bicep_findings: dict[str, list[str]]) -> None:
    _compiles(alone(way, storage), bicep_findings)


@pytest.mark.bicep
@pytest.mark.parametrize(("way", "storage", "cluster"), BESIDE)
def test_an_existing_server_compiles(
    way: str, storage: str, cluster: str, bicep_findings: dict[str, list[str]]
) -> None:
    _compiles(beside(way, storage, cluster), bicep_findings)


def _compiles(text: str, bicep_findings: dict[str, list[str]]) -> None:
    assert tried(text).plan is not None, [problem.message for problem in tried(text).problems]
    assert bicep_findings[text] == []


def test_the_cluster_names_the_account_and_the_locker_of_the_existing_server() -> None:
    plan = plan_from("server: {existing: {account: prod}}", base=SECOND_CLUSTER)
    files = pipeline.render(plan, Path())
    assert b"Locker = prod-storage" in files[PurePosixPath("cluster/second.txt")].content
    assert json.loads(files[PurePosixPath("cluster/second.params.json")].content)["Credentials"] == "prod"
    assert b"cyclecloud project upload prod-storage" in files[PurePosixPath("README.md")].content


def test_folders_hold_what_there_is() -> None:
    always = {
        ".gitignore",
        "firewall-rules.json",
        "ssh_config",
        "ssh_hosts",
        "main.bicep",
        "main.bicepparam",
        "modules",
        "effective.yaml",
        "manifest.json",
        "README.md",
        "operations.md",
        ".envrc.template",
    }
    top = {name: {path.parts[0] for path in rendered(name)} for name in TEXTS}
    assert top["infrastructure"] == always | {"bootstrap"}
    assert top["second"] == always | {"cluster", "projects", "jobs"}
    assert top["storage"] == always


@every_form
def test_the_manifest_is_complete(name: str) -> None:
    listed = json.loads(text(name, "manifest.json"))["files"]
    assert set(listed) == {str(path) for path in rendered(name)} - {"manifest.json"}


@pytest.mark.parametrize("name", ["second", "storage"])
def test_nothing_of_a_server_is_created(name: str) -> None:
    assert not modules(name) & (OF_A_SERVER | ROLES_OF_A_NEW_SERVER)
    bicep = "".join(file.content.decode() for path, file in rendered(name).items() if path.suffix == ".bicep")
    for kind in ("Compute/virtualMachines", "Compute/disks", "Network/networkInterfaces", "Network/privateEndpoints"):
        assert f"'Microsoft.{kind}" not in bicep
    for word in ("adminPassword", "sshPublicKey", "bootstrapRun", "serverKey", "customData"):
        assert not re.search(rf"\b{word}\b", bicep)


def test_no_password_of_an_existing_database_is_asked_for() -> None:
    """Nothing of the deployment needs it: it is entered in the portal."""
    assert plan_of("second").secrets == ()
    assert "databasePassword" not in text("second", "main.bicep")
    assert "The password of the accounting database is in no file" in text("second", "README.md")


def test_roles_follow_what_the_definition_allows() -> None:
    assert {name for name in modules("second") if name.startswith("roles")} == {"roles-locker"}
    assert {name for name in modules("storage") if name.startswith("roles")} == {"roles-server"}


def test_only_identities_of_the_deployment_lose_their_roles() -> None:
    """The existing server keeps its own, whatever else they are for."""
    second, infrastructure = (
        text(name, "README.md").split("\n## Delete\n")[1] for name in ("second", "infrastructure")
    )
    assert "--query identity.principalId" not in second + text("second", "operations.md")
    assert "--query identity.principalId" in infrastructure
    assert "serverPrincipalId" not in text("second", "README.md") + text("second", "main.bicep")


def test_the_server_is_told_that_there_is_no_cluster() -> None:
    configuration = json.loads(text("infrastructure", "bootstrap/bootstrap.json"))
    assert configuration["cluster"] is None
    assert configuration["slurmProject"] is None
    assert configuration["projects"] == []


@every_form
def test_effective_yaml_says_what_there_is_not(name: str) -> None:
    derived = yaml_data(text(name, "effective.yaml"))["derived"]
    plan = plan_of(name)
    assert (derived["server"] is None) == (plan.server is None)
    assert (derived["existing_server"] is None) == (plan.existing_server is None)
    assert (derived["slurm"] is None) == (plan.slurm is None)
    assert (plan.server is None) != (plan.existing_server is None)


@every_form
def test_the_readme_speaks_of_nothing_that_is_not_there(name: str) -> None:
    readme, plan = text(name, "README.md"), plan_of(name)
    headings = re.findall(r"^## (.+)$", readme, re.MULTILINE)
    of_a_cluster = {"Start the cluster", "Validate", "Train"}
    assert of_a_cluster <= set(headings) if plan.slurm else not of_a_cluster & set(headings)
    assert ("Import the cluster" in headings) == (plan.slurm is not None and plan.existing_server is not None)
    assert ("first boot" in readme) == (plan.server is not None)
    assert ("az vm image terms" in readme) == (plan.server is not None)
    assert ("source .envrc" in readme) == bool(plan.variables)
    assert "None" not in readme
    assert "\n\n\n" not in readme


@every_form
def test_the_commands_are_valid_shell(name: str) -> None:
    """One script of all blocks, because later blocks use names that earlier ones set."""
    script = "#!/usr/bin/env bash\n" + "\n".join(re.findall(r"```bash\n(.*?)```", text(name, "README.md"), re.DOTALL))
    command = [str(SHELLCHECK), "-e", "SC2164,SC1091,SC2103", "-"]
    done = subprocess.run(command, input=script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_readme_says_what_must_be_there() -> None:
    readme = text("second", "README.md")
    assert "with cyclecloud-slurm 4.0.9" in readme
    for needed in (
        "Virtual Machine Contributor",
        "`azure-storage` in CycleCloud: container `cyclecloud` of `firstlocker0001`",
        "nodes reach the server on ports 443 and 9443",
        "webServerHostname",
        "cyclecloud account show azure",
        "cyclecloud locker list",
    ):
        assert needed in readme
    assert "`SubnetId` from `computeSubnet`" in text("infrastructure", "README.md")


def test_upload_goes_into_the_locker_of_the_existing_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CYCLEFORGE_LOCKER", raising=False)
    path = tmp_path / "second.yaml"
    path.write_text(SECOND_CLUSTER)
    (target,) = destinations([str(path)], Locker())
    assert str(target.address) == "az://firstlocker0001/cyclecloud"
    assert [package.project.name for package in target.packages] == ["misc_ubuntu", "pyxis_enroot"]


def test_what_keeps_no_data_has_no_list_of_it() -> None:
    kept = "It keeps:\n\n* "
    assert plan_of("second").cleanup.data == ()
    assert "It keeps" not in text("second", "operations.md")
    assert "Nothing that this deployment creates keeps data without the cluster" in text("second", "operations.md")
    assert kept in text("infrastructure", "operations.md")
    assert kept in text("storage", "operations.md")


def test_the_readme_imports_what_the_deployment_knows() -> None:
    readme = text("second", "README.md")
    asked = "--query properties.outputs.clusterParameters.value --output json >second.deployed.json"
    commands = (
        "cyclecloud project upload azure-storage",
        "cycleforge upload second",
        asked,
        "cyclecloud show_cluster second",
        "cyclecloud import_cluster second -c second -f second.txt -p second.deployed.json",
        "cyclecloud start_cluster second",
    )
    places = [readme.index(command) for command in commands[1:]]
    assert commands[0] in readme
    assert places[0] < places[1] < places[3] < places[4]
    values = json.loads(text("second", "cluster/second.params.json"))
    output = text("second", "main.bicep").split("output clusterParameters")[1]
    for name in ("SubnetId", "ManagedIdentity", "configuration_identity_client_id"):
        assert values[name] is None
        assert f"\n  {name}: " in output
