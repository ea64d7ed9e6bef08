"""Real ssh, scp, sftp and rsync through the rendered `ssh_config` and the real `cycleforge connect --stdio`.

The three kinds of access, each with a deployment of its own, at the same time: all have nodes of the same names.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from generator.plan.parameters import SECRETS
from tests.bed.arm import running_arm
from tests.bed.ssh.deployed import NET, Deployed, User, a_user
from tests.bed.ssh.host import children_of, new_key
from tests.connect.kinds import EXISTING, KINDS, gone

BYTES = bytes(range(256)) * 3000


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[User]:
    folder = tmp_path_factory.mktemp("connect")
    with running_arm(tmp_path_factory.mktemp("arm")) as arm, a_user(folder / "user", arm) as made:
        for name, change in KINDS.items():
            made.deploy(name, change)
        yield made


@pytest.fixture(params=KINDS)
def deployed(user: User, request: pytest.FixtureRequest) -> Iterator[Deployed]:
    yield user.by_name[request.param]
    assert gone(user)
    assert user.arm.changes == []


def config(deployed: Deployed) -> list[str]:
    """What every program is given."""
    return ["-F", f"output/{deployed.plan.name}/ssh_config"]


def name_of(deployed: Deployed) -> str:
    """What the commands take."""
    return deployed.plan.definition_name


# ------------------------------------------------------------ the programs of the user


def test_ssh_to_server_and_through_it(user: User, deployed: Deployed) -> None:
    """The first contact asks nothing: the server's key is the one that the deployment has noted."""
    script = "printf '%s ' \"$HOSTNAME\"; cat"
    server = user.types("ssh", *config(deployed), "server", script, given=BYTES)
    assert (server.returncode, server.stderr) == (0, b"")
    assert server.stdout == f"{deployed.plan.name}-server ".encode() + BYTES
    known = (user.home / ".ssh" / f"cycleforge-{deployed.plan.name}.known_hosts").read_text()
    assert known == f"cycleforge-{deployed.plan.name}-server {deployed.server.host_key}\n"
    behind = user.types("ssh", *config(deployed), "scheduler", f"{script}; exit 7", given=BYTES)
    assert (behind.returncode, behind.stderr) == (7, b"")
    assert behind.stdout == f"{deployed.plan.name}-scheduler ".encode() + BYTES


def test_files_by_scp_sftp_and_rsync(user: User, deployed: Deployed) -> None:
    (user.here / "a file").write_bytes(BYTES)
    options = config(deployed)
    home = deployed.scheduler.home
    assert user.types("scp", *options, "a file", "scheduler:by scp").returncode == 0
    assert (home / "by scp").read_bytes() == BYTES
    batch = b"put 'a file' 'by sftp'\nget 'by sftp' back\n"
    sftp = user.types("sftp", *options, "-b", "-", "lab-htc-1", given=batch)
    assert sftp.returncode == 0, sftp.stderr
    assert (user.here / "back").read_bytes() == BYTES
    shell = f"ssh {' '.join(options)}"
    rsync = user.types("rsync", "-a", "-e", shell, "a file", f"{deployed.plan.name}-scheduler:by-rsync")
    assert rsync.returncode == 0, rsync.stderr
    assert (home / "by-rsync").read_bytes() == BYTES


@pytest.mark.parametrize(
    ("deployed", "programs"), [("bypublic", "ssh ssh"), ("bybastion", "ssh ssh az")], indirect=["deployed"]
)
def test_the_verb(user: User, deployed: Deployed, programs: str, tmp_path: Path) -> None:
    ran = user.types(
        "cycleforge", "connect", name_of(deployed), "scheduler", "--", "echo", "$HOSTNAME;", "exit", "9",
        environment=user.with_secrets(tmp_path),
    )  # fmt: skip
    given = (tmp_path / "given").read_text()
    assert [line for line in given.splitlines() if line in ("ssh", "az")] == programs.split()
    assert not any(secret in given for secret in SECRETS)
    assert (ran.returncode, ran.stdout) == (9, f"{deployed.plan.name}-scheduler\n".encode()), ran.stderr


