"""The table of the parameters of Microsoft's template: complete, and each key that it names decides what it says.

`parameters-4.0.9.txt` has the names of all parameters of
https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt in its order.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml

from generator.catalog import template_parameters
from generator.catalog.slurm_facts import TemplateParameter
from generator.definition.model.definition import Definition
from generator.definition.walk import setting_at
from generator.files.file import Json
from generator.plan.deployment import Plan
from generator.render import bicep
from generator.render.cluster_form import prefix
from generator.render.cluster_template import late_parameters, render
from tests.bed.plans import merged, plan_from, slurm_of

NAMES = (Path(__file__).parent / "parameters-4.0.9.txt").read_text(encoding="utf-8").splitlines()
ROWS = {row.name: row for row in template_parameters().parameters}
WITH_KEY = [name for name, row in ROWS.items() if row.key]
PARTITION, MOUNT_POINT = "mixed", "/data"
GROUPS = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups"
VNET = f"{GROUPS}/net-rg/providers/Microsoft.Network/virtualNetworks/vnet"
SERVER = {
    "vm_id": f"{GROUPS}/first-rg/providers/Microsoft.Compute/virtualMachines/first-server",
    "release": "8.9.1",
    "locker_account_id": f"{GROUPS}/first-rg/providers/Microsoft.Storage/storageAccounts/firstlocker",
}
ACCOUNTING = {"type": "existing", "host": "mysql.example.com", "user": "slurm"}
MONITORING = {
    "workspace_id": f"{GROUPS}/mon-rg/providers/Microsoft.Monitor/accounts/metrics",
    "ingestion_endpoint": "https://metrics-abcd.southcentralus-1.metrics.ingest.monitor.azure.com/dataCollectionRules/"
    f"dcr-{32 * '0'}/streams/Microsoft-PrometheusMetrics/api/v1/write?api-version=2023-04-24",
    "data_collection_rule_id": f"{GROUPS}/mon-rg/providers/Microsoft.Insights/dataCollectionRules/rule",
}
FILES = {"type": "existing", "address": "10.9.0.4", "export_path": "/export"}
CERTIFICATE = (Path(__file__).parent / "authority.pem").read_text(encoding="utf-8")


def partitions(**more: Json) -> dict[str, Any]:
    """The three partitions of Microsoft's template and another one, each with this key."""
    names = ("hpc", "htc", "gpu", PARTITION)
    rows = [
        {"name": name, "vm_size": "Standard_D64ds_v5", "max_nodes": 2, "default": name == "htc"} | more
        for name in names
    ]
    return {"slurm": {"partitions": rows}}


def existing_network(compute: str) -> dict[str, Any]:
    return {
        "network": {
            "address_space": None,
            "existing": {"vnet_id": VNET, "subnets": {"server": "server", "compute": compute}},
        }
    }


def high_availability(**scheduler: Json) -> dict[str, Any]:
    files = FILES | {"address": "10.9.0.5"}
    return {"storage": {"home": FILES, "sched": files}, "slurm": {"scheduler": {"high_availability": True} | scheduler}}


def accounting(**more: Json) -> dict[str, Any]:
    return {"slurm": {"accounting": ACCOUNTING | more}}


def old_slurm(version: str) -> dict[str, Any]:
    """The newest release of cyclecloud-slurm that installs Slurm in more than one version."""
    slurm = {"project_version": "4.0.0", "version": version, "image": "cycle.image.ubuntu22"}
    return {"server": {"release": "8.7.2"}, "slurm": slurm}


def existing_server(**more: Json) -> dict[str, Any]:
    network = existing_network("compute")
    del network["network"]["existing"]["subnets"]["server"]
    return {"admin": {"ssh_public_key": None}, "server": {"existing": SERVER | more}} | network


