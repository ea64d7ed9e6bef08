"""Good definitions are silent."""

from __future__ import annotations

import pytest

from tests.rules.annotations import findings_of

NETWORK = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/network/providers/Microsoft.Network"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f admin@example.com"

MINIMAL = """\
name: minimal
location: southcentralus
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}
"""

EVERYTHING = f"""\
name: everything
location: southcentralus
admin: {{username: hpcadmin, ssh_public_key: {KEY}}}
azure: {{subscription_id: 00000000-0000-0000-0000-000000000000, resource_group: research-(hpc)}}
network:
  address_space: 10.50.0.0/20
  access: hub
  hub: {{vnet_id: {NETWORK}/virtualNetworks/hub, address_spaces: [10.0.0.0/16, 192.168.0.0/24]}}
  blob_dns_zone: {NETWORK}/privateDnsZones/privatelink.blob.core.windows.net
server: {{vm_size: Standard_D8as_v5, release: 8.9.0, java_heap_mb: 8192, jumpbox: {{}}}}
storage:
  locker: {{account_name: reflocker0001, container: my-projects}}
  home: {{type: anf, size_tib: 4, zone: '1'}}
  sched: {{type: anf, size_tib: 1, zone: '1'}}
  mounts:
    - {{path: /data, type: amlfs, tier: 250, size_tib: 128, zone: '1'}}
    - {{path: /opt/models, type: existing, address: files.example.com, export_path: /models}}
    - {{path: /datasets, type: blob, storage_account: datasets0001, container: data}}
slurm:
  cluster_name: deeplearning
  version: 25.11.4
  project_version: 4.0.8
  scheduler: {{high_availability: true, zone: '1', backup_zone: '2'}}
  login: {{count: 2, max_count: 4, extra_projects: [site, 'site:login']}}
  accounting: {{type: new, server_name: everything-db, database: everything_acct_db}}
  settings: {{SchedulerTimeSlice: 60, JobSubmitPlugins: lua, licenses: "ansys:10"}}
  launch_parameters: use_interactive_step,enable_nss_slurm
  partitions:
    - name: htc
      vm_size: Standard_D64ads_v5
      max_nodes: 40
      default: true
      spot: true
      spot_max_price_usd_per_hour: 1.5
      configuration: {{site.owner: research, slurm.hpcx: true}}
    - {{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 100, zone: '1', image: almalinux8}}
    - name: large
      vm_size: Standard_HB176rs_v4
      max_nodes: 300
      large_scale_set_approved: true
      max_scale_set_size: 300
    - {{name: v100, vm_size: Standard_ND40rs_v2, max_nodes: 1}}
    - {{name: arm, vm_size: Standard_D4ps_v5, max_nodes: 4, image: cycle.image.ubuntu24}}
projects:
  - {{name: site, version: 1.2.0}}
tags: {{owner: research, cost-center: '4711'}}
jobs:
  add_validation: [smoke]
  training: [{{recipe: mpt, partition: gpu, nodes: 2, settings: {{MODEL: mpt-30b}}}}]
"""

PUBLIC = """\
name: public
location: westus
network: {access: public, allowed_sources: [203.0.113.0/24, 198.51.100.7/32]}
slurm:
  autoscale: false
  accounting: {type: existing, host: 10.1.2.3, user: slurm}
  image: microsoft-dsvm:ubuntu-hpc:2204:22.04.2026070101
  partitions:
    - {name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2, dampen_memory_percent: 10}
"""

EXISTING = f"""\
name: existing
location: southcentralus
network:
  existing:
    vnet_id: {NETWORK}/virtualNetworks/vnet
    subnets: {{server: Server_1, compute: compute, lustre: lustre}}
storage:
  mounts:
    - {{path: /data, type: amlfs, tier: 40, size_tib: 96}}
slurm:
  partitions:
    - {{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 2}}
silence: []
"""


@pytest.mark.parametrize(
    "text", [MINIMAL, EVERYTHING, PUBLIC, EXISTING], ids=["minimal", "everything", "public", "existing"]
)
def test_good_definitions_are_silent(text: str) -> None:
    assert findings_of(text) == []
