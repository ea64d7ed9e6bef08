"""A living cluster: real Slurm whose nodes are State=CLOUD and come and go through the programs of power saving.

    with running_cloud(lines=plan.additional_config, pools=pools_of(plan)) as cloud:
        cloud.ok("srun --nodes=1 hostname")        # the ResumeProgram has started a node for it
        cloud.wait("it is deleted", lambda: cloud.vms() == set())

`cloud` is a `tests.bed.slurm.client.Client`: submit, finish, wait_job, states, flags, wait… `pools` are partitions
with their nodes (`Pool`), `lines` come last in slurm.conf, as additional_slurm_config does, `files` replaces or adds
files of /etc/slurm (azure.conf, gres.conf, site_specific.conf…), `accounting=True` adds slurmdbd and a MariaDB. One
cluster per module of tests: it starts in half a second, five with accounting, and costs nothing while it waits.

It needs root and Debian's packages of Slurm, and no machine: daemons of the host in namespaces of their own, so that
paths, ports, addresses and host names are those of a CycleCloud cluster however many run at once. The first process of
the namespaces lives as long as the test's process; when that is killed, the kernel ends everything below it. A node is
a process too, below which slurmd and its jobs run: `kill` ends it like an eviction, the SuspendProgram like Azure.

A batch job waits up to 30 s for a node that has just joined (slurmctld looks that often), `srun` four, and 30 as well
with 24.11. The clock of power saving runs 30 times as fast: `idle_timeout_s: 60` is two seconds.

Slurm is the host's, Debian 12's 22.05, or the one that CYCLEFORGE_SLURM names (`tests.bed.slurm.newer`). What 22.05
lacks of CycleCloud's 25.x, as SuspendExcStates and MaxBatchRequeue (both 23.02), is always tried with `release=NEWER`.
Where releases differ, a test asks `cloud.slurm_release` and says what each does.
"""

from tests.bed.cloud.cluster import Cloud, running_cloud
from tests.bed.cloud.files import Pool, on_this_host, pools_of

__all__ = ["Cloud", "Pool", "on_this_host", "pools_of", "running_cloud"]
