"""The files below /etc/slurm of a cluster in the cloud, as cyclecloud-slurm 4.0.9 and its azslurm write them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from generator.plan.cluster import SlurmPlan
from generator.plan.slurm_conf import newer_keys
from tests.bed.slurm.template import slurm_conf

CLUSTER, CONTROLLER = "emu", "scheduler"
ACCOUNTING = {
    "accounting.conf": f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={CONTROLLER}
AccountingStorageTRES=gres/gpu
""",
    "slurmdbd.conf": f"""\
AuthType=auth/munge
DbdHost={CONTROLLER}
SlurmUser=root
DebugLevel=verbose
LogFile=/var/log/slurmctld/slurmdbd.log
PidFile=/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageLoc={CLUSTER}_acct_db
StorageUser=root
""",
}
"""With accounting, as install.py of cyclecloud-slurm 4.0.9 writes it; the database has no password here."""
CONTROLLER_ADDRESS = "10.77.0.254"
HOOK = "#!/usr/bin/env bash\nexit 0\n"
INSTEAD = {
    "JobAcctGatherType": "jobacct_gather/none",
    "ProctrackType": "proctrack/linuxproc",
    "TaskPlugin": "task/none",
}
"""What a container cannot have, and what it has instead: cgroups belong to the host."""
FEW_NODES = "200"
"""MaxNodeCount; 10000 in production. An answer about nodes has a record for every place in the table, also for empty
ones: that is three quarters of the CPU time of a `sinfo` or `scontrol`, of which tests start thousands.
Source: SchedMD/slurm, src/slurmctld/node_mgr.c, pack_all_node."""
SOON = {"sched_interval": "1", "bf_interval": "1", "batch_sched_delay": "0"}
"""Slurm's own: 60 s, 30 s and 3 s until it looks at a job again, which only a test cannot wait for."""

FASTER = 30
"""Times the speed of power saving: nobody's test waits for five idle minutes."""


@dataclass(frozen=True)
class Pool:
    """A partition and its nodes, named as azslurm names them. With a `feature` they are dynamic: none at first."""

    name: str
    nodes: int
    prefix: str = f"{CLUSTER}-"
    gpus: int = 0
    cpus: int = 4
    memory_mib: int = 4000
    default: bool = False
    feature: str = ""

    @property
    def node_names(self) -> tuple[str, ...]:
        """`<prefix><node array>-<n>`, n from 1."""
        return tuple(f"{self.prefix}{self.name}-{number}" for number in range(1, self.nodes + 1))


def pools_of(plan: SlurmPlan, most: int = 2) -> tuple[Pool, ...]:
    """The partitions of a plan with its names, CPUs and GPUs, and at most so many nodes in each."""
    return tuple(
        Pool(
            array.partition,
            min(array.max_nodes, most),
            prefix=f"{plan.cluster_name}-",
            gpus=array.hardware.gpu_count,
            cpus=array.hardware.vcpus or 1,
            default=array.is_default,
        )
        for array in plan.node_arrays
    )


def on_this_host(lines: Iterable[str], release: tuple[int, ...]) -> tuple[str, ...]:
    """Lines of slurm.conf as a container takes them: what it cannot have is replaced, what takes long is shorter.

    What this release of Slurm does not know yet is left out: its slurmctld would not start.
    """
    unknown = newer_keys(".".join(map(str, release)))
    return tuple(_on_this_host(line) for line in lines if line.partition("=")[0].lower() not in unknown)


def _on_this_host(line: str) -> str:
    name, _, value = line.partition("=")
    for refused, instead in INSTEAD.items():
        if name.lower() == refused.lower():
            return f"{name}={instead}"
    if name.lower() == "suspendtime" and value.isdigit():
        return f"{name}={max(1, int(value) // FASTER)}"
    return f"{name}={sooner(value)}" if name.lower() == "schedulerparameters" else line


def sooner(parameters: str) -> str:
    """SchedulerParameters with short intervals where the line says nothing about them."""
    named = {word.partition("=")[0] for word in parameters.split(",")}
    return ",".join([parameters, *(f"{name}={value}" for name, value in SOON.items() if name not in named)])