@pytest.mark.parametrize("deployed", ["byhub", "bybastion"], indirect=True)
def test_from_anywhere(user: User, deployed: Deployed) -> None:
    """`Include`d in the user's own file, all deployments beside each other, as VS Code uses it."""
    assert user.types("cycleforge", "connect", name_of(deployed), "--", "true").returncode == 0
    included = "".join(f"Include {user.here}/output/{name}/ssh_hosts\n" for name in KINDS)
    (user.home / ".ssh/config").write_text(included + "Host *\n  ForwardX11 no\n")
    elsewhere = user.folder / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    for host in ("server", "scheduler"):
        ran = user.types("ssh", f"{deployed.plan.name}-{host}", "echo $HOSTNAME", cwd=elsewhere)
        assert ran.stdout.decode() == f"{deployed.plan.name}-{host}\n", ran.stderr


def test_a_definition_by_its_path(user: User, tmp_path: Path) -> None:
    """The command in `ssh_config`, which has a name only, is told by the one that starts ssh."""
    (tmp_path / "byhub.yaml").write_text("name: another\n")
    words = (str(user.here / "byhub.yaml"), "--out", str(user.here / "output"), "--", "echo", "$HOSTNAME")
    ran = user.types(
        "cycleforge", "connect", *words,
        cwd=tmp_path, environment={"XDG_CACHE_HOME": "/proc/nothing"},
    )  # fmt: skip
    assert ran.stdout == b"byhub-server\n", ran.stderr


def test_from_where_nobody_knows_it(user: User, tmp_path: Path) -> None:
    """The folder of the definition is looked for where it was used last, before one that CycleForge brings."""
    ran = user.types("cycleforge", "connect", "nowhere", "server", "--stdio", cwd=tmp_path)
    assert (ran.returncode, b"once in the folder that has the definition" in ran.stderr) == (2, True)
    (user.here / "minimal.yaml").write_text((user.here / "byhub.yaml").read_text())
    assert user.types("cycleforge", "connect", "minimal", "--", "true").returncode == 0
    ran = user.types("cycleforge", "connect", "minimal", "server", "--stdio", cwd=tmp_path)
    assert ran.stdout.startswith(b"SSH-2.0-"), ran.stderr


def test_a_login_node_by_the_address_that_cyclecloud_knows(user: User) -> None:
    """Nobody knows its host name. Records of `show_nodes`: https://github.com/Azure/azurehpc/blob/2d57191/ci/scripts/cyclecloud_helpers.sh"""
    deployed = user.by_name["byhub"]
    nodes = [
        {"Name": "scheduler", "State": "Started", "Instance": {"PrivateIp": "10.0.0.9"}},
        {"Name": "login-1", "State": "Started", "Instance": {"PrivateIp": deployed.scheduler.address}},
        {"Name": "login-2", "State": "Started"},
    ]
    said = shlex.quote(json.dumps(nodes))
    words = "show_nodes -c lab --states=Started --format=json"
    deployed.server.program("cyclecloud", f'#!/bin/sh\n[ "$*" = "{words}" ] && echo {said}\n')
    ran = user.types("ssh", *config(deployed), "byhub-login", "echo $HOSTNAME")
    assert ran.stdout == b"byhub-scheduler\n", ran.stderr
    ran = user.types("ssh", *config(deployed), "login-2", "true")
    assert (ran.returncode, b"no node login-2 is started" in ran.stderr) == (255, True)
    deployed.server.program("cyclecloud", "#!/bin/sh\necho '**** Error: not initialized' >&2\nexit 1\n")
    ran = user.types("ssh", *config(deployed), "login", "true")
    assert b"does not list its nodes: **** Error: not initialized" in ran.stderr
    assert b"`cyclecloud initialize` once" in ran.stderr


