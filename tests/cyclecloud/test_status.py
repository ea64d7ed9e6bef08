"""`cycleforge status` against the stand-ins of Azure and of the site."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable

import pytest

from tests.bed.arm.exchange import RefusedError
from tests.bed.cyclecloud import Failing, SiteStandIn
from tests.bed.cyclecloud.exchange import FailureError
from tests.bed.plans import plan_from
from tests.cyclecloud.asked_directly import STATUS, living, nothing_changed
from tests.cyclecloud.deployed import CLUSTER, Names, asked_json, deployed, record_id, server_id
from tests.definitions.optional_parts import SECOND_CLUSTER
from tests.what_if.conftest import kept, place
from tests.what_if.place import PASSWORD, Place

__all__ = ["kept", "living", "place"]


def test_one_screen(living: Place, portal: SiteStandIn) -> None:
    portal.state.clusters[CLUSTER].add("htc", 1)
    code, out, err = living(*STATUS)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "minimal in southcentralus",
        "  deployment  deployed (2026-11-20T10:00:00Z), with this folder",
        "  server      running",
        "  first boot  done",
        "  cluster     minimal: Started",
        "  scheduler          Ready",
        "  htc        1 of 2  1 Acquiring",
    ]
    nothing_changed(living, portal)


def test_two_answers_one_after_the_other(living: Place, portal: SiteStandIn) -> None:
    living(*STATUS)
    assert sorted(each.line.rpartition("/")[2] for each in living.arm.requests) == [
        "cycleforge-bootstrap", "instanceView", *["minimal-southcentralus"] * 2
    ], "a deployment, or a stack of that name"  # fmt: skip
    assert portal.lines == ["GET /clusters/minimal/status"]


def test_it_goes_on_as_the_server_does(living: Place, portal: SiteStandIn) -> None:
    portal.state.clusters[CLUSTER].add("htc", 2)
    seen = [asked_json(living)["cluster"]["nodes"][1]["status"] for _ in range(3)]
    assert seen == ["Acquiring", "Preparing", "Ready"]


def test_a_failed_node_in_words(living: Place, portal: SiteStandIn) -> None:
    portal.state.failing.append(Failing("minimal-htc-*", "Preparing", "Timeout awaiting system boot-up\x1b[31m"))
    portal.state.clusters[CLUSTER].add("htc", 2)
    living(*STATUS)
    code, out, _ = living(*STATUS)
    assert code == 1
    assert "  2 nodes of htc failed: minimal-htc-1, minimal-htc-2\n" in out
    assert "reaches neither the server's port 9443 nor the locker\n" in out
    assert "    CycleCloud: Timeout awaiting system boot-up\\x1b[31m\n" in out
    assert "hint: `cycleforge preflight minimal`" in out
    nothing_changed(living, portal)


def test_a_reason_that_only_the_query_tells(living: Place, portal: SiteStandIn) -> None:
    portal.state.tells_messages = False
    portal.state.failing.append(Failing("minimal-htc-1", "Preparing", "Failed to find project own in locker x"))
    portal.state.clusters[CLUSTER].add("htc", 1)
    living(*STATUS)
    assert "the locker lacks a project" in living(*STATUS)[1]
    portal.fail("GET", "/exec/query/", FailureError(403, "Forbidden", "no"))
    code, out, _ = living(*STATUS)
    assert (code, "the server does not say why" in out) == (1, True)


def test_what_the_site_says_of_a_failure_at_length(living: Place, portal: SiteStandIn) -> None:
    """The end of what the script wrote, and the site's advice; numbers do not make two conditions of one."""
    detail = "\n".join(["first", *(f"line {number}" for number in range(19)), "boom\x1b[2J"])
    for number in (1, 2):
        portal.state.failing.append(
            Failing(f"minimal-htc-{number}", "Preparing", f"Failed to execute '{number}.sh'", detail, "Edit the script")
        )
    portal.state.clusters[CLUSTER].add("htc", 2)
    living(*STATUS)
    code, out, _ = living(*STATUS)
    assert code == 1
    assert out.endswith(
        "  Software Configuration on 2 nodes: Failed to execute '1.sh'\n"
        + "".join(f"    | line {number}\n" for number in range(19))
        + "    | boom\\x1b[2J\n    CycleCloud advises: Edit the script\n"
    )
    (found,) = asked_json(living)["conditions"]
    assert (found["nodes"], len(found["detail"]), found["recommendation"]) == (2, 20, "Edit the script")
    portal.fail("GET", "/exec/query/", FailureError(403, "Forbidden", "no"))
    assert "Failed to execute" in living(*STATUS)[1]
    nothing_changed(living, portal)


