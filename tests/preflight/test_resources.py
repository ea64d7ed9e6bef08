"""VM sizes, quota, images, names, file systems and the database, asked of the stand-in: provoked once, mended once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from generator.azure.writer import Writer
from generator.files import assets
from generator.operate.asking import session_of
from tests.bed.arm import Arm
from tests.bed.arm.offers import LUSTRE_SKUS, NODE_IMAGE, REGIONS, SKUS, terms_path
from tests.bed.arm.state import State
from tests.bed.plans import plan_from
from tests.preflight.asked import found_by, report_of

DEFINITIONS = assets.root() / "cluster_defs"
Change = Callable[[State], object]
COMPUTE = "/providers/microsoft.compute/locations/eastus"
SERVER_TERMS = terms_path("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2")
IMAGE = f"{COMPUTE}/publishers/microsoft-dsvm/artifacttypes/vmimage/offers/ubuntu-hpc/skus/2204/versions"
MYSQL = "/providers/microsoft.dbformysql/locations/eastus/capabilitysets/default"
GROUP = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/gpt3-h100-rg"


def size(state: State, name: str) -> dict[str, Any]:
    listed: Any = state.documents[SKUS]
    return next(each for each in listed if each["name"] == name and each["locations"] == ["eastus"])


def limit(state: State, name: str, value: int, used: int = 0) -> None:
    for region in REGIONS:
        usages: Any = state.documents[f"/providers/microsoft.compute/locations/{region}/usages"]
        row = next(each for each in usages if each["name"]["value"].lower() == name.lower())
        row |= {"limit": value, "currentValue": used}


def document(state: State, path: str) -> Any:
    return state.documents[path]


def restricted(state: State, name: str, kind: str, reason: str, *zones: str) -> None:
    info = {"locations": ["eastus"], "zones": list(zones)}
    size(state, name)["restrictions"] = [
        {"type": kind, "values": ["eastus"], "restrictionInfo": info, "reasonCode": reason}
    ]


def without(state: State, path: str, name: str) -> None:
    state.documents[path] = [each for each in document(state, path) if each["name"] != name]


def changed(path: str, *keys: str | int, **fields: Any) -> Change:
    """Other values somewhere in a document."""

    def change(state: State) -> None:
        place: Any = state.documents[path]
        for key in keys:
            place = place[key]
        place.update(fields)

    return change


def all_changed(path: str, **fields: Any) -> Change:
    """Other values in every item of a list."""
    return lambda state: [each.update(fields) for each in document(state, path)]


GPT3 = plan_from(base=(DEFINITIONS / "gpt3-h100.yaml").read_text())
H100, DURABLE = "Standard_ND96isr_H100_v5", "AMLFS-Durable-Premium-500"
NO_ACCESS = "NotAvailableForSubscription"
LUSTRE, NETAPP = (f"/providers/microsoft.{name}/locations/eastus/usages" for name in ("storagecache", "netapp"))
ACCOUNTS = LUSTRE.replace("storagecache", "storage")
PROVOKED: dict[str, tuple[str, Change]] = {
    "no such size": ("E4301", lambda state: without(state, SKUS, H100)),
    "no access to a size": ("E4301", lambda state: restricted(state, H100, "Location", NO_ACCESS)),
    "other figures": ("W4304", lambda state: size(state, H100)["capabilities"][0].update(value="95")),
    "family without quota": ("E4305", lambda state: limit(state, "standardNDSH100v5Family", 96)),
    "family below the maximum": ("W4306", lambda state: limit(state, "standardDDSv5Family", 2000)),
    "region full": ("E4305", lambda state: limit(state, "cores", 100)),
    "no addresses": ("E4307", changed(LUSTRE.replace("storagecache", "network"), 1, currentValue=999)),
    "no accounts": ("E4308", changed(ACCOUNTS, 0, currentValue=250)),
    "no such image": ("E4401", lambda state: state.documents.pop(IMAGE)),
    "terms": ("E4404", changed(SERVER_TERMS, "properties", accepted=False)),
    "group elsewhere": ("E4502", lambda state: state.put(GROUP, location="westus", tags={"cycleforge": "gpt3-h100"})),
    "group of others": ("W4503", lambda state: state.put(GROUP, location="eastus")),
    "tier not sold": ("E4701", lambda state: without(state, LUSTRE_SKUS, DURABLE)),
    "zone not sold": ("E4701", all_changed(LUSTRE_SKUS, locationInfo=[{"location": "East US", "zones": ["2"]}])),
    "too many file systems": ("E4702", changed(LUSTRE, 0, currentValue=4)),
    "subnet too small": ("E4703", lambda state: state.documents.update({"size of lustre": 9000})),
    "no netapp quota": ("E4704", changed(NETAPP, 0, "properties", currentValue=97)),
    "no mysql": ("E4707", changed(MYSQL, "properties", supportedFlexibleServerEditions=[])),
    "no mysql version": ("E4708", changed(MYSQL, "properties", supportedServerVersions=[{"name": "5.7"}])),
}
"""What is done to a healthy subscription → the rule that finds it, alone."""


EASTUS = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups"
VERSIONS = f"{EASTUS}/images/providers/Microsoft.Compute/galleries/own/images/server/versions"
MANAGED = f"{EASTUS}/images/providers/Microsoft.Compute/images/nodes"
OTHERS = plan_from(f"""
azure: {{prefix: own}}
security: {{encryption_at_host: true, trusted_launch: true}}
server: {{image_id: {VERSIONS}/1.0.0}}
storage:
  locker: {{account_name: ownlocker}}
  home: {{type: anf, size_tib: 4, zone: "2"}}
