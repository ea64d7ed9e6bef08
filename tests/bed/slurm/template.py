"""The settings that cyclecloud-slurm 4.0.9 writes into slurm.conf, in its order of files.

Beds change what a host or a container does not have, and what a test cannot wait for; each says which and why.
Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm-install/templates/slurm.conf.template and install.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SETTINGS = {
    "MpiDefault": "none",
    "ProctrackType": "proctrack/cgroup",
    "ReturnToService": "2",
    "PropagateResourceLimits": "ALL",
    "SlurmctldPidFile": "/run/slurmctld.pid",
    "SlurmdPidFile": "/run/slurmd.pid",
    "SlurmdSpoolDir": "/var/spool/slurmd",
    "SlurmUser": "slurm",
    "SwitchType": "switch/none",
    "TaskPlugin": "task/affinity,task/cgroup",
    "SchedulerType": "sched/backfill",
    "SelectType": "select/cons_tres",
    "GresTypes": "gpu",
    "SelectTypeParameters": "CR_Core_Memory",
    "JobAcctGatherType": "jobacct_gather/none",
    "SlurmctldDebug": "debug",
    "SlurmctldLogFile": "/var/log/slurmctld/slurmctld.log",
    "SlurmctldParameters": "idle_on_node_suspend",
    "SlurmdDebug": "debug",
    "SlurmdLogFile": "/var/log/slurmd/slurmd.log",
    "DisableRootJobs": "No",
    "PrivateData": "cloud",
    "PrologSlurmctld": "/opt/azurehpc/slurm/prolog.sh",
    "Prolog": "/etc/slurm/prolog.d/*",
    "Epilog": "/etc/slurm/epilog.d/*",
    "PrologFlags": "alloc",
    "TreeWidth": "16",
    "ReconfigFlags": "KeepPowerSaveSettings",
    "ResumeTimeout": "1800",
    "SuspendTimeout": "600",
    "SuspendTime": "300",
    "SlurmctldTimeout": "30",
    "ResumeProgram": "/opt/azurehpc/slurm/resume_program.sh",
    "ResumeFailProgram": "/opt/azurehpc/slurm/resume_fail_program.sh",
    "SuspendProgram": "/opt/azurehpc/slurm/suspend_program.sh",
    "SchedulerParameters": "max_switch_wait=24:00:00",
    "MaxNodeCount": "10000",
}
"""ClusterName, StateSaveLocation, LaunchParameters and the health check are the cluster's own. The pid files are in
/var/run in the template, which is the same folder."""
INCLUDED = ("azure.conf", "accounting.conf", "keep_alive.conf", "site_specific.conf")
"""Files behind the settings, in this order; then the host of slurmctld, then what a user appends."""


def slurm_conf(changed: Mapping[str, str | None], host: str, appended: Sequence[str] = ()) -> str:
    """The text: settings with changes (`None` takes one out, a new name adds one), includes, host, appended lines."""
    settings = {**SETTINGS, **changed}
    lines = [f"{name}={value}" for name, value in settings.items() if value is not None]
    lines += [f"Include {name}" for name in INCLUDED]
    return "\n".join([*lines, f"SlurmCtldHost={host}", *appended, ""])