SAMPLES: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "location": ({}, {"location": "westeurope"}),
    "tags": ({}, {"tags": {"team": "research"}}),
    "monitoring": ({}, {"monitoring": MONITORING}),
    "monitoring.ingestion_endpoint": (
        {"monitoring": MONITORING},
        {"monitoring": {"ingestion_endpoint": MONITORING["ingestion_endpoint"].replace("abcd", "efgh")}},
    ),
    "network.existing.subnets.compute": (existing_network("compute"), existing_network("nodes")),
    "server.existing.account": (existing_server(), existing_server(account="other")),
    "slurm.accounting": ({}, accounting()),
    "slurm.accounting.certificate": (accounting(), accounting(certificate=CERTIFICATE)),
    "slurm.accounting.database": (accounting(), accounting(database="acct")),
    "slurm.accounting.host": (accounting(), accounting(host="other.example.com")),
    "slurm.accounting.user": (accounting(), accounting(user="writer")),
    "slurm.autoscale": ({}, {"slurm": {"autoscale": False}}),
    "slurm.host_names.node_name_is_host_name": ({}, {"slurm": {"host_names": {"node_name_is_host_name": False}}}),
    "slurm.host_names.node_prefix": ({}, {"slurm": {"host_names": {"node_prefix": "lab-"}}}),
    "slurm.host_names.scheduler": ({}, {"slurm": {"host_names": {"scheduler": "lab-head"}}}),
    "slurm.launch_parameters": ({}, {"slurm": {"launch_parameters": "enable_nss_slurm"}}),
    "slurm.login.count": ({}, {"slurm": {"login": {"count": 3}}}),
    "slurm.login.extra_projects": ({}, {"slurm": {"login": {"extra_projects": ["misc_ndv4"]}}}),
    "slurm.login.image": ({}, {"slurm": {"login": {"image": "cycle.image.ubuntu22"}}}),
    "slurm.login.max_count": ({}, {"slurm": {"login": {"max_count": 7}}}),
    "slurm.login.vm_size": ({}, {"slurm": {"login": {"vm_size": "Standard_D8as_v5"}}}),
    "slurm.partitions[].extra_projects": (partitions(), partitions(extra_projects=["misc_ndv4"])),
    "slurm.partitions[].image": (partitions(), partitions(image="cycle.image.ubuntu22")),
    "slurm.partitions[].max_nodes": (partitions(), partitions(max_nodes=3)),
    "slurm.partitions[].max_scale_set_size": (partitions(), partitions(max_scale_set_size=50)),
    "slurm.partitions[].node_health_checks": (partitions(), partitions(node_health_checks=True)),
    "slurm.partitions[].os_disk_gb": (partitions(), partitions(os_disk_gb=128)),
    "slurm.partitions[].spot": (partitions(), partitions(spot=True)),
    "slurm.partitions[].spot_max_price_usd_per_hour": (
        partitions(spot=True),
        partitions(spot=True, spot_max_price_usd_per_hour=2.5),
    ),
    "slurm.partitions[].vm_size": (partitions(), partitions(vm_size="Standard_D32ds_v5")),
    "slurm.partitions[].vm_sizes": (
        partitions(),
        partitions(vm_size=None, vm_sizes=["Standard_D64ds_v5", "Standard_D32ds_v5"]),
    ),
    "slurm.partitions[].zone": (partitions(), partitions(zone="1")),
    "slurm.public_addresses": (
        {
            "network": {"access": "public", "allowed_sources": ["203.0.113.0/24"]},
            "server": {"image_version": "8.9.220260810"},
        },
        {"slurm": {"public_addresses": "all"}},
    ),
    "slurm.scheduler.backup_zone": (high_availability(zone="1"), high_availability(zone="1", backup_zone="2")),
    "slurm.scheduler.extra_projects": ({}, {"slurm": {"scheduler": {"extra_projects": ["misc_ndv4"]}}}),
    "slurm.scheduler.high_availability": ({}, high_availability()),
    "slurm.scheduler.image": ({}, {"slurm": {"scheduler": {"image": "cycle.image.ubuntu22"}}}),
    "slurm.scheduler.vm_size": ({}, {"slurm": {"scheduler": {"vm_size": "Standard_D8as_v5"}}}),
    "slurm.scheduler.zone": (high_availability(), high_availability(zone="1")),
    "slurm.settings": ({}, {"slurm": {"settings": {"SchedulerTimeSlice": 60}}}),
    "slurm.terminate_notification": ({}, {"slurm": {"terminate_notification": True}}),
    "slurm.version": (old_slurm("24.05.6-1"), old_slurm("24.11.3-1")),
    "storage.mounts": ({}, {"storage": {"mounts": [FILES | {"path": MOUNT_POINT}]}}),
    **{
        f"storage.mounts[].{key}": (
            {"storage": {"mounts": [FILES | {"path": MOUNT_POINT}]}},
            {"storage": {"mounts": [FILES | {"path": MOUNT_POINT} | {key: value}]}},
        )
        for key, value in {
            "address": "10.9.0.7", "export_path": "/other", "mount_options": "ro", "path": "/scratch",
            "protocol": "lustre",
        }.items()
    },
    **{
        f"storage.{role}.{key}": ({"storage": {role: FILES}}, {"storage": {role: FILES | {key: value}}})
        for role in ("home", "sched")
        for key, value in {
            "address": "10.9.0.7", "export_path": "/other", "mount_options": "ro", "protocol": "lustre",
        }.items()
    },
    **{f"storage.{role}.type": ({}, {"storage": {role: FILES}}) for role in ("home", "sched")},
    **{
        f"storage.{role}.size_gb": ({}, {"storage": {role: {"type": "nfs", "size_gb": 2048}}})
        for role in ("home", "sched")
    },
}  # fmt: skip
"""Key → a definition without it, and what adds it or changes it."""


