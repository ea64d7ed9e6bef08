"""Definitions that leave out a part: without a cluster, beside an existing server, and both."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from generator import pipeline
from generator.files.file import Files
from generator.plan.deployment import Plan
from tests.bed.plans import KEY

_SUBSCRIPTION = "/subscriptions/00000000-0000-0000-0000-000000000000"
_FIRST = f"{_SUBSCRIPTION}/resourceGroups/first-rg/providers"
SERVER = f"""
server:
  existing:
    vm_id: {_FIRST}/Microsoft.Compute/virtualMachines/first-server
    release: 8.9.1
    locker_account_id: {_FIRST}/Microsoft.Storage/storageAccounts/firstlocker0001
"""
INFRASTRUCTURE = f"""
name: infrastructure
location: southcentralus
admin: {{ssh_public_key: "{KEY}"}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts:
    - {{path: /data, type: amlfs, tier: 250, size_tib: 128}}
"""
"""Server, network, storage and locker; /sched would be a disk of the scheduler, so there is none."""
SECOND_CLUSTER = f"""
name: second
location: southcentralus
{SERVER}
network:
  existing:
    vnet_id: {_FIRST}/Microsoft.Network/virtualNetworks/first-vnet
    subnets: {{compute: compute}}
storage:
  mounts:
    - {{path: /old, type: existing, address: 10.0.0.4, export_path: /export/old}}
slurm:
  accounting: {{type: existing, host: mysql.example.com, user: slurm}}
  partitions:
    - {{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 4}}
"""
"""A cluster beside the first one of a server that another deployment made."""
STORAGE_ALONE = f"""
name: storage
location: southcentralus
{SERVER}    principal_id: 11111111-1111-1111-1111-111111111111
    assign_locker_role: false
network:
  access: hub
  hub: {{vnet_id: {_FIRST}/Microsoft.Network/virtualNetworks/first-vnet, use_remote_gateway: false}}
storage:
  mounts:
    - {{path: /data, type: amlfs, tier: 250, size_tib: 128}}
"""
"""Neither server nor cluster: a file system in a new network, for clusters of a server that exists."""
TEXTS = {"infrastructure": INFRASTRUCTURE, "second": SECOND_CLUSTER, "storage": STORAGE_ALONE}


@cache
def plan_of(name: str) -> Plan:
    """The plan of one of them; a problem of any level fails, but for what depends on this machine."""
    checked = pipeline.check(TEXTS[name].encode(), f"{name}.yaml", {}, Path())
    assert [problem for problem in checked.problems if problem.rule_id != "I1591"] == []
    assert checked.plan is not None
    return checked.plan


@cache
def rendered(name: str) -> Files:
    return pipeline.render(plan_of(name), Path())
