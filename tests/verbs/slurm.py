"""Slurm's commands on the scheduler of the tests, over nodes that a test sets; real Slurm is asked in test_slurm.py.

Sources: https://slurm.schedmd.com/scontrol.html, https://slurm.schedmd.com/squeue.html; the form of the lines is that
of Slurm 23.11, as `tests/machines/` and `projects/misc_ubuntu` read it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from generator.results.hostlist import expand

CONFIG = {"SuspendTime": "300 sec", "ResumeProgram": "/opt/azurehpc/slurm/resume_program.sh",
          "SuspendProgram": "/opt/azurehpc/slurm/suspend_program.sh", "SuspendExcNodes": "(null)"}  # fmt: skip


class Slurm:
    """`scontrol` and `squeue`."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[str, str, str]] = {}
        """Name → partition, state, reason."""
        self.jobs: list[tuple[str, ...]] = []
        """Fields as `squeue` is asked for them."""
        self.config = dict(CONFIG)
        self.answers = True

        self.says = "slurm 23.11.10\n"
        """What sinfo and sdiag print."""
        self.old: set[str] = set()
        """Nodes that started from something else."""
        self.replacing = False
        self.policy = ""
        """What was applied last."""
        self.partitions: dict[str, int] = {}
        """What azslurm would write."""

    @property
    def programs(self) -> dict[str, Any]:
        """Name → what it does."""
        return {"scontrol": self.scontrol, "squeue": self.squeue, "azslurm": self._azslurm, "nodes.sh": self._list,
                "systemctl": self._is_active, "systemd-run": self._systemd_run,
                "policy.sh": self._policy, "sinfo": self._said, "sdiag": self._said}  # fmt: skip

    def _said(self, _: list[str], __: dict[str, Any]) -> dict[str, Any]:
        return {"output": self.says}

    def _azslurm(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        """`azslurm scale`: partitions as CycleCloud has them."""
        for name, count in self.partitions.items():
            for number in range(1, count + 1):
                self.nodes.setdefault(f"{name}-{number}", (name, "IDLE+CLOUD+POWERED_DOWN", ""))
        return {}

    def _list(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        """As `print_list` of projects/misc_ubuntu nodes.sh writes it."""
        rows = "".join(f"{name:32} {'old' if name in self.old else 'new':8} htc.0 - {state}\n"
                       for name, (_, state, _) in self.nodes.items() if "POWER" not in state)  # fmt: skip
        old = sum(1 for name, (_, state, _) in self.nodes.items() if name in self.old and "POWER" not in state)
        return {"output": f"NODE IS GENERATION STARTED STATE\n{rows}0 new, {old} old, 0 without a record\n"}

    def _policy(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        """`apply FILE [--dry-run]`, as projects/slurm_policy says it."""
        wanted = Path(argv[1]).read_text()
        is_new = wanted != self.policy
        if "--dry-run" not in argv:
            self.policy = wanted
        return {"output": f"policy.sh: policy: {int(is_new)} changes, 0 left to the administrator\n"}

    def _is_active(self, _: list[str], __: dict[str, Any]) -> dict[str, Any]:
        return {"output": "active\n"} if self.replacing else {"output": "inactive\n", "status": 3}

    def _systemd_run(self, _: list[str], __: dict[str, Any]) -> dict[str, Any]:
        if self.replacing:
            return {"status": 1, "errors": "Failed to start transient service unit: Unit was already loaded\n"}
        self.replacing = True
        return {"errors": "Running as unit: cycleforge-replace.service\n"}

    def scontrol(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        """`show node`, `show config`, `update`."""
        if not self.answers:
            return {"status": 1, "errors": "slurm_load_node error: Unable to contact slurm controller\n"}
        words = [word for word in argv if not word.startswith("--")]
        if words[:2] == ["show", "node"]:
            return {"output": "".join(self._row(name) for name in self.nodes)}
        if words[:2] == ["show", "config"]:
            return {
                "output": "Configuration data as of x\n" + "".join(f"{k:24}= {v}\n" for k, v in self.config.items())
            }
        given = {key.lower(): value for key, _, value in (word.partition("=") for word in words[1:])}
        for name in expand(given["nodename"]):
            self._power(name, given["state"].upper())
        return {}

    def _power(self, name: str, state: str) -> None:
        partition, states, reason = self.nodes[name]
        kept = [word for word in states.split("+") if not word.startswith("POWER")]
        if state == "POWER_UP":
            kept += ["POWERING_UP"]
        else:  # it waits for a job
            kept += ["POWER_DOWN" if {"ALLOCATED", "MIXED"} & set(kept) else "POWERING_DOWN"]
        self.nodes[name] = partition, "+".join(kept), reason

    def _row(self, name: str) -> str:
        partition, state, reason = self.nodes[name]
        tail = f" Reason={reason} [root@2026-11-22T10:00:00]" if reason else ""
        return (
            f"NodeName={name} Arch=x86_64 CoresPerSocket=32 CPUAlloc=0 CPUEfctv=64 CPUTot=64 NodeAddr={name} "
            f"NodeHostName={name} Version=23.11.10 State={state} ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A "
            f"MCS_label=N/A Partitions={partition} BootTime=None SlurmdStartTime=None{tail}\n"
        )

    def squeue(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        """The jobs."""
        return {"output": "".join("|".join(job) + "\n" for job in self.jobs)}
