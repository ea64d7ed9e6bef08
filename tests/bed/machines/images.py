"""What is on a node before our projects run: the image, and what CycleCloud's Slurm project left behind.

The root of all machines is Debian. A node of another system is that root with the release file, package programs, units
and settings of the other; what scripts of ours look at is there as on the real system, the rest stays Debian's.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import Literal

from generator.plan.policy import policy_attributes
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.machines.agent import FAKES
from tests.bed.machines.overlay import Machine
from tests.bed.plans import plan_from, slurm_of
from tests.size_attributes import size_attributes

Role = Literal["scheduler", "login", "execute"]
CLUSTER = "/sched/llm-a100"
A100 = "Standard_ND96amsr_A100_v4"
CPU = "Standard_D64ds_v5"
POLICY = """
slurm:
  accounting: {type: new}
  policy:
    qos: [{name: urgent, priority: 10}]
    accounts: [{name: team}]
    users: [{name: ada, accounts: [team]}]
"""
NOT_DURING_CONVERGE = ("slurmd", "slurmctld", "munged", "service", "scontrol")
"""Programs that no script of ours may call during a converge; each call is written down."""

SLURM_FILES = {
    f"{CLUSTER}/slurm.conf": "ClusterName=llm-a100\nProlog=/etc/slurm/prolog.d/*\nEpilog=/etc/slurm/epilog.d/*\n",
    f"{CLUSTER}/plugstack.conf": "include /etc/slurm/plugstack.conf.d/*\n",
    f"{CLUSTER}/site_specific.conf": "",
    f"{CLUSTER}/prolog.d/10-health_prolog.sh": "#!/bin/bash\nexit 0\n",
    f"{CLUSTER}/epilog.d/10-health_epilog.sh": "#!/bin/bash\nexit 0\n",
    "/etc/security/limits.d/slurm-limits.conf": "* hard memlock unlimited\n* soft memlock unlimited\n",
    "/etc/systemd/system/slurmd.service.d/override.conf": "[Unit]\nRequiresMountsFor=/sched\n",
}
"""Of cyclecloud-slurm 4.0.9; cyclecloud-server-and-slurm.md, sections 14 and 15."""

LINKED = ("slurm.conf", "plugstack.conf", "site_specific.conf", "prolog.d", "epilog.d")
ENROOT_CONF = """ENROOT_SCRATCH_PATH {scratch}
ENROOT_RUNTIME_PATH {scratch}/enroot-run/user-$(id -u)
ENROOT_CACHE_PATH {scratch}/enroot-cache/group-$(id -g)
ENROOT_DATA_PATH {scratch}/enroot-data/user-$(id -u)
ENROOT_TEMP_PATH {scratch}/enroot-temp
ENROOT_SQUASH_OPTIONS -noI -noD -noF -noX -no-duplicates
ENROOT_MOUNT_HOME y
ENROOT_RESTRICT_DEV y
ENROOT_ROOTFS_WRITABLE y
MELLANOX_VISIBLE_DEVICES all
"""
HOOKS = ("50-slurm-pmi.sh", "50-slurm-pytorch.sh")


@dataclass(frozen=True)
class System:
    name: str
    version: str
    like: str

    @property
    def is_el(self) -> bool:
        """AlmaLinux and its relatives."""
        return "rhel" in self.like

    def __str__(self) -> str:
        return f"{self.name}-{self.version}"


UBUNTU_22, UBUNTU_24 = System("ubuntu", "22.04", "debian"), System("ubuntu", "24.04", "debian")
ALMA_8, ALMA_9 = System("almalinux", "8.10", "rhel centos fedora"), System("almalinux", "9.4", "rhel centos fedora")
UNKNOWN = System("opensuse-leap", "15.6", "suse opensuse")


@dataclass(frozen=True)
class NodeKind:
    role: Role
    vm_size: str
    system: System = UBUNTU_22
    gpus: bool = False

    def attributes(self) -> dict[str, str | bool | int]:
        # The machines have no local disks: nobody need wait for them.
        return {
            "slurm.role": self.role, "azure.metadata.compute.vmSize": self.vm_size,
            "cyclecloud.cluster.name": "llm-a100", "cycleforge.nvme.wait_s": 0,
            **(size_attributes(self.vm_size) if self.role == "execute" else {}),
            **(policy_attributes(slurm_of(plan_from(POLICY)).policy) if self.role == "scheduler" else {}),
        }  # fmt: skip


SCHEDULER = NodeKind("scheduler", "Standard_D4s_v5")
LOGIN = NodeKind("login", "Standard_D4s_v5")
GPU_NODE = NodeKind("execute", A100, gpus=True)
CPU_NODE = NodeKind("execute", CPU)


def prepare(machine: Machine, kind: NodeKind) -> None:
    """Make the machine a node of that kind on which the Slurm project has run; everything of it is in files."""
    _system(machine, kind.system)
    _slurm(machine, kind)
    machine.write("/var/lib/faked/calls", "")
    machine.write("/usr/local/sbin/lsblk", (FAKES / "lsblk").read_text(), 0o755)
    if kind.gpus:
        _gpus(machine)


def without_systemd(machine: Machine, kind: NodeKind) -> None:
    """Imitate the units of a machine in which systemd does not run, also in files."""
    machine.write("/usr/local/sbin/systemctl", (FAKES / "systemctl").read_text(), 0o755)
    for unit in ("apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service", "rsyslog.service",
                 "systemd-journald.service", "chronyd.service" if kind.system.is_el else "chrony.service"):  # fmt: skip
        machine.write(f"/var/lib/faked/units/{unit}", "")
    for program in NOT_DURING_CONVERGE:
        machine.write(f"/usr/local/sbin/{program}", (FAKES / "recorded").read_text(), 0o755)


def power_on(machine: Machine, kind: NodeKind) -> None:
    """What is in no file and must be made whenever the machine starts: device files, kernel settings of its own."""
    machine.ok(
        'mkdir -p "${@%/*}"; for own; do setting=/proc/sys/${own#/run/faked/}; printf "%s\\n" "$(<$setting)" >$own; '
        'mount --bind $own $setting; done',
        "/run/faked/kernel/core_pattern", "/run/faked/fs/suid_dumpable",
    )  # fmt: skip
    if kind.gpus:
        for name in ("nvidiactl", *(f"nvidia{number}" for number in range(8))):
            os.mknod(machine.path(f"/dev/{name}"), stat.S_IFCHR | 0o666, os.makedev(1, 3))


def calls(machine: Machine, start: str = "") -> list[str]:
    return [line for line in machine.read("/var/lib/faked/calls").splitlines() if line.startswith(start)]


def forbidden_calls(machine: Machine) -> list[str]:
    """Calls of programs that must not run during a converge."""
    return [call for call in calls(machine) if call.split()[0] in NOT_DURING_CONVERGE]


def _system(machine: Machine, system: System) -> None:
    release = f'NAME="x"\nID={system.name}\nVERSION_ID="{system.version}"\nID_LIKE="{system.like}"\n'
    machine.ok("rm -f /etc/os-release")
    machine.write("/etc/os-release", release)
    if system.is_el:
        # The package programs and units of Debian's family are not there, those of Red Hat's are.
        machine.ok("""rm -rf /usr/bin/apt* /usr/bin/dpkg* /etc/apt /etc/needrestart /usr/lib/systemd/system/apt-* \
            /usr/lib/systemd/system/unattended-upgrades.service /etc/systemd/system/timers.target.wants/apt-* \
            /etc/systemd/system/multi-user.target.wants/unattended-upgrades.service /etc/default/slurmd""")
        machine.write(
            "/etc/dnf/dnf.conf", "[main]\ngpgcheck=1\ninstallonly_limit=3\nclean_requirements_on_remove=True\n"
        )
        for program in ("dnf", "rpm"):
            machine.write(f"/usr/bin/{program}", (FAKES / "recorded").read_text(), 0o755)
        for timer in ("dnf-makecache", "dnf-automatic"):
            machine.write(
                f"/usr/lib/systemd/system/{timer}.timer", "[Timer]\nOnBootSec=1h\n[Install]\nWantedBy=timers.target\n"
            )
            machine.write(f"/usr/lib/systemd/system/{timer}.service", "[Service]\nType=oneshot\nExecStart=/bin/true\n")
        machine.ok("""cd /etc/systemd/system
            mv /usr/lib/systemd/system/chrony.service /usr/lib/systemd/system/chronyd.service
            rm -f chronyd.service multi-user.target.wants/chrony.service
            sed -i /^Alias=/d /usr/lib/systemd/system/chronyd.service
            mv /etc/chrony/chrony.conf /etc/chrony.conf
            sed -i 's|^ExecStart=.*|ExecStart=!/usr/sbin/chronyd -x -f /etc/chrony.conf|' \
                /usr/lib/systemd/system/chronyd.service
            ln -s /usr/lib/systemd/system/chronyd.service multi-user.target.wants/chronyd.service""")


def _slurm(machine: Machine, kind: NodeKind) -> None:
    for path, text in SLURM_FILES.items():
        machine.write(path, text, 0o755 if path.endswith(".sh") else 0o644)
    options = "/etc/sysconfig/slurmd" if kind.system.is_el else "/etc/default/slurmd"
    machine.write(options, f"SLURMD_OPTIONS=-b -N {machine.name}\n")
    machine.ok('mkdir -p /etc/slurm/plugstack.conf.d; for name; do ln -sfn "$name" /etc/slurm/; done',
               *(f"{CLUSTER}/{name}" for name in LINKED))  # fmt: skip
    # A plug-in that Slurm can load; it has none of pyxis' options.
    machine.ok("install -D -m 644 /usr/lib/*/slurm-wlm/spank_pbs.so /opt/pyxis/spank_pyxis.so")
    # The name by which Slurm's plug-in loads PMIx; on Debian it comes with the development package.
    machine.ok("for folder in /usr/lib/*/pmix2/lib; do ln -sf libpmix.so.2 $folder/libpmix.so; done")
    # enroot is configured on Ubuntu and EL 8 only.
    if kind.system.name == "ubuntu" or (kind.system.is_el and kind.system.version.startswith("8")):
        machine.write("/etc/enroot/enroot.conf", ENROOT_CONF.format(scratch="/tmp/enroot"))
        machine.write("/etc/slurm/plugstack.conf.d/pyxis.conf",
                      "required /opt/pyxis/spank_pyxis.so runtime_path=/tmp/enroot/enroot-runtime\n")  # fmt: skip
        machine.write("/usr/bin/enroot", '#!/bin/sh\n[ "$1" = version ] && echo 4.0.1\n', 0o755)
        for hook in HOOKS:
            machine.write(f"/usr/share/enroot/hooks.d/{hook}", "#!/bin/bash\nexit 0\n")
            if kind.role == "execute":
                machine.write(f"/etc/enroot/hooks.d/{hook}", "#!/bin/bash\nexit 0\n", 0o755)


def _gpus(machine: Machine) -> None:
    machine.write("/usr/bin/nvidia-smi", NVIDIA_SMI.read_text(), 0o755)
    machine.write("/var/lib/faked/model", "a100\n")
    machine.write(
        "/usr/bin/nvidia-modprobe", "#!/bin/sh\n[ -e /dev/nvidia-uvm ] || mknod -m 666 /dev/nvidia-uvm c 1 3\n", 0o755
    )
    machine.write("/opt/microsoft/ndv4-topo.xml", '<system version="1"/>\n')