def test_every_parameter_is_there_once_and_in_order() -> None:
    assert len(NAMES) == len(set(NAMES)) == 97
    assert [row.name for row in template_parameters().parameters] == NAMES
    assert all((row.key is None) != (row.reason is None) for row in ROWS.values())


def test_every_key_has_a_sample() -> None:
    assert {ROWS[name].key for name in WITH_KEY} == set(SAMPLES)


@cache
def rendered(*changes: str) -> tuple[Plan, str, dict[str, Json]]:
    plan = plan_from(*changes)
    files, start = render(plan), PurePosixPath("cluster") / slurm_of(plan).cluster_name
    texts = (files[start.with_suffix(end)].content.decode() for end in (".txt", ".params.json"))
    template, values = texts
    return plan, template, json.loads(values)


@pytest.mark.parametrize("key", SAMPLES)
def test_the_key_is_one_of_the_model(key: str) -> None:
    before, change = SAMPLES[key]
    data = merged(before, change)
    path = tuple(part for step in key.split(".") for part in ((step[:-2], 0) if step.endswith("[]") else (step,)))
    value: Any = data
    for step in path:
        value = value[step]
    found, above = setting_at(Definition, path, data), setting_at(Definition, path[:-1], data)
    assert found is not None
    assert found is not above


@pytest.mark.parametrize("name", WITH_KEY)
def test_the_key_decides_the_parameter(name: str) -> None:
    row = ROWS[name]
    before, change = (yaml.safe_dump(each) for each in SAMPLES[row.key or ""])
    assert observed(row, before) != observed(row, before, change)


def observed(row: TemplateParameter, *changes: str) -> Json:
    """What a cluster of this plan has of a parameter: its value, whether there is one, what the deployment fills in."""
    plan, template, values = rendered(*changes)
    if row.in_ == "template":
        return mounted_and_initialised(template)
    own = (row.own or row.name).format(Partition=prefix(PARTITION), Path=prefix(MOUNT_POINT.strip("/")))
    fact = late_parameters(plan).get(own)
    return [values.get(own), own in values, fact and filled_in(plan, fact)]


def filled_in(plan: Plan, fact: str) -> Json:
    """The lines of `main.bicep` that give a late parameter its value."""
    main = bicep.render(plan, ("payload",))[PurePosixPath("main.bicep")].content.decode()
    return [line for line in main.splitlines() if line.strip().startswith(f"{fact}:")]


def mounted_and_initialised(template: str) -> Json:
    """The lines of a template that mount a file system or run a project."""
    starts = ("mountpoint", "[[[cluster-init")
    return [line for line in template.splitlines() if line.strip().startswith(starts)]
