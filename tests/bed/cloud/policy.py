"""The project slurm_policy on the scheduler of a living cluster, without the systemd that starts it there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from generator.plan.cluster import SlurmPlan
from generator.projects.content import shipped_project
from tests.bed.cloud.cluster import Cloud
from tests.bed.cloud.files import CLUSTER

FILES = PurePosixPath("specs/default/cluster-init/files")
ROOT = "/mnt/root"


class Policy:
    """The scripts where cluster-init puts them. azure.conf is a link to /sched/<cluster>, as on a real scheduler."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.programs = cloud.folder / "opt/cycleforge/slurm_policy"
        self.programs.mkdir(parents=True)
        for path, file in shipped_project("slurm_policy")[1].items():
            if path.parent == FILES:
                (self.programs / path.name).write_bytes(file.content)
        self.sched = cloud.folder / "sched" / CLUSTER
        self.sched.mkdir(parents=True)
        etc = cloud.folder / "etc"
        (etc / "azure.conf").rename(self.sched / "azure.conf")
        (etc / "azure.conf").symlink_to(f"/mnt/sched/{CLUSTER}/azure.conf")
        for folder in ("root/etc/slurm", "root/etc/cycleforge"):
            (cloud.folder / folder).mkdir(parents=True)
        (cloud.folder / "root/etc/slurm/azure.conf").symlink_to(f"/mnt/sched/{CLUSTER}/azure.conf")

    def rows(self, slurm: SlurmPlan) -> list[str]:
        return [row.text for row in slurm.policy.rows] if slurm.policy else []

    def give(self, rows: Sequence[str]) -> None:
        """What the node attributes of a new scheduler say."""
        (self.cloud.folder / "root/etc/cycleforge/policy.rows").write_text("\n".join([*rows, ""]))

    def run(self, *words: str, code: int | None = 0) -> list[str]:
        """`policy.sh` with these words, which must end with this code, if one is given; what it says."""
        command = 'CYCLEFORGE_ROOT="$1" bash /opt/cycleforge/slurm_policy/policy.sh "${@:2}"'
        done = self.cloud.run(command, ROOT, *words, timeout_s=300)
        assert code in (done.code, None), f"{words} ended with {done.code}\n{done.output}"
        return [line.split(" slurm_policy: ", 1)[-1] for line in done.output.splitlines()]

    def load(self, rows: Sequence[str], *words: str, code: int = 0) -> list[str]:
        self.give(rows)
        return self.run("load", *words, code=code)

    def apply(self, rows: Sequence[str], *words: str, code: int = 0) -> list[str]:
        """Apply a new policy on the running cluster, as README says."""
        (self.cloud.folder / "policy.rows").write_text("\n".join([*rows, ""]))
        return self.run("apply", "/mnt/policy.rows", *words, code=code)

    def starts(self) -> None:
        """slurmctld starts, and before it what its drop-ins run, whose failures systemd ignores."""
        for word in ("qos", "partitions"):
            self.run(word, code=None)
        self.cloud.start_controller()

    def restarts(self) -> None:
        """What `systemctl restart slurmctld` of azslurm does."""
        self.cloud.stop_controller()
        self.starts()

    def of(self, *query: str) -> str:
        return self.cloud.slurm("sacctmgr", "-nP", "show", *query).strip()