def autoscales(text: str) -> bool:
    """What azslurm concludes from slurm.conf itself, not from the files that it includes: the last SuspendTime counts.

    Source: cyclecloud-slurm 4.0.9, slurmcc/util.py, is_autoscale_enabled.
    """
    answer = True
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "SuspendTime":
            word = value.split()[0]
            answer = word not in ("NONE", "INFINITE") and int(word) >= 0
    return answer


def config_files(pools: Sequence[Pool], lines: Sequence[str], release: tuple[int, ...]) -> dict[str, str]:
    settings: dict[str, str | None] = {
        "ClusterName": CLUSTER,
        "StateSaveLocation": "/var/spool/slurmctld",
        # slurmctld runs the programs of power saving, and they start nodes, which needs root.
        "SlurmUser": "root",
        "SlurmdParameters": "config_overrides",
        "SlurmctldParameters": "idle_on_node_suspend,power_save_interval=1",
        "SuspendTimeout": "4",
        "ResumeTimeout": str(1800 // FASTER),
        "SuspendTime": str(300 // FASTER),
        # The flag came with 23.02.
        **({"ReconfigFlags": None} if release < (23, 2) else {}),
        "MaxNodeCount": FEW_NODES,
        "SchedulerParameters": sooner("max_switch_wait=24:00:00"),
        **INSTEAD,
    }
    text = slurm_conf(settings, f"{CONTROLLER}({CONTROLLER_ADDRESS})", on_this_host(lines, release))
    return {
        "slurm.conf": text,
        "azure.conf": azure_conf(pools, autoscale=autoscales(text)),
        "gres.conf": gres_conf(pools),
        "accounting.conf": "AccountingStorageType=accounting_storage/none\n",
        "keep_alive.conf": "# Managed by azslurmd\n",
        "site_specific.conf": "# site specific slurm configuration\n",
        "plugstack.conf": "",
        # Where no cgroups are, the newer ones want to be told; 22.05 does not know the word.
        "cgroup.conf": "" if release < (23, 11) else "CgroupPlugin=disabled\n",
        # Slurm takes an empty folder of hooks for a hook that failed.
        "prolog.d/90-imex_prolog.sh": HOOK,
        "epilog.d/90-imex_epilog.sh": HOOK,
    }


def azure_conf(pools: Sequence[Pool], *, autoscale: bool) -> str:
    """What `azslurm partitions` prints. Source: cyclecloud-slurm 4.0.9, slurmcc/cli.py, _partitions."""
    lines = []
    for pool in pools:
        default = "YES" if pool.default else "NO"
        if pool.feature:
            lines.append(f"Nodeset={pool.name}ns Feature={pool.feature}")
            lines.append(f"PartitionName={pool.name} Nodes={pool.name}ns" + (" Default=YES" if pool.default else ""))
            continue
        nodes = ",".join(pool.node_names)
        gres = f" Gres=gpu:{pool.gpus}" if pool.gpus else ""
        lines.append(
            f"PartitionName={pool.name} Nodes={nodes} Default={default} "
            f"DefMemPerCPU={pool.memory_mib // pool.cpus} MaxTime=INFINITE State=UP"
        )
        lines.append(
            f"Nodename={nodes} Feature=cloud STATE={'CLOUD' if autoscale else 'FUTURE'} CPUs={pool.cpus} "
            f"ThreadsPerCore=1 RealMemory={pool.memory_mib}{gres}"
        )
    return "\n".join([*lines, ""])


def gres_conf(pools: Sequence[Pool]) -> str:
    """What `azslurm scale` writes for sizes with NVIDIA GPUs. Source: slurmcc/cli.py, _generate_gres_conf."""
    lines = []
    for pool in pools:
        if pool.gpus and not pool.feature:
            files = "/dev/nvidia0" if pool.gpus == 1 else f"/dev/nvidia[0-{pool.gpus - 1}]"
            lines.append(f"Nodename={','.join(pool.node_names)} Name=gpu Count={pool.gpus} File={files}")
    return "\n".join([*lines, ""])


def hosts(names: Iterable[str]) -> str:
    """/etc/hosts: every node has an address of its own, from 10.77.1.1 on."""
    lines = ["127.0.0.1 localhost", f"{CONTROLLER_ADDRESS} {CONTROLLER}"]
    return "\n".join(
        [*lines, *(f"10.77.{1 + place // 250}.{1 + place % 250} {name}" for place, name in enumerate(names)), ""]
    )
