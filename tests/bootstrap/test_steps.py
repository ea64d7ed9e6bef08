"""The program on a server whose parts fail: what passes on its own, and what must be said when it does not."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from generator.azure.first_boot import of_console
from generator.plan.asked import Asked
from tests.bed.plans import plan_from, server_of
from tests.bed.server.harness import ADMIN_PASSWORD, DATABASE_PASSWORD, TIME_SCALE, plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from generator.plan.deployment import Plan
    from tests.bed.server.harness import Server


def run(server: Server, code: int = 0, **limits: Any) -> dict[str, Any]:
    server.unpack(**limits)
    result = server.run()
    assert result.returncode == code, result.stdout + result.stderr
    return server.status()


def test_everything_is_set_up(server: Server) -> None:
    document = run(server)
    assert document["state"] == "succeeded"
    assert document["schema"] == 1
    assert [step["state"] for step in document["steps"]] == ["done"] * len(document["steps"])
    site = server.site
    assert site.accounts.passwords == {"ccadmin": ADMIN_PASSWORD}
    assert site.settings["cycleserver.installation.complete"] is True
    assert site.settings["cycleserver.installation.initial_user"] == "ccadmin"
    assert site.keys["ccadmin/public"].startswith("ssh-ed25519 AAAA")
    assert site.account is not None
    assert site.account["LockerAuthMode"] == "ManagedIdentity"
    assert site.account["LockerIdentity"] == server.facts["lockerIdentityId"]
    assert site.account["Environment"] == "public"
    assert site.account["ProviderId"] == server.facts["subscriptionId"]
    assert site.account["AcceptMarketplaceTerms"] is False
    assert site.templates.keys() == {"minimal-template"}
    parameters = site.clusters["minimal"]["parameters"]
    assert parameters["configuration_slurm_accounting_password"] == DATABASE_PASSWORD
    assert parameters["NFSAddress"] == "10.50.0.9"
    assert parameters["SchedulerMachineType"] == "Standard_D4as_v5"
    assert "projects/pyxis_enroot/blobs/enroot.tar" in site.blobs
    assert not server.called("jetpack")
    assert not server.called("cyclecloud start_cluster")
    # The web server has its ports.
    lines = (server.root / "opt/cycle_server/config/cycle_server.properties").read_text().splitlines()
    assert {
        "webServerPort=80",
        "webServerSslPort=443",
        "webServerClusterPort=9443",
        "webServerEnableHttps=true",
    } <= set(lines)
    assert "webServerJvmOptions=-Dx=y=z" in lines
    assert "webServerMaxHeapSize=2048M" in lines, "the definition names no heap"
    assert len(lines) == len({line.split("=")[0] for line in lines})


def unregistered() -> Plan:
    """Nobody but a policy registers the locker's endpoint."""
    the_plan = plan()
    return replace(the_plan, network=replace(the_plan.network, blob_dns_zone="none"))


def test_the_locker_is_not_used_before_someone_has_registered_its_name(make_server: Callable[..., Server]) -> None:
    """Its public address refuses everyone: learn.microsoft.com/azure/storage/common/storage-network-security."""
    server = make_server(unregistered())
    getent = server.bin / "getent"
    getent.write_text("#!/bin/sh\necho '20.60.1.2 STREAM minimalabc.blob.core.windows.net'\n")
    getent.chmod(0o755)
    server.site.faults.list_refused = 3
    document = run(server)
    names = [step["name"] for step in document["steps"]]
    assert names[names.index("identity") + 1 : names.index("account")] == ["locker-name"]
    assert server.step("locker-name")["attempts"] == 4
    assert "20.60.1.2 on this server" in (server.root / "var/log/cycleforge/bootstrap.log").read_text()