def test_a_login_node_by_what_azure_has_of_it(user: User) -> None:
    """Where nobody is logged in to the server's command line. Tags: https://learn.microsoft.com/azure/cyclecloud/how-to/tag-nodes"""
    deployed = user.by_name["byhub"]
    deployed.server.program("cyclecloud", "#!/bin/sh\necho 'not initialized' >&2\nexit 1\n")
    state, network = user.arm.state, deployed.plan.network

    def nic(name: str, address: str, array: str = "login", vnet: str = network.vnet_name, cluster: str = "lab") -> str:
        at = f"{network.vnet_resource_group}/providers/Microsoft.Network/virtualNetworks/{vnet}/subnets/compute"
        tags = {"ClusterName": cluster, "CycleCloudNodeArray": f"/sites/1/clusters/lab/nodearrays/{array}"}
        subnet = {"id": f"{state.scope}/resourceGroups/{at}"}
        properties = {"ipConfigurations": [{"properties": {"subnet": subnet, "privateIPAddress": address}}]}
        resource_id = f"{state.scope}/resourceGroups/g/providers/Microsoft.{name}"
        state.put(resource_id, tags=tags, properties=properties)
        return resource_id.lower()

    state.put(f"{state.scope}/resourceGroups/g")
    nic("Network/networkInterfaces/a", f"{NET}.251", array="htc")
    nic("Network/networkInterfaces/b", f"{NET}.252", vnet="another")
    nic("Network/networkInterfaces/c", f"{NET}.253", cluster="")
    login = ("ssh", *config(deployed), "byhub-login", "echo $HOSTNAME")
    assert b"`cyclecloud initialize` once" in user.types(*login).stderr
    flexible = nic("Network/networkInterfaces/d", deployed.scheduler.address)
    assert user.types(*login).stdout == b"byhub-scheduler\n"
    del state.resources[flexible]
    uniform = nic("Compute/virtualMachineScaleSets/login-set", f"{NET}.254")
    assert b"`cyclecloud initialize` once" in user.types(*login).stderr
    nic("Compute/virtualMachineScaleSets/login-set/networkInterfaces/e", deployed.scheduler.address)
    assert user.types(*login).stdout == b"byhub-scheduler\n"
    del state.resources[uniform]


def test_what_no_output_says_is_asked_of_the_resources(user: User) -> None:
    """A deployment that failed has no outputs, and the Bastion of an existing network is none of ours."""
    state, hub, public = user.arm.state, user.by_name["byhub"], user.by_name["bypublic"]
    az_lines = []
    for deployed in (hub, public):
        assert user.types("ssh", *config(deployed), "server", "true").returncode == 0
        properties = deployed.record["properties"]
        kept = properties.pop("outputs")
        machine = kept["serverId"]["value"]
        network = f"{machine.partition('/Microsoft.Compute/')[0]}/Microsoft.Network"
        try:
            said = user.types("ssh", *config(deployed), "server").stderr
            assert b"Azure knows no address of the server" in said
            of: dict[str, Any] = {"privateIPAddress": deployed.server.address}
            if deployed is public:
                of = {"privateIPAddress": "10.0.0.4", "publicIPAddress": {"id": f"{network}/publicIPAddresses/ip"}}
                state.put(of["publicIPAddress"]["id"], properties={"ipAddress": deployed.server.address})
            group = state.put(machine.partition("/providers/")[0])["id"]
            interface = state.put(
                f"{network}/networkInterfaces/nic", properties={"ipConfigurations": [{"properties": of}]}
            )
            state.put(machine, properties={"networkProfile": {"networkInterfaces": [{"id": interface["id"]}]}})
            expected = f"{deployed.plan.name}-server\n".encode()
            assert user.types("ssh", *config(deployed), "server", "echo $HOSTNAME").stdout == expected
            az_lines += (
                user.types("cycleforge", "connect", name_of(deployed), "--print").stdout.decode().splitlines()[1:2]
            )
        finally:
            properties["outputs"] = kept
            for key in [each for each in state.resources if each.startswith(group.lower())]:
                del state.resources[key]
    tail = f"--subscription {state.subscription} --output tsv"
    assert [line.split(" --query ")[1] for line in az_lines] == [f"privateIps {tail}", f"publicIps {tail}"]
    bastion = user.by_name["bybastion"]
    outputs = bastion.record["properties"].pop("outputs")
    try:
        facts = user.types("cycleforge", "connect", "bybastion", "--print").stdout.decode().splitlines()
    finally:
        bastion.record["properties"]["outputs"] = outputs
    assert f"--name bybastion-bastion --resource-group {bastion.plan.resource_group} " in facts[1]
    existing = user.deploy("byexisting", EXISTING)
    del existing.outputs["bastionName"]
    user.az["bastions"]["theirs"] = user.az["bastions"]["byexisting-bastion"] | {"group": "net-rg"}
    words = ("ssh", *config(existing), "server", "echo $HOSTNAME")
    for name, vnet, said in (("others", "corporate", b"Azure knows no Bastion"), ("theirs", "corp", b"")):
        at = f"{state.scope}/resourceGroups/net-rg/providers/Microsoft.Network"
        subnet = {"id": f"{at}/virtualNetworks/{vnet}/subnets/AzureBastionSubnet"}
        properties = {"ipConfigurations": [{"properties": {"subnet": subnet}}]}
        state.put(f"{at}/bastionHosts/{name}", properties=properties)
        ran = user.types(*words)
        assert said in ran.stderr
    assert ran.stdout == b"byexisting-server\n", ran.stderr
    shown = user.types("cycleforge", "connect", "byexisting", "--print").stdout.decode().splitlines()[1]
    assert shown.startswith("az network bastion list --query '[?starts_with(ipConfigurations[0].subnet.id, ")
    assert gone(user)


