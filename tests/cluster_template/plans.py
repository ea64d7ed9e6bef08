"""Plans whose templates the tests look at; each differs from the smallest definition in what its name says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from generator.plan.deployment import Plan
from tests.bed.plans import plan_from

GROUP = "/subscriptions/11111111-2222-3333-4444-555555555555/resourceGroups/m/providers"
WORKSPACE = f"{GROUP}/Microsoft.Monitor/accounts/w"
RULE = f"{GROUP}/Microsoft.Insights/dataCollectionRules/r"
ENDPOINT = (
    "https://metrics-abcd.southcentralus-1.metrics.ingest.monitor.azure.com"
    f"/dataCollectionRules/dcr-{'0' * 32}/streams/Microsoft-PrometheusMetrics/api/v1/write?api-version=2023-04-24"
)

# A GPU partition with a Lustre scratch, NetApp Files home, new database and metrics; CPU nodes are the default.
GPU = f"""
name: llm
network: {{address_space: 10.50.0.0/19}}
storage:
  home: {{type: anf, size_tib: 4}}
  mounts: [{{path: /data, type: amlfs, tier: 250, size_tib: 128}}]
slurm:
  start_cluster: true
  accounting: {{type: new}}
  scheduler: {{os_disk_gb: 128}}
  login: {{count: 2, max_count: 4}}
  partitions:
    - name: hpc
      vm_size: Standard_ND96amsr_A100_v4
      image: microsoft-dsvm:ubuntu-hpc:2204:latest
      max_nodes: 128
      max_scale_set_size: 128
      large_scale_set_approved: true
      zone: "1"
      os_disk_gb: 256
      dampen_memory_percent: 5
      node_health_checks: true
      configuration: {{site.note: 'costs $5 "a day"'}}
    - {{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 8, default: true}}
monitoring: {{workspace_id: {WORKSPACE}, ingestion_endpoint: "{ENDPOINT}", data_collection_rule_id: {RULE}}}
jobs: null
"""
# Two schedulers in two zones; /sched and /shared are on an existing NFS server.
HIGH_AVAILABILITY = """
storage:
  sched: {type: existing, address: 10.0.0.4, export_path: /export/sched}
  home: {type: existing, address: 10.0.0.4, export_path: /export/home, mount_options: hard}
slurm: {scheduler: {high_availability: true, zone: "1", backup_zone: "2"}}
"""
# One spot partition with a price limit and one without.
SPOT = """
slurm:
  partitions:
    - name: htc
      vm_size: Standard_D64ds_v5
      max_nodes: 2
      default: true
      spot: true
      spot_max_price_usd_per_hour: 0.75
    - {name: low-cost, vm_size: Standard_D64ds_v5, max_nodes: 2, spot: true}
"""
# Two blob containers, one inside a Lustre file system's folder, and a static pool without health checks.
CONTAINERS = """
network: {address_space: 10.50.0.0/20}
storage:
  mounts:
    - {path: /data, type: amlfs, tier: 250, size_tib: 128}
    - {path: /data/cache, type: existing, address: 10.1.0.4, export_path: /cache}
    - {path: /models, type: blob, storage_account: datasets0001, container: c-models}
    - {path: /data/raw, type: blob, storage_account: datasets0001, container: c-raw-data}
slurm: {autoscale: false, healthagent: false, pin_project: true}
"""

gpu = partial(plan_from, GPU)
high_availability = partial(plan_from, HIGH_AVAILABILITY)
spot = partial(plan_from, SPOT)
containers = partial(plan_from, CONTAINERS)

ALL: dict[str, Callable[[], Plan]] = {
    "minimal": plan_from,
    "gpu": gpu,
    "high_availability": high_availability,
    "spot": spot,
    "containers": containers,
}