def test_a_locker_that_nobody_registers_is_named_with_its_address(make_server: Callable[..., Server]) -> None:
    server = make_server(unregistered())
    getent = server.bin / "getent"
    getent.write_text("#!/bin/sh\nexit 2\n")
    getent.chmod(0o755)
    server.site.faults.list_refused = 10**6
    document = run(server, code=1, lockerNameSeconds=90)
    assert "does not resolve on this server" in document["message"]
    assert "blob_dns_zone: none" in document["hint"]
    assert server.site.account is None


def test_the_proxy_reaches_cyclecloud_and_its_cli(server: Server) -> None:
    """As azure-docs articles/cyclecloud/how-to/running-behind-proxy.md says; options of others stay."""
    server.facts["proxyUrl"] = "http://10.0.1.5:3128"
    server.facts["noProxy"] = "localhost,127.0.0.1,169.254.169.254,.blob.core.windows.net,10.50.0.0/20"
    run(server)
    lines = (server.root / "opt/cycle_server/config/cycle_server.properties").read_text().splitlines()
    (options,) = [line.split("=", 1)[1].split() for line in lines if line.startswith("webServerJvmOptions=")]
    assert options == [
        "-Dx=y=z",
        *("-Dhttp.proxyHost=10.0.1.5", "-Dhttp.proxyPort=3128", "-Dhttps.proxyHost=10.0.1.5", "-Dhttps.proxyPort=3128"),
        '-Dhttp.nonProxyHosts="localhost|127.0.0.1|169.254.169.254|*.blob.core.windows.net"',
    ]
    environments = [call["environment"] for call in server.site.calls if call["name"] == "cyclecloud"]
    assert environments
    for text in environments:
        variables = dict(line.split("=", 1) for line in text.split("\0") if "=" in line)
        assert variables["HTTPS_PROXY"] == variables["https_proxy"] == "http://10.0.1.5:3128"
        assert variables["no_proxy"] == server.facts["noProxy"]


def test_heap_pinned_project_start_and_asked_key(make_server: Callable[..., Server]) -> None:
    the_plan = plan(pin_project=True, start_cluster=True)
    the_plan = replace(
        the_plan,
        server=replace(server_of(the_plan), java_heap_mb=8192),
        admin=replace(the_plan.admin, ssh_public_key=Asked("KEY", "sshPublicKey", "Key.")),
    )
    server = make_server(the_plan)
    server.facts["cloud"] = "AzureUSGovernment"
    server.site.faults.scheduler_polls = 2
    run(server)
    site = server.site
    assert site.known_projects == [
        {"AdType": "Cloud.Project", "Version": "4.0.9", "ProjectType": "scheduler", "AutoUpgrade": False,
         "Url": "https://github.com/Azure/cyclecloud-slurm/releases/4.0.9", "Name": "slurm"}
    ]  # fmt: skip
    assert site.account is not None
    assert site.account["Environment"] == "usgov"
    assert site.keys["ccadmin/public"] == "ssh-ed25519 FROM-THE-VM"
    assert site.clusters["minimal"]["started"] is True
    assert server.step("scheduler")["attempts"] == 2
    assert "webServerMaxHeapSize=8192M" in (server.root / "opt/cycle_server/config/cycle_server.properties").read_text()


def test_key_of_the_deployment_comes_before_that_of_the_vm(make_server: Callable[..., Server]) -> None:
    the_plan = plan()
    server = make_server(replace(the_plan, admin=replace(the_plan.admin, ssh_public_key=Asked("K", "k", ""))))
    server.facts["sshPublicKey"] = "ssh-ed25519 GIVEN"
    run(server)
    assert server.site.keys["ccadmin/public"] == "ssh-ed25519 GIVEN"


# ---------------------------------------------------------------- failures that pass


def test_slow_start_late_role_and_lost_records(server: Server) -> None:
    faults = server.site.faults
    faults.slow_start = 3
    faults.no_token = 2
    faults.account_refused = 1
    faults.account_silent = 1
    document = run(server)
    assert document["state"] == "succeeded"
    assert server.step("startup")["attempts"] >= 2
    assert server.step("identity")["attempts"] == 3
    assert server.step("account")["attempts"] == 3


