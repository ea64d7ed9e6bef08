"""`cycleforge update`: import what is not deployed, name old nodes, replace them, again and again."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import pytest

from generator.azure.deployment import content_of
from generator.cyclecloud.command_line import NotDone
from generator.cyclecloud.updating import parameters
from tests.bed.plans import SMALL
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.verbs.place import DATABASE_PASSWORD, Living

UPDATE = ("update", "minimal.yaml", "--yes")
FACTS = {"nodeIdentityId": "/subscriptions/x/identity", "storageAccount": "acct", "subnetId": "rg/vnet/compute"}
REPLACE = "systemd-run --unit cycleforge-replace --collect /opt/cycleforge/misc_ubuntu/nodes.sh replace"
UP = "IDLE+CLOUD"
SIZES = ("Standard_D64ds_v5", "Standard_D32ds_v5")


def is_deployed(living: Living) -> None:
    """With the folder of before; nothing is sent to a locker."""
    living.deployment("0123456789abcdef")
    late = json.loads((living.folder / "output/minimal/bootstrap/bootstrap.json").read_text())["cluster"]["late"]
    facts = living.folder / "root/var/lib/cycleforge/facts.json"
    facts.parent.mkdir(parents=True, exist_ok=True)
    facts.write_text(json.dumps({source: f"value-of-{source}" for source in late.values()}))
    living.patch.setattr("generator.cli.upload.send", lambda _, locker, args: living.uploads.append(locker.address))


@pytest.fixture
def deployed(living: Living) -> Living:
    """Started."""
    living.runs()
    living.slurm.nodes = {"htc-1": ("htc", UP, ""), "htc-2": ("htc", "MIXED+CLOUD", "")}
    is_deployed(living)
    return living


def imports(living: Living) -> int:
    """How often it was imported."""
    return sum(line.startswith("cyclecloud import_cluster") for line in living.changes)


def test_it_imports_with_the_values_of_the_deployment(deployed: Living) -> None:
    code, out, err = deployed(*UPDATE)
    assert (code, imports(deployed)) == (0, 1), err
    assert "template and parameters imported" in out
    assert deployed.uploads == ["az://minimalacct/cyclecloud"]
    cluster = deployed.cluster
    assert "[cluster minimal]" in cluster["text"]
    late = json.loads((deployed.folder / "output/minimal/bootstrap/bootstrap.json").read_text())["cluster"]["late"]
    assert {name: cluster["parameters"][name] for name in late} == {n: f"value-of-{s}" for n, s in late.items()}
    assert "value-of" not in (deployed.folder / "ssh.log").read_text()  # passwords go the same way
    (words,) = (call["argv"] for call in deployed.site.calls if call["argv"][0] == "import_cluster")
    assert "--force" in words
    sent = Path(words[words.index("-p") + 1])
    assert sent.is_relative_to("/dev/shm")
    assert not sent.parent.exists()


def test_what_was_deployed_is_not_imported_again(deployed: Living) -> None:
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    code, _, err = deployed(*UPDATE)
    assert (code, deployed.changes, deployed.uploads) == (0, [], []), err
    assert "as deployed" in err


def test_a_question_comes_first(deployed: Living) -> None:
    deployed.types("n\n")
    code, _, err = deployed("update", "minimal.yaml")
    assert (code, deployed.changes, deployed.uploads) == (1, [], [])
    assert "what was edited in the portal is replaced" in err


def test_old_nodes_are_named_and_replaced_once(deployed: Living) -> None:
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    deployed.slurm.old = {"htc-1", "htc-2"}
    code, out, err = deployed(*UPDATE)
    assert code == 0, err
    assert "2 old nodes: htc-1, htc-2; they are replaced as they become idle" in out
    assert [line.startswith(REPLACE) for line in deployed.changes] == [True]
    code, out, _ = deployed(*UPDATE)
    assert (code, "replaced already" in out, len(deployed.changes)) == (0, True, 1)


def test_now_says_which_jobs_end(deployed: Living) -> None:
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    deployed.slurm.old = {"htc-1", "htc-2"}
    code, _, err = deployed(*UPDATE, "--now")
    assert (code, deployed.changes, "jobs would end on htc-2" in err) == (1, [], True)
    code, out, err = deployed(*UPDATE, "--now", "--end-jobs")
    assert (code, "they end" in out) == (0, True), err
    assert deployed.changes == ["scontrol update nodename=htc-1,htc-2 state=POWER_DOWN_FORCE reason=cycleforge-update"]


def test_partitions_that_slurm_does_not_have_yet(deployed: Living) -> None:
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    del deployed.slurm.nodes["htc-2"]
    code, _, err = deployed(*UPDATE)
    assert (code, "htc: 1 nodes, not 2" in err, deployed.changes) == (4, True, ["azslurm scale"])
    deployed.slurm.partitions = {"htc": 2}
    assert deployed(*UPDATE)[0] == 0
    assert deployed.changes == ["azslurm scale"] * 2


def test_another_policy_is_applied_once(deployed: Living) -> None:
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    deployed.patch.setattr("generator.operate.built.difference", lambda _: None)
    (deployed.folder / "output/minimal/cluster/policy.rows").write_text("qos fast\n")
    deployed.types("n\n")
    assert (deployed("update", "minimal.yaml")[0], deployed.slurm.policy) == (1, "")
    code, out, err = deployed(*UPDATE)
    assert (code, deployed.slurm.policy, "policy is applied" in out) == (0, "qos fast\n", True), err
    code, out, _ = deployed(*UPDATE)
    assert (code, "policy is applied" in out) == (0, False)


def test_files_do_not_go_through_azure(deployed: Living) -> None:
    deployed.has_no_path_to("server")
    code, _, err = deployed(*UPDATE)
    assert (code, deployed.changes) == (4, [])
    assert "`cycleforge deploy minimal.yaml` lets the server import them" in err


def test_without_a_deployment_there_is_nothing_to_update(living: Living) -> None:
    living.runs()
    code, _, err = living(*UPDATE)
    assert (code, "does not exist" in err, living.changes) == (1, True, [])


def test_a_fact_that_is_missing_imports_nothing(deployed: Living) -> None:
    (deployed.folder / "root/var/lib/cycleforge/facts.json").write_text("{}")
    code, _, err = deployed(*UPDATE)
    assert (code, "did not tell the server" in err, deployed.changes, deployed.uploads) == (4, True, [], [])


def test_secrets_are_filled_in_as_the_first_boot_does() -> None:
    late = {"Password": "secret:databasePassword", "Address": "homeAddress"}
    given: dict[str, Any] = {"homeAddress": "10.0.0.9"}
    filled = parameters({"Password": None, "X": 1}, late, given, {"databasePassword": "p"})
    assert filled == {"Password": "p", "X": 1, "Address": "10.0.0.9"}
    with pytest.raises(NotDone, match="secret:databasePassword"):
        parameters({}, late, given, {})


def defined(living: Living, text: str) -> None:
    """The definition is another one; what is built stays."""
    (living.folder / "minimal.yaml").write_text(text)
    living.patch.setattr("generator.operate.built.difference", lambda _: None)


def test_beside_an_existing_server_the_password_of_the_database_goes_along(deployed: Living) -> None:
    """An import replaces all parameters, and the deployment puts no password into its outputs."""
    defined(deployed, SECOND_CLUSTER.replace("name: second", "name: minimal"))
    values = {"configuration_slurm_accounting_password": None, "Region": "southcentralus"}
    deployed.deployment("0123456789abcdef", {"clusterParameters": {"type": "Object", "value": values}})
    deployed.patch.delenv("SLURM_DATABASE_PASSWORD")
    code, _, err = deployed(*UPDATE)
    assert (code, "SLURM_DATABASE_PASSWORD is not set" in err, deployed.changes) == (2, True, []), err
    vault = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/k/providers/Microsoft.KeyVault/vaults/v"
    deployed.patch.setenv("SLURM_DATABASE_PASSWORD", f"{vault}/secrets/mysql")
    code, _, err = deployed(*UPDATE)
    assert (code, "names a secret in a Key Vault" in err, deployed.changes) == (2, True, []), err
    assert "az keyvault secret show --vault-name v --name mysql" in err
    before = len(deployed.arm.requests)
    deployed.patch.setenv("SLURM_DATABASE_PASSWORD", "Abc#def-12345")
    code, out, err = deployed(*UPDATE)
    assert (code, "no space, #, backslash or quote" in err, len(deployed.arm.requests)) == (2, True, before), err
    assert "Abc#def" not in out + err
    deployed.patch.setenv("SLURM_DATABASE_PASSWORD", DATABASE_PASSWORD)
    deployed.slurm.partitions = {"htc": 4}
    code, _, err = deployed(*UPDATE)
    assert (code, imports(deployed)) == (0, 1), err
    assert deployed.cluster["parameters"] == values | {"configuration_slurm_accounting_password": DATABASE_PASSWORD}


def test_a_partition_of_several_sizes(deployed: Living) -> None:
    """Its nodes are created by hand, so what is missing, and what is left of a size that is gone, is named."""
    deployed.deployment(content_of(deployed.folder / "output/minimal"))
    defined(
        deployed, SMALL.replace("name: htc, vm_size: Standard_D64ds_v5", f"name: mix, vm_sizes: [{', '.join(SIZES)}]")
    )
    names = [f"minimal-mix-{size}-{n}" for size in ("d64ds-v5", "d32ds-v5") for n in (1, 2)]
    deployed.slurm.nodes = dict.fromkeys(names, ("mix", UP, ""))
    assert deployed(*UPDATE)[0] == 0
    deployed.slurm.nodes = {"minimal-mix-d96as-v4-1": ("mix", UP, ""), **dict.fromkeys(names[:3], ("mix", UP, ""))}
    deployed.slurm.old = {"minimal-mix-d64ds-v5-1"}
    code, out, err = deployed(*UPDATE)
    assert (code, "1 old node: minimal-mix-d64ds-v5-1" in out) == (1, True), err
    assert "mix: Slurm does not have minimal-mix-d32ds-v5-2 of Standard_D32ds_v5" in err
    assert "mix: minimal-mix-d96as-v4-1 are in no size that the definition has, of which" in err
    assert "output/minimal/README.md has the lines" in err
    assert deployed.changes == [line for line in deployed.changes if line.startswith(REPLACE)]


KILLS = """\
#!/bin/sh
case "$*" in *import_cluster*) ;; *) exec FOLDER/real/cyclecloud "$@" ;; esac
while [ "$#" -gt 1 ]; do if [ "$1" = -p ]; then stat -c %a:%n "$2" "${2%/*}" >FOLDER/seen; fi; shift; done
kill -9 "$PPID"
"""


def test_a_shell_that_is_killed_leaves_no_parameters(deployed: Living) -> None:
    """SIGKILL in the middle of the import; what outlived a machine's whole session goes with the next import."""
    program = deployed.folder / "hosts/server/cyclecloud"
    (deployed.folder / "real").mkdir()
    program.rename(deployed.folder / "real/cyclecloud")
    deployed._program(program, KILLS.replace("FOLDER", str(deployed.folder)))
    old = Path(tempfile.mkdtemp(prefix="cycleforge-", dir="/dev/shm"))
    os.utime(old, (0, 0))
    code, _, err = deployed(*UPDATE)
    assert (code, "the server's answer is not complete" in err) == (4, True), err
    (mode, name), (folder_mode, folder) = (line.split(":") for line in (deployed.folder / "seen").read_text().split())
    assert (mode, folder_mode, Path(name).is_relative_to("/dev/shm")) == ("600", "700", True)
    for _ in range(200):
        if not Path(folder).exists():
            break
        signal.sigtimedwait([], 0.05)
    assert not Path(folder).exists()
    assert not old.exists()


def test_print_asks_nobody(living: Living) -> None:
    code, out, _ = living("update", "minimal.yaml", "--print")
    assert (code, living.site.calls, living.arm.requests) == (0, [], [])
    assert out.startswith("(cd output/minimal && ")
    assert "az deployment sub create --name minimal-southcentralus " in out.splitlines()[0]
    assert "systemd-run --unit cycleforge-replace" in out