# ------------------------------------------------------------ what goes wrong


@pytest.mark.parametrize("deployed", ["bybastion"], indirect=True)
def test_another_host_key(user: User, deployed: Deployed, tmp_path: Path) -> None:
    """Nothing reaches a server whose key the deployment has not noted, whatever was known before."""
    pins = deployed.outputs["serverSshHostKeys"]
    true, pins["value"] = pins["value"], ["ssh-ed25519 SHA256:" + "A" * 43]
    try:
        ran = user.types("ssh", *config(deployed), "server", "touch came")
    finally:
        pins["value"] = true
    assert ran.returncode == 255
    assert b"shows the host key ssh-ed25519 SHA256:" in ran.stderr
    assert b"not one of the deployment's" in ran.stderr
    assert not (deployed.server.home / "came").exists()


@pytest.mark.parametrize("deployed", ["byhub"], indirect=True)
def test_a_new_server_is_known_again(user: User, deployed: Deployed) -> None:
    """The known key is an old server's: the deployment has noted the new one's."""
    known = user.home / ".ssh" / f"cycleforge-{deployed.plan.name}.known_hosts"
    old = new_key(user.folder / f"old-{deployed.plan.name}").with_suffix(".pub").read_text()
    known.write_text(f"cycleforge-{deployed.plan.name}-server {old}another {old}")
    assert user.types("ssh", *config(deployed), "server", "true").returncode == 0
    lines = known.read_text().splitlines()
    assert lines[0].split()[0] == "another"
    assert lines[1] == f"cycleforge-{deployed.plan.name}-server {deployed.server.host_key}"


@pytest.mark.parametrize("deployed", ["bybastion"], indirect=True)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_ssh_leaves_no_tunnel(user: User, deployed: Deployed, number: signal.Signals) -> None:
    ssh = user.started("ssh", *config(deployed), "server", "echo here; cat")
    assert ssh.stdout is not None
    assert ssh.stdout.readline() == b"here\n"
    ssh.send_signal(number)
    ssh.communicate()
    assert gone(user)


@pytest.mark.parametrize("deployed", ["bybastion"], indirect=True)
def test_a_killed_connection_leaves_no_tunnel(user: User, deployed: Deployed) -> None:
    ssh = user.started("ssh", *config(deployed), "server", "echo here; cat")
    assert ssh.stdout is not None
    assert ssh.stdout.readline() == b"here\n"
    connection = children_of(ssh.pid)[0]
    assert user.tunnels()
    os.kill(connection, signal.SIGKILL)
    assert gone(user)
    ssh.communicate()
    assert ssh.returncode == 255


@pytest.mark.parametrize("deployed", ["bybastion"], indirect=True)
def test_a_lost_server_ends_it(user: User, deployed: Deployed) -> None:
    ssh = user.started("ssh", *config(deployed), "server", "echo here; cat")
    assert ssh.stdout is not None
    assert ssh.stdout.readline() == b"here\n"
    deployed.server.cut()
    assert ssh.wait() == 255
    ssh.communicate()


def test_a_vpn_that_is_not_connected(user: User) -> None:
    deployed = user.by_name["byhub"]
    address = deployed.outputs["serverPrivateIp"]
    true, address["value"] = address["value"], f"{NET}.250"
    try:
        ran = user.types("ssh", *config(deployed), "server")
    finally:
        address["value"] = true
    assert ran.returncode == 255
    assert f"cycleforge: {NET}.250 does not answer at port 22".encode() in ran.stderr
    assert b"connect to the VPN or ExpressRoute" in ran.stderr


def test_a_bastion_that_opens_no_tunnel(user: User) -> None:
    bastion = user.az["bastions"]["bybastion-bastion"]
    bastion["sku"] = "Basic"
    try:
        ran = user.types("cycleforge", "connect", "bybastion")
    finally:
        bastion["sku"] = "Standard"
    assert b"opens no tunnel: ERROR: Bastion Host SKU must be Standard or Premium" in ran.stderr
    assert b"az extension add --name bastion" in ran.stderr
    (user.programs / "az").rename(user.programs / "no-az")
    try:
        ran = user.types("cycleforge", "connect", "bybastion", environment={"PATH": f"{user.programs}:/usr/bin:/bin"})
    finally:
        (user.programs / "no-az").rename(user.programs / "az")
    assert b"az is not installed" in ran.stderr