def test_uploads_that_fail_once_or_lie(server: Server) -> None:
    faults = server.site.faults
    faults.upload_fails = {"pyxis_enroot": 1}
    faults.manifest_missing = 1
    faults.file_missing = 1
    faults.list_refused = 2
    faults.list_page = 1
    run(server)
    # refused twice, then no manifest and one file short, then well
    assert server.step("project-misc_ubuntu")["attempts"] == 4
    assert server.step("project-pyxis_enroot")["attempts"] == 2
    assert len([name for name in server.site.blobs if name.endswith("manifest.json")]) == 2


def test_a_listed_blob_that_did_not_travel_is_named(server: Server) -> None:
    server.unpack()
    (server.root / "opt/cycleforge" / server.facts["payloadSha256"] / "projects/pyxis_enroot/blobs/enroot.tar").unlink()
    assert server.run().returncode == 1
    step = server.step("project-pyxis_enroot")
    assert (step["state"], step["attempts"]) == ("failed", 1)
    assert "lists the blob 'enroot.tar', which is not part of the deployment" in json.dumps(server.status())
    assert not [name for name in server.site.blobs if name.startswith("projects/pyxis_enroot/")]


def test_cluster_import_that_is_refused_or_does_nothing(server: Server) -> None:
    server.site.faults.cluster_refused = 1
    server.site.faults.import_silent = 1
    server.site.faults.machine_types_late = 2
    run(server)
    assert server.step("cluster")["attempts"] == 3
    assert "--force" not in server.called("cyclecloud import_cluster")[-1]
    assert len(server.called("cycle_server run_action Run:Application.Timer")) == 1


def test_records_that_are_imported_late(server: Server) -> None:
    server.site.faults.ignored_records = 1
    run(server)
    assert server.step("admin")["attempts"] == 2
    assert not list((server.root / "opt/cycle_server/config/data").iterdir())


def test_locker_is_asked_for_again_but_not_too_often(server: Server) -> None:
    server.site.faults.locker_retries = 2
    run(server)
    asked = server.site.locker_asked
    assert len(asked) == 2
    assert asked[1] - asked[0] >= 120 * TIME_SCALE * 0.95


def test_upload_that_hangs_gets_a_terminal(server: Server) -> None:
    server.site.faults.upload_hangs_without_terminal = True
    run(server, uploadSeconds=50)
    uploads = [call for call in server.site.calls if call["argv"][:2] == ["project", "upload"]]
    assert [call["terminal"] for call in uploads] == [False, True, False, True]


def test_upload_without_checksums_is_trusted_only_if_it_was_ours(server: Server) -> None:
    server.site.faults.checksums = False
    run(server)
    assert len(server.called("cyclecloud project upload")) == 2
    server.forget_result()
    (server.root / "var/lib/cycleforge/state.json").unlink()
    run(server)
    assert len(server.called("cyclecloud project upload")) == 4


# ---------------------------------------------------------------- failures that stay

ALWAYS = 10**6