def test_the_usage_of_this_month(living: Place, portal: SiteStandIn) -> None:
    code, out, _ = living(*STATUS, "--usage")
    assert code == 0
    assert "  usage       10.0 core hours, about 10.00 USD this month, as the site counts\n" in out
    assert "              htc:  10.0 core hours, about 10.00 USD\n" in out
    assert portal.lines == ["GET /clusters/minimal/status", "GET /clusters/minimal/usage"]
    assert portal.requests[-1].query == {"timeframe": "monthToDate", "granularity": "total"}
    assert asked_json(living, "--usage")["usage"]["core_hours"] == 10.0
    portal.fail("GET", "*/usage", FailureError(403, "Forbidden", "no"))
    code, out, _ = living(*STATUS, "--usage")
    assert (code, "  usage       not known: the site refused: Forbidden: no\n" in out) == (4, True)
    nothing_changed(living, portal)


def test_what_keeps_a_partition_small(living: Place, portal: SiteStandIn) -> None:
    array = portal.state.clusters[CLUSTER].arrays["htc"]
    array.quota_count = 1
    assert "  htc: the quota allows 1 of Standard_D64ds_v5, fewer than the 2 of the partition\n" in living(*STATUS)[1]
    array.invalid_reason = "NotActivated"
    assert "  htc: Standard_D64ds_v5 cannot be used here: NotActivated\n" in living(*STATUS)[1]
    array.invalid_reason, array.last_capacity_failure = "", 90.0
    assert "  htc: Azure had no capacity for Standard_D64ds_v5 90 s ago\n" in living(*STATUS)[1]


def test_a_thousand_nodes_are_one_line(living: Place, portal: SiteStandIn) -> None:
    cluster = portal.state.clusters[CLUSTER]
    cluster.arrays["htc"].most = 1000
    portal.state.failing += [
        Failing(f"minimal-htc-{number}", "Preparing", f"SkuNotAvailable in attempt {number}") for number in range(1, 90)
    ]
    cluster.add("htc", 1000)
    living(*STATUS)
    code, out, _ = living(*STATUS)
    assert (code, len(out.splitlines())) == (1, 11)
    assert "1000 of 1000  911 Preparing, 89 Failed\n" in out
    assert "  89 nodes of htc failed: minimal-htc-1, minimal-htc-2, minimal-htc-3, minimal-htc-4 and 85 more\n" in out
    assert len(asked_json(living)["failures"][0]["nodes"]) == 89


# ---------------------------------------------------------------- without this and that


def test_without_a_password_azure_is_shown(living: Place, portal: SiteStandIn) -> None:
    living.patch.delenv("CYCLECLOUD_ADMIN_PASSWORD")
    code, out, _ = living(*STATUS)
    assert (code, portal.requests) == (4, [])
    assert "  first boot  done\n" in out
    assert "  cluster     not known: nobody is signed in at the site\n" in out
    assert "hint: export CYCLECLOUD_ADMIN_PASSWORD, or give --password" in out


def test_a_vaults_id_is_no_password(living: Place, portal: SiteStandIn) -> None:
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", "/subscriptions/s/…/vaults/v/secrets/admin")
    code, out, _ = living(*STATUS)
    assert (code, portal.requests) == (4, [])
    assert "is the id of a secret in a Key Vault" in out


def test_a_wrong_password_is_tried_once_a_minute(living: Place, portal: SiteStandIn) -> None:
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", "not-the-Passw0rd")
    code, out, _ = living(*STATUS)
    assert (code, "refused the password of ccadmin" in out) == (4, True)
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    code, out, _ = living(*STATUS)
    assert (code, "it was not tried again" in out, len(portal.requests)) == (4, True, 1)
    (note,) = (living.folder / "home" / ".cache" / "cycleforge" / "refused-logins").iterdir()
    assert note.read_bytes() == b""
    os.utime(note, (time.time() - 61,) * 2)
    assert living(*STATUS)[0] == 0


def test_a_typed_password(living: Place, portal: SiteStandIn) -> None:
    living.patch.delenv("CYCLECLOUD_ADMIN_PASSWORD")
    code, _, err = living(*STATUS, "--password")
    assert (code, "there is no terminal" in err) == (2, True)
    terminal = io.StringIO()
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    living.patch.setattr("sys.stdin", terminal)
    living.patch.setattr("getpass.getpass", lambda prompt: PASSWORD)
    assert living(*STATUS, "--password")[0] == 0
    living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", "/subscriptions/s/…/vaults/v/secrets/admin")
    assert living(*STATUS, "--password")[0] == 0


def test_never_deployed(place: Place) -> None:
    code, out, _ = place.built()(*STATUS)
    assert (code, "none: never deployed" in out, len(out.splitlines())) == (1, True, 2)
    assert "`cycleforge deploy minimal` deploys it" in out