def test_what_is_not_deployed(user: User) -> None:
    (user.here / "absent.yaml").write_text((user.here / "byhub.yaml").read_text().replace("byhub", "absent"))
    (user.here / "output/absent").mkdir()
    (user.here / "output/absent/ssh_config").write_text((user.here / "output/byhub/ssh_config").read_text())
    ran = user.types("cycleforge", "connect", "absent", "--stdio")
    assert (ran.returncode, ran.stdout) == (4, b"")
    assert b"absent is not deployed" in ran.stderr


def test_a_host_that_is_not_there(user: User) -> None:
    ran = user.types("cycleforge", "connect", "byhub", "shceduler")
    assert (ran.returncode, ran.stderr) == (
        2, b"cycleforge: byhub has no host shceduler\n  hint: did you mean 'scheduler'?\n"
    )  # fmt: skip


def test_a_node_that_is_not_started(user: User) -> None:
    """ssh says only that nothing is forwarded."""
    ran = user.types("cycleforge", "connect", "byhub", "lab-htc-7", "--", "true")
    assert ran.returncode == 255
    assert b"cycleforge: lab-htc-7: the server does not reach it" in ran.stderr
    assert b"`cycleforge start " in ran.stderr
    assert b"stdio forwarding failed\n" not in ran.stderr


def test_what_is_not_built(user: User) -> None:
    (user.here / "unbuilt.yaml").write_text((user.here / "byhub.yaml").read_text().replace("byhub", "unbuilt"))
    ran = user.types("cycleforge", "connect", "unbuilt")
    assert (ran.returncode, b"`cycleforge build unbuilt` makes it" in ran.stderr) == (2, True)


# ------------------------------------------------------------ what is printed


@pytest.mark.parametrize("deployed", ["bypublic", "bybastion"], indirect=True)
def test_the_plain_lines(user: User, deployed: Deployed) -> None:
    ran = user.types("cycleforge", "connect", name_of(deployed), "scheduler", "--print", "--", "echo", "a b")
    lines = ran.stdout.decode().splitlines()
    assert lines[0].startswith("az deployment sub show --name ")
    assert "echo a b" in lines[-1]
    assert f"{deployed.plan.admin.username}@lab-scheduler" in lines[-1]
    assert (len(lines) == 4) == bool(deployed.plan.access.tunnel)
    if deployed.plan.access.tunnel:
        assert lines[1].startswith("az network bastion tunnel --name bybastion-bastion ")
        assert lines[1].endswith("--resource-port 22 --port 50022 &")
        # Pasted as they are: the third waits until the tunnel is there, and does not wait for one that az refuses.
        typed = "\n".join(["set -m", *lines[1:3], "kill -0 $! && echo open; kill %%; wait"])
        assert user.types("bash", "-c", typed).stdout == b"open\n"
        typed = "\n".join([lines[1].replace("bybastion-bastion", "absent"), lines[2], "echo over"])
        assert user.types("bash", "-c", typed).stdout == b"over\n"
    assert ran.stderr == b""


def test_the_plain_lines_of_a_node_that_no_name_leads_to(user: User) -> None:
    """The server takes its address out of its own list of nodes."""
    deployed = user.by_name["byhub"]
    ran = user.types("cycleforge", "connect", "byhub", "login", "--print")
    address, login = ran.stdout.decode().splitlines()[1:]
    assert login.endswith('ccadmin@"${address}"')
    nodes = [{"Name": f"login-{n}", "Instance": {"PrivateIp": f"10.0.0.{n}"}} for n in (2, 1)]
    deployed.server.program("cyclecloud", f"#!/bin/sh\necho {shlex.quote(json.dumps(nodes))}\n")
    (user.programs / "plain-ssh").write_text('#!/bin/sh\nexec ssh -F output/byhub/ssh_config server "$2"\n')
    (user.programs / "plain-ssh").chmod(0o755)
    typed = address.replace("$(ssh ", "$(plain-ssh ")
    assert user.types("bash", "-c", f"{typed}; echo $address").stdout == b"10.0.0.1\n"
    assert b"has no host shceduler" in user.types("cycleforge", "connect", "byhub", "shceduler", "--print").stderr