@pytest.mark.parametrize(
    ("faults", "step", "message", "hint"),
    [
        ({"slow_start": ALWAYS}, "startup", r"did not start in time .*gave up after 60 s", "cycle_server.log"),
        ({"no_import": ALWAYS}, "admin", r"did not import .*cycleforge_admin.json", "cycle_server.log"),
        ({"no_token": ALWAYS}, "identity", r"no token \(HTTP 400\): .*Identity not found", "system-assigned"),
        ({"account_refused": ALWAYS}, "account", r"AuthorizationFailed", "role assignment"),
        ({"account_silent": ALWAYS}, "account", r"not reached", "role assignment"),
        ({"locker_retries": ALWAYS}, "locker", r"locker 'azure-storage' is 'Error' Staging resources", "role"),
        ({"upload_fails": {"pyxis_enroot": ALWAYS}}, "project-pyxis_enroot", r"pyxis_enroot/1.0.0.*azcopy failed", ""),
        ({"manifest_missing": ALWAYS}, "project-misc_ubuntu", r"lacks projects/misc_ubuntu/1.0.0/manifest.json", ""),
        ({"file_missing": ALWAYS}, "project-misc_ubuntu", r"lacks .*/20-more & more.sh", ""),
        ({"list_refused": ALWAYS}, "project-misc_ubuntu", r"refused \(HTTP 403\)", "Storage Blob Data Contributor"),
        ({"cluster_refused": ALWAYS}, "cluster", r"Parameter UsePublicNet is not known", ""),
        ({"import_silent": ALWAYS}, "cluster", r"succeeded, but there is no cluster 'minimal'", ""),
    ],
)  # fmt: skip
def test_failure_is_bounded_and_readable(
    server: Server, faults: dict[str, Any], step: str, message: str, hint: str
) -> None:
    for name, value in faults.items():
        setattr(server.site.faults, name, value)
    limit = 200 if step == "admin" else 60
    document = run(server, code=1, steps={step: limit})
    assert document["state"] == "failed"
    assert document["step"] == step
    assert server.step(step)["state"] == "failed"
    assert re.search(message, document["message"]), document["message"]
    assert hint in document["hint"]
    names = [entry["name"] for entry in document["steps"]]
    after = [entry["state"] for entry in document["steps"][names.index(step) + 1 :]]
    assert set(after) <= {"pending"}
    shown = server.launch("status")
    assert shown.returncode == 1
    assert f"error: step '{step}': " in shown.stdout


def test_image_without_cyclecloud(server: Server) -> None:
    (server.root / "opt/cycle_server/cycle_server").unlink()
    document = run(server, code=1, steps={"installed": 20})
    assert document["step"] == "installed"
    assert "must contain CycleCloud" in document["hint"]


def test_whole_bootstrap_is_bounded(server: Server) -> None:
    server.site.faults.slow_start = ALWAYS
    document = run(server, code=1, totalSeconds=50)
    assert "the whole bootstrap ran out of time" in document["message"]


def test_password_that_was_changed_in_the_portal(server: Server) -> None:
    run(server)
    server.site.accounts.passwords["ccadmin"] = "another one"
    server.forget_result()
    document = run(server, code=1)
    assert document["step"] == "login"
    assert "does not accept the administrator's password" in document["message"]
    assert server.step("login")["attempts"] == 3, "a record may become effective late, but nothing is guessed"
    assert not server.called("cyclecloud initialize")[1:], "the CLI is not asked with a password that the site refuses"


def test_retry_asks_for_what_was_removed(server: Server) -> None:
    admin, database = "Retried-12 \\'$(x)", "retried-12$(x);!"
    server.secrets = {"adminPassword": admin, "databasePassword": database}
    server.site.faults.upload_fails = {"pyxis_enroot": ALWAYS}
    run(server, code=1, steps={"project-pyxis_enroot": 60})
    assert not (server.root / "var/lib/cycleforge/secrets.json").exists()
    again = server.run()
    assert again.returncode == 1, "a boot does not try again without secrets"
    assert "azcopy failed" in again.stdout, "and the reason stays"
    server.site.faults.upload_fails = {}
    answer = server.launch("retry", give=f"secretsecret\n{admin}\nAbc#def-12345\n{database}\n")
    assert answer.returncode == 0, answer.stderr
    assert "It must have lower case, upper case, digits and symbols (these count: @#$" in answer.stderr
    assert "It must have no space, #, backslash or quote." in answer.stderr
    assert "secretsecret" not in answer.stderr + answer.stdout
    status = server.root / "var/lib/cycleforge/status.json"
    while not status.exists() or server.status()["state"] == "running":
        time.sleep(0.05)
    assert server.status()["state"] == "succeeded", server.status()
    assert server.launch("status").returncode == 0
    assert server.site.clusters["minimal"]["parameters"]["configuration_slurm_accounting_password"] == database


