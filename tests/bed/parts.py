"""Parts of plans for the renderers' tests, taken from plans that the pipeline made and varied by `dataclasses.replace`.

Prefer `plan_from` of tests/bed/plans.py, which takes a whole definition: its parts agree with each other.
"""

from __future__ import annotations

from msgspec.structs import replace

from generator.catalog import VmSize
from generator.definition.model.definition import Job
from generator.plan.deployment import Plan
from generator.plan.file_systems.existing_server import ExistingServer
from generator.plan.file_systems.managed_lustre import ManagedLustre
from generator.plan.file_systems.netapp import NetAppVolume
from generator.plan.jobs import Listed, job_plan
from generator.plan.nodes import NodeArrayPlan
from generator.plan.storage import FileSystems
from tests.bed.plans import plan_from, slurm_of

GPU = """
slurm:
  partitions:
    - {name: hpc, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
"""
STORAGE = """
network: {address_space: 10.50.0.0/20}
storage:
  home: {type: anf, size_tib: 4}
  mounts:
    - {path: /data, type: amlfs, tier: 250, size_tib: 128}
    - {path: /server, type: existing, address: 10.0.0.4}
"""


def minimal() -> Plan:
    """A new network behind a Bastion, built-in NFS, one CPU partition."""
    return plan_from()


def node_array(name: str, node: VmSize | None = None, **changes: object) -> NodeArrayPlan:
    """A partition of small CPU nodes, of A100 nodes, or of nodes of a given kind, and then as the changes say."""
    gpu, cpu = slurm_of(plan_from(GPU)).node_arrays
    found = gpu if node and node.gpu_count else replace(cpu, is_default=True)
    values: dict[str, object] = {"name": name, "partition": name, "hardware": node or found.hardware} | changes
    return replace(found, **values)


A100 = slurm_of(plan_from(GPU)).node_arrays[0].hardware


def hardware(vm_size: str = "Standard_D4as_v5", **changes: object) -> VmSize:
    return replace(slurm_of(minimal()).login.hardware, name=vm_size, **changes)


def mount(name: str, path: str, **changes: object) -> ExistingServer:
    """A share of a third party's NFS server."""
    (found,) = (each for each in plan_from(STORAGE).mounts if isinstance(each, ExistingServer))
    values: dict[str, object] = {"address": None, "export_path": path} | changes
    return replace(found, name=name, path=path, **values)


def lustre(path: str = "/data", size_gib: int = 128 * 1024, tier: int = 250) -> ManagedLustre:
    (found,) = (each for each in plan_from(STORAGE).mounts if isinstance(each, ManagedLustre))
    return replace(found, path=path, size_gib=size_gib, tier_mb_per_s_per_tib=tier)


def netapp_home() -> NetAppVolume:
    """A new NetApp Files volume for /shared."""
    home = slurm_of(plan_from(STORAGE)).home
    assert isinstance(home, NetAppVolume)
    return home


def with_jobs(plan: Plan, *jobs: Job) -> Plan:
    slurm = slurm_of(plan)
    file_systems = FileSystems(slurm.sched, slurm.home, plan.mounts)
    found = [job_plan(Listed(job, ("jobs",)), slurm, file_systems) for job in jobs]
    assert None not in found
    return replace(plan, jobs=tuple(job for job in found if job is not None))