slurm:
  image: microsoft-dsvm:ubuntu-hpc:2204:latest
  scheduler: {{image: {MANAGED}}}
  login: {{image: almalinux9}}
  accounting: {{type: new, server_name: own-database}}
  partitions: [{{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true, zone: "3", spot: true}}]
""")
ALMA = terms_path("almalinux", "almalinux-hpc", "9-hpc-gen2")
SOUTH = "/providers/microsoft.compute/locations/southcentralus"
NEWEST = f"{SOUTH}/{IMAGE.partition('eastus/')[2]}/{NODE_IMAGE}"
NETAPP_ZONES = "/providers/microsoft.netapp/locations/southcentralus/regioninfo"


def below(path: str) -> str:
    """A path as the documents have it."""
    return f"/{path.split('/', 3)[3]}".lower()


def own_images(state: State) -> None:
    """An image in a gallery, which has kept its plan, and a managed one."""
    gallery, version = below(VERSIONS), below(f"{VERSIONS}/1.0.0")
    plan = {"publisher": "almalinux", "product": "almalinux-hpc", "name": "9-hpc-gen2"}
    regions = [{"name": "South Central US", "regionalReplicaCount": 1}]
    state.documents.update({
        version: {"name": "1.0.0", "properties": {"publishingProfile": {"targetRegions": regions}}},
        gallery: [{"name": "1.0.0"}],
        gallery.removesuffix("/versions"): {"name": "server", "properties": {"purchasePlan": plan}},
        below(MANAGED): {"name": "nodes", "location": "southcentralus"},
    })  # fmt: skip


def others(state: State, kind: str, name: str) -> None:
    state.documents[f"names of {kind}"] = [name]


def abilities(state: State, **values: str) -> None:
    listed: Any = state.documents[SKUS]
    for each in listed:
        if each["name"] == "Standard_D64ds_v5":
            each["capabilities"] += [{"name": name, "value": value} for name, value in values.items()]


def zones(state: State, *names: str) -> None:
    listed: Any = state.documents[SKUS]
    for each in listed:
        each["locationInfo"][0]["zones"] = list(names)


DEPRECATED = {"imageState": "Deprecated", "alternativeOption": {"type": "Plan", "value": "another"}}
SOON = {"imageState": "ScheduledForDeprecation", "scheduledDeprecationTime": "2026-12-24T00:00:00+00:00"}
MORE: dict[str, tuple[str, Change]] = {
    "account of others": ("E4501", lambda state: others(state, "Microsoft.Storage/storageAccounts", "ownlocker")),
    "server of others": ("E4501", lambda state: others(state, "Microsoft.DBforMySQL/flexibleServers", "own-database")),
    "no spot": ("E4303", lambda state: abilities(state, TrustedLaunchDisabled="True")),
    "other zones": ("E4302", lambda state: zones(state, "1", "2")),
    "no spot quota": ("E4305", lambda state: limit(state, "lowPriorityCores", 63)),
    "deprecated": ("E4402", changed(NEWEST, "properties", imageDeprecationStatus=DEPRECATED)),
    "deprecated soon": ("W4403", changed(NEWEST, "properties", imageDeprecationStatus=SOON)),
    "no gallery image": ("E4401", lambda state: state.documents.pop(below(f"{VERSIONS}/1.0.0"))),
    "not replicated": ("E4401", changed(below(f"{VERSIONS}/1.0.0"), "properties", publishingProfile={})),
    "managed elsewhere": ("E4401", changed(below(MANAGED), location="eastus")),
    "terms by name": ("E4404 E4404", changed(ALMA, "properties", accepted=False)),
    "no netapp in the zone": ("E4705", changed(NETAPP_ZONES, "availabilityZoneMappings", 1, isAvailable=False)),
}


@pytest.mark.parametrize("case", MORE)
def test_more_findings_are_provoked_and_alone(arm: Arm, case: str) -> None:
    expected, change = MORE[case]
    own_images(arm.state)
    change(arm.state)
    assert found_by(arm, OTHERS) == expected.split()


def test_what_is_ours_is_not_in_our_way(arm: Arm) -> None:
    """The same definition a second time: names, addresses, quota and file systems of the first are its own."""
    state = arm.state
    own_images(state)
    own = f"{EASTUS}/own-rg"
    there = {"location": "southcentralus"}
    state.put(own, **there, tags={"cycleforge": "minimal"})
    state.put(f"{own}/providers/Microsoft.Storage/storageAccounts/ownlocker", **there)
    state.put(f"{own}/providers/Microsoft.DBforMySQL/flexibleServers/own-database", **there)
    hardware = {"hardwareProfile": {"vmSize": "Standard_D64ds_v5"}, "priority": "Spot"}
    for name in ("a", "b"):
        state.put(f"{own}/providers/Microsoft.Compute/virtualMachines/{name}", **there, properties=hardware)
    limit(state, "lowPriorityCores", 128, used=128)
    account = f"{own}/providers/Microsoft.NetApp/netAppAccounts/own-netapp"
    state.put(account, **there)
    state.put(f"{account}/capacityPools/home", **there, properties={"size": 4 * 2**40})
    changed(NETAPP.replace("eastus", "southcentralus"), 0, "properties", currentValue=100)(state)
    changed(ACCOUNTS.replace("eastus", "southcentralus"), 0, currentValue=250)(state)
    assert found_by(arm, OTHERS) == []
    limit(state, "lowPriorityCores", 128, used=129)
    assert found_by(arm, OTHERS) == ["W4306"]


def test_long_lists_come_in_pages(arm: Arm) -> None:
    arm.state.page_size = 9
    assert found_by(arm, GPT3) == []
    without(arm.state, SKUS, H100)
    assert found_by(arm, GPT3) == ["E4301"]


def test_accepting_terms_sends_the_document_back_that_was_read(arm: Arm) -> None:
    state = arm.state
    changed(SERVER_TERMS, "properties", accepted=False)(state)
    (finding,) = report_of(plan_from()).findings
    assert finding.hint is not None
    assert finding.hint.startswith("az vm image terms accept --publisher azurecyclecloud")
    assert finding.remedy is not None
    before = dict(document(state, SERVER_TERMS)["properties"])
    finding.remedy.apply(Writer(session_of(plan_from())))
    assert document(state, SERVER_TERMS)["properties"] == before | {"accepted": True}
    assert [each.rpartition("/")[2] for each in arm.changes] == ["current"]


def test_gpt3_h100_can_be_deployed_into_a_healthy_subscription(arm: Arm) -> None:
    assert found_by(arm, GPT3) == []


@pytest.mark.parametrize("case", PROVOKED)
def test_each_finding_is_provoked_and_alone(arm: Arm, case: str) -> None:
    expected, change = PROVOKED[case]
    change(arm.state)
    assert found_by(arm, GPT3) == [expected]
