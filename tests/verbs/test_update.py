"""`cycleforge update`: import what is not deployed, name old nodes, replace them, again and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.azure.deployment import content_of
from generator.cyclecloud.command_line import NotDone
from generator.cyclecloud.updating import parameters
from tests.verbs.place import Living

UPDATE = ("update", "minimal.yaml", "--yes")
FACTS = {"nodeIdentityId": "/subscriptions/x/identity", "storageAccount": "acct", "subnetId": "rg/vnet/compute"}
REPLACE = "systemd-run --unit cycleforge-replace --collect /opt/cycleforge/misc_ubuntu/nodes.sh replace"
UP = "IDLE+CLOUD"


@pytest.fixture
def deployed(living: Living) -> Living:
    """Started, with the folder of before; nothing is sent to a locker."""
    living.runs()
    living.slurm.nodes = {"htc-1": ("htc", UP, ""), "htc-2": ("htc", "MIXED+CLOUD", "")}
    living.deployment("0123456789abcdef")
    late = json.loads((living.folder / "output/minimal/bootstrap/bootstrap.json").read_text())["cluster"]["late"]
    facts = living.folder / "root/var/lib/cycleforge/facts.json"
    facts.parent.mkdir(parents=True)
    facts.write_text(json.dumps({source: f"value-of-{source}" for source in late.values()}))
    living.patch.setattr("generator.cli.upload.run", lambda args: living.uploads.append(args.locker))
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


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("connection", range(1, 10))
def test_a_connection_lost_anywhere_is_gone_on_from(deployed: Living, connection: int, when: str) -> None:
    """Whatever was lost, the same command ends where one without a loss would."""
    deployed.slurm.old = {"htc-1"}
    deployed.loses((connection, when))
    deployed(*UPDATE)
    deployed.loses()
    assert deployed(*UPDATE)[0] == 0
    assert imports(deployed) in (1, 2)
    assert deployed.slurm.replacing
    assert sum(line.startswith(REPLACE) for line in deployed.changes) == 1


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
    deployed.patch.setattr("generator.cli.built.difference", lambda _: None)
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


def test_print_asks_nobody(living: Living) -> None:
    code, out, _ = living("update", "minimal.yaml", "--print")
    assert (code, living.site.calls, living.arm.requests) == (0, [], [])
    assert out.splitlines()[0] == "cycleforge upload minimal"
    assert "cyclecloud import_cluster minimal -c minimal" in out
    assert "systemd-run --unit cycleforge-replace" in out