def test_a_deployment_that_runs_is_no_failure(living: Place, portal: SiteStandIn) -> None:
    deployed(living, portal, provisioningState="Running", outputs={})
    code, out, _ = living(*STATUS)
    assert (code, "is being deployed" in out) == (4, True)
    assert "not known: the last deployment gives no address" in out


def test_a_deployment_that_failed(living: Place, portal: SiteStandIn) -> None:
    error = {"code": "DeploymentFailed", "details": [{"code": "AllocationFailed", "message": "no room"}]}
    deployed(living, portal, provisioningState="Failed", error=error, outputs={})
    code, out, _ = living(*STATUS)
    assert code == 1
    assert "    Azure has no free machine of this size there now\n" in out
    assert "      Azure: AllocationFailed: no room\n" in out


def test_a_first_boot_that_failed(living: Place) -> None:
    boot = f"{server_id(living.arm)}/extensions/cycleforge-bootstrap"
    living.arm.state.put(boot, properties={"provisioningState": "Failed"})
    said = "Enable failed: \n[stdout]\n\n[stderr]\nerror: step 'cli': no \x07disk\nhint: make room\n"
    living.arm.state.said[boot.lower()] = said
    code, out, _ = living(*STATUS)
    assert (code, "  first boot  failed: step 'cli': no \\x07disk (hint: make room)\n" in out) == (1, True)


def test_a_server_that_does_not_run(living: Place, portal: SiteStandIn) -> None:
    living.arm.state.power[server_id(living.arm).lower()] = "deallocated"
    code, out, _ = living(*STATUS)
    assert (code, portal.requests) == (1, [])
    line = "deallocated; `az vm start --resource-group minimal-rg --name minimal-server` starts it"
    assert f"  server      {line}\n" in out
    assert "not known: the server is deallocated" in out


def test_a_server_of_somebody_else(living: Place, portal: SiteStandIn) -> None:
    """Its address and its certificate are not among the outputs, and Azure is not asked for a VM that is not ours."""
    (living.folder / "minimal.yaml").write_text(SECOND_CLUSTER)
    plan = plan_from(base=SECOND_CLUSTER)
    fields = {"provisioningState": "Succeeded", "outputs": {}}
    living.arm.state.put(record_id(living.arm, Names(plan.deployment_name, "", "")), properties=fields)
    code, out, err = living(*STATUS)
    assert (code, portal.requests, len(living.arm.requests)) == (4, [], 2), err  # a deployment, or a stack
    assert "  server      not known: the server is not this deployment's\n" in out
    assert "  cluster     not known: there is no output/second/ssh_config\n" in out


def test_another_folder(living: Place, portal: SiteStandIn) -> None:
    living.arm.state.resources[record_id(living.arm).lower()]["tags"] = {"cycleforge-content": "0" * 16}
    assert "with another content than this folder" in living(*STATUS)[1]


def test_a_site_that_has_another_certificate(living: Place, portal: SiteStandIn) -> None:
    place_of = living.arm.state.resources[record_id(living.arm).lower()]["properties"]["outputs"]
    place_of["serverCertificateSha256"]["value"] = ":".join(["AB"] * 32)
    code, out, _ = living(*STATUS)
    assert (code, "shows a different certificate" in out, portal.requests) == (4, True, [])


def test_a_site_without_the_cluster(living: Place, portal: SiteStandIn) -> None:
    portal.state.clusters.clear()
    code, out, _ = living(*STATUS)
    assert (code, "not known: the site has no cluster minimal" in out) == (4, True)


LOSSES: dict[str, Callable[[Place, SiteStandIn], None]] = {
    "record": lambda place, _: place.arm.lose("GET", f"*{record_id(place.arm)}", after_effect=False, times=9),
    "server": lambda place, _: place.arm.lose("GET", "*/instanceView", after_effect=False, times=9),
    "first_boot": lambda place, _: place.arm.lose("GET", "*/extensions/*", after_effect=False, times=9),
    "cluster": lambda _, portal: portal.lose("GET", "*", after_effect=False, times=9),
}


@pytest.mark.parametrize("part", LOSSES)
def test_a_connection_that_is_lost_takes_nothing_else_with_it(living: Place, portal: SiteStandIn, part: str) -> None:
    LOSSES[part](living, portal)
    row = asked_json(living)
    unknown = {name for name, value in row.items() if isinstance(value, dict) and "unknown" in value}
    assert unknown == ({"deployment", "cluster"} if part == "record" else {part})
    assert (row["known"], row["failed"]) == (False, False)


def test_what_azure_refuses_is_not_known(living: Place) -> None:
    living.arm.fail("GET", "*/instanceView", RefusedError(403, "AuthorizationFailed", "no\x1b[2J"))
    code, out, _ = living(*STATUS)
    assert (code, "server      not known: Azure refused: AuthorizationFailed: no\\x1b[2J\n" in out) == (4, True)
    assert "htc" in out