def test_secret_that_is_gone(server: Server) -> None:
    server.unpack()
    (server.root / "var/lib/cycleforge/secrets.json").unlink()
    assert server.run().returncode == 1
    assert "cycleforge-bootstrap retry" in server.status()["hint"]


def test_missing_fact_is_named(server: Server) -> None:
    del server.facts["homeAddress"]
    document = run(server, code=1)
    assert document["step"] == "cluster"
    assert "fact 'homeAddress'" in document["message"]


def test_unknown_cloud(server: Server) -> None:
    server.facts["cloud"] = "AzureMoonCloud"
    assert "AzureMoonCloud" in run(server, code=1)["message"]


def test_machine_types_that_never_come_are_a_warning(server: Server) -> None:
    server.site.faults.machine_types_late = ALWAYS
    document = run(server, steps={"machine-types": 40})
    assert document["state"] == "succeeded"
    assert "Standard_D64ds_v5 of htc" in document["warnings"][0]
    assert "quota" in document["warnings"][0]
    assert "warning: VM sizes of the cluster" in server.launch("status").stdout


def test_scheduler_that_fails(make_server: Callable[..., Server]) -> None:
    server = make_server(plan(start_cluster=True))
    server.site.faults.scheduler_fails = True
    document = run(server, code=1)
    assert document["step"] == "scheduler"
    assert "the scheduler is 'Failed'" in document["message"]
    assert server.step("scheduler")["attempts"] == 3


def test_scheduler_that_is_slow_is_a_warning(make_server: Callable[..., Server]) -> None:
    server = make_server(plan(start_cluster=True))
    server.site.faults.scheduler_polls = ALWAYS
    document = run(server, steps={"scheduler": 40})
    assert document["state"] == "succeeded"
    assert "'Preparing'" in document["warnings"][0]


@pytest.mark.parametrize("content", ["", "[]", "{", None])
def test_broken_facts(server: Server, content: str | None) -> None:
    server.unpack()
    path = server.root / "var/lib/cycleforge/facts.json"
    path.unlink() if content is None else path.write_text(content)
    assert server.run().returncode == 1
    assert "facts.json" in server.status()["message"]


def test_wrong_use(server: Server) -> None:
    server.unpack()
    assert server.launch("status").returncode == 3
    result = server.launch("walk")
    assert result.returncode == 2
    assert "usage:" in result.stderr


def test_disk_that_is_full_for_a_while(server: Server) -> None:
    """An error of the file system is a reason, not a defect of the program."""
    (server.root / "opt/cycle_server/config/data").rmdir()
    document = run(server, code=1, steps={"admin": 20})
    assert document["step"] == "admin"
    assert "No such file or directory" in document["message"]
    assert "defect" not in document["hint"]


def test_a_deployment_without_a_cluster_imports_none(make_server: Callable[..., Server]) -> None:
    server = make_server(plan_from("{slurm: null, jobs: null}"), {})
    document = run(server)
    assert document["state"] == "succeeded"
    assert document["cluster"] is None
    assert [step["name"] for step in document["steps"]][-3:] == ["locker", "independent", "fingerprints"]
    assert server.site.clusters == {}
    assert server.site.templates == {}


def test_the_console_gets_a_line_a_step(server: Server) -> None:
    console = server.root / "dev/console"
    console.parent.mkdir(exist_ok=True)
    console.write_text("minimal-server login: ")
    steps = run(server)["steps"]
    text = console.read_text()
    assert [(each.title, each.state) for each in of_console(text, 0)] == [(each["title"], "done") for each in steps]
    assert len(text.splitlines()) == 2 * len(steps)
    assert ADMIN_PASSWORD not in text
    assert not of_console(text, time.time() + 3600), "an older run"
