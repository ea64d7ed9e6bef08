"""What of a plan is billed, and how much of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from generator.plan.billed import billed
from generator.plan.billing import Billed, disk
from tests.bed.plans import plan_from

LUSTRE = {"path": "/data", "type": "amlfs", "tier": 250, "size_tib": 128}
NETAPP = {"path": "/anf", "type": "anf", "size_tib": 3, "service_level": "Premium"}


def things(**change: Any) -> dict[str, Billed]:
    return {each.title: each for each in billed(plan_from(json.dumps(change)))}


def row(each: Billed) -> tuple[int, str | None, dict[str, str], str]:
    return each.quantity, each.meter, dict(each.words), each.since


def test_file_systems_are_billed_by_what_is_provisioned() -> None:
    found = things(storage={"mounts": [LUSTRE, NETAPP]})
    assert row(found["/data"]) == (128 * 1024, "lustre", {"tier": "250"}, "deployed")
    assert row(found["/anf"]) == (3 * 1024, "netapp", {"level": "Premium"}, "deployed")
    assert row(found["/shared"]) == (1, "premium_ssd", {"tier": "10"}, "deployed")


def test_a_new_account_has_one_endpoint_for_all_its_containers() -> None:
    mounts = [
        {"path": path, "type": "blob", "storage_account": "corpora", "container": path[1:], "create": True}
        for path in ("/one", "/two")
    ]
    assert row(things(storage={"mounts": mounts})["corpora-endpoint"]) == (1, "private_endpoint", {}, "deployed")


def test_a_disk_of_its_own_kind_has_no_known_meter() -> None:
    own = {"volume.shared.StorageAccountType": "StandardSSD_LRS"}
    found = things(slurm={"scheduler": {"vm_size": "Standard_D4as_v5", "node_attributes": own}})
    assert found["/shared"].meter is None
    assert found["/sched"].meter == "premium_ssd"


def test_login_nodes_that_come_later_are_billed_when_everything_is_full() -> None:
    found = things(slurm={"login": {"vm_size": "Standard_D4as_v5", "count": 1, "max_count": 3}})
    assert (found["login nodes"].quantity, found["login nodes"].since) == (1, "started")
    assert (found["more login nodes"].quantity, found["more login nodes"].since) == (2, "full")


def test_a_database_and_a_jumpbox() -> None:
    found = things(
        slurm={"accounting": {"type": "new", "sku": "Standard_D2ds_v4"}},
        server={"jumpbox": {}},
        network={"mysql_dns_zone": "new"},
    )
    assert row(found["accounting's database"]) == (1, "mysql", {"size": "D2ds_v4"}, "deployed")
    assert found["jumpbox"].meter == "vm_windows"


@pytest.mark.parametrize(
    ("size_gib", "number"), [(1, "1"), (4, "1"), (5, "2"), (128, "10"), (129, "15"), (1024, "30"), (32767, "80")]
)
def test_a_disk_is_billed_as_the_next_larger_size(size_gib: int, number: str) -> None:
    found = disk("x", size_gib, "deployed")
    assert found is not None
    assert dict(found.words) == {"tier": number}


def test_no_disk_is_larger_than_the_largest() -> None:
    assert disk("x", 32768, "deployed") is None
