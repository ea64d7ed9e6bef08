"""Slurm's commands on the scheduler of the tests, over nodes that a test sets; real Slurm is asked in test_slurm.py.

Sources: https://slurm.schedmd.com/scontrol.html, https://slurm.schedmd.com/squeue.html; the form of the lines is that
of Slurm 23.11, as `tests/machines/` and `projects/misc_ubuntu` read it.
"""

from __future__ import annotations

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
