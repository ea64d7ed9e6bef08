"""One emulated node: its disk, what breaks, and the runs that its systemd would start."""

from __future__ import annotations

import json
import shlex
import shutil
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from tests.bed.cloud.inside import ENVIRONMENT, bash, inside
from tests.bed.limits import COMMAND_S
from tests.bed.machines.overlay import Result
from tests.bed.sick import image
from tests.bed.slurm import hardware
from tests.bed.slurm.members import RESULTS

if TYPE_CHECKING:
    from tests.bed.sick.cluster import SickCluster

HEALTH = "/opt/cycleforge/slurm_nhc/health.sh"
OF_SERVICES = {"CYCLEFORGE_SAMPLE_S": "0", "CYCLEFORGE_POLL_S": "0.1"}
"""What a test gives units of a node beside their folders, so that it waits less."""
HOST_POOL = "var/lib/hyperv/.kvp_pool_3"
"""Where Hyper-V tells a VM its host: records of 512 + 2048 bytes. Source: linux, tools/hv/hv_kvp_daemon.c."""


class SickNode(hardware.Hardware):
    kept = hardware.Hardware.kept | set(image.KEPT)

    def __init__(self, cluster: SickCluster, name: str, vm_size: str, attributes: Mapping[str, str]) -> None:
        self.cluster, self.name, self.vm_size, self.attributes = cluster, name, vm_size, dict(attributes)
        self.disk = cluster.folder / "sick" / name
        self.root = self.disk / "root"
        self.files = self.root
        self._has_full_disk = False

    def __repr__(self) -> str:
        return f"<{self.name}>"

    # Commands on the node

    def run(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> Result:
        """Run Bash text as root, as systemd starts a unit. Code 124: it did not end in time."""
        where = f"/mnt/sick/{self.name}"
        environment = {**ENVIRONMENT, **OF_SERVICES, "CYCLEFORGE_ROOT": f"{where}/root", "FAKE_STATE": f"{where}/state"}
        done = inside(self.cluster.holder_of(self.name), bash(script, *arguments), timeout_s, environment)
        return Result(done.returncode, done.stdout + done.stderr)

    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        done = self.run(script, *arguments, timeout_s=timeout_s)
        assert done.code == 0, f"{self.name}: {script} ended with {done.code}\n{done.output}\n{self.cluster.report()}"
        return done.output

    def health(self, *words: str, timeout_s: float = COMMAND_S, **environment: str) -> tuple[int, str]:
        settings = " ".join(f"{key}={shlex.quote(value)}" for key, value in environment.items())
        done = self.run(f'{settings} bash {HEALTH} "$@"', *words, timeout_s=timeout_s)
        return done.code, done.output

    def quick(self) -> dict[str, Any]:
        """A quick run, which must succeed, as the timer starts it; the result."""
        code, said = self.health("quick")
        assert code == 0, f"{self.name}: {said}"
        return self.result("quick")

    def deep(self) -> dict[str, Any]:
        """The deep checks of a boot, which must succeed; the result. They need `deep_s` above 0."""
        active = self.disk / "state/active/slurmd.service"
        active.unlink(missing_ok=True)
        try:
            code, said = self.health("deep", "boot", timeout_s=300)
        finally:
            active.write_text("active\n")
        assert code == 0, f"{self.name}: {said}"
        return self.result("deep")

    def hook(self, kind: str) -> tuple[int, str]:
        """`prolog` or `epilog` by hand, as slurmd runs it; its exit code and what it said."""
        done = self.run(f"SLURMD_NODENAME={self.name} /etc/slurm/{kind}.d/20-cycleforge_health.sh")
        return done.code, done.output

    def epilog(self) -> tuple[int, str]:
        return self.hook("epilog")

    def healthagent(self, errors: int) -> None:
        """One run of healthagent's HealthCheckProgram, which counts so many errors of GPUs."""
        self.state("healthagent.errors", errors)
        self.ok(f"SLURMD_NODENAME={self.name} healthagent.sh")

    def result(self, kind: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.read(f"{RESULTS}/{kind}.json".lstrip("/")))
        return content

    def verdict(self, check: str, kind: str = "quick") -> str:
        (found,) = [row["verdict"] for row in self.result(kind)["checks"] if row["check"] == check]
        return str(found)

    def read(self, path: str) -> str:
        """A file below the root, as the node sees it: only a full disk is a file system of its own there."""
        if not self._has_full_disk:
            return (self.root / path).read_text()
        return self.ok(f'cat "${{CYCLEFORGE_ROOT}}/{path}"')

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def fake(self, tool: str, text: str) -> None:
        """Another program in Bash in place of a tool, first in PATH, until the next `new_vm`."""
        path = self.disk / "bin" / tool
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    # Settings

    def attribute(self, key: str, value: str) -> None:
        (self.disk / "state/attributes" / key).write_text(f"{value}\n")

    def converge(self, **attributes: str) -> None:
        """Run 20-health.sh as the node agent does, with further attributes of `cycleforge.health.…`."""
        for key, value in attributes.items():
            self.attribute(f"cycleforge.health.{key}", value)
        spec = f"/mnt/sick/{self.name}/cluster-init/{image.PROJECT}/default"
        self.ok(
            f"CYCLECLOUD_SPEC_PATH={spec} CYCLECLOUD_PROJECT_NAME={image.PROJECT} bash {spec}/scripts/20-health.sh",
            timeout_s=300,
        )

    # More faults than `Hardware` has

    def lose_mount(self, name: str = "shared") -> None:
        self._mounts({other: "rw,hard" for other in image.MOUNTS if other != name})

    def read_only(self, name: str = "shared") -> None:
        self._mounts({other: "ro" if other == name else "rw,hard" for other in image.MOUNTS})

    def hang_mount(self, name: str = "shared") -> None:
        self.state("stat.hang", f"/{name}")
        self.fake("stat", image.STAT)

    def _mounts(self, options: Mapping[str, str]) -> None:
        self.write("proc/mounts", "".join(f"fs /{name} nfs4 {words} 0 0\n" for name, words in options.items()))

    def fill_disk(self) -> None:
        """The file system of /var/lib/cycleforge has no block left; what was there stays."""
        self._has_full_disk = True
        self.ok('folder="${CYCLEFORGE_ROOT}/var/lib/cycleforge"; cp -a "${folder}" /tmp/kept; '
                'mount -t tmpfs -o size=1m,mode=755 full "${folder}"; cp -a /tmp/kept/. "${folder}"; rm -r /tmp/kept; '
                'head -c 2M /dev/zero >"${folder}/filler" 2>/dev/null || [[ -s "${folder}/filler" ]]')  # fmt: skip

    def _free_disk(self) -> None:
        self._has_full_disk = False
        self.ok('folder="${CYCLEFORGE_ROOT}/var/lib/cycleforge"; '
                'rm -f "${folder}/filler"; cp -a "${folder}" /tmp/kept; umount "${folder}"; '
                'rm -rf "${folder}"; mv /tmp/kept "${folder}"')  # fmt: skip

    def heal(self) -> None:
        """End every fault; what the checks have written stays."""
        super().heal()
        hardware.image_files(self.root)
        for path, text in image.KERNEL.items():
            self.write(path, text)
        (self.disk / "bin/stat").unlink(missing_ok=True)
        self._mounts(dict.fromkeys(image.MOUNTS, "rw,hard"))
        for name in image.ACTIVE:
            for unit in (name, f"{name}.service"):
                (self.disk / "state/active" / unit).write_text("active\n")
        if self._has_full_disk:
            self._free_disk()

    def forget_health(self) -> None:
        """Nothing is left of earlier runs and jobs: no result, no verdict, no count, no hook that has just begun."""
        shutil.rmtree(self.root / "var/lib/cycleforge/health", ignore_errors=True)
        for name in ("standing", "hook"):
            (self.root / "run/cycleforge" / name).unlink(missing_ok=True)

    # Boots

    def reboot(self, before_boot: Callable[[], None] | None = None) -> None:
        """Cut the power and boot again: another boot_id, an empty kernel log, counters of links at 0."""
        self.cluster.kill(self.name)
        self.rebooted()
        if before_boot:
            before_boot()
        self.cluster.boot(self.name)

    def new_vm(self) -> None:
        """Azure gives another VM under the same name: another vmId and host, an empty disk, healthy hardware.

        That takes minutes there. Here it may take less than a second, and of a drain in the second of its own beginning
        a node cannot know that it is the older one.
        """
        self.cluster.kill(self.name)
        second = int(time.time())
        while int(time.time()) == second:
            time.sleep(0.05)
        shutil.rmtree(self.disk)
        self.make_disk()
        self.cluster.boot(self.name)

    def becomes(self, vm_size: str) -> None:
        """The VM under this name is one of another size from now on, converged for it."""
        self.vm_size = vm_size
        self.new_vm()

    def make_disk(self) -> None:
        image.node_disk(self.disk, self.vm_size, self.attributes)
        vm = str(uuid4())
        (self.disk / "state/vm_id").write_text(vm)
        self.write("sys/class/dmi/id/product_uuid", f"{vm}\n")
        host = f"HOST{vm[:8].upper()}".encode()
        pool = self.root / HOST_POOL
        pool.parent.mkdir(parents=True, exist_ok=True)
        pool.write_bytes(b"PhysicalHostNameFullyQualified".ljust(512, b"\0") + host.ljust(2048, b"\0"))
        self.rebooted()

    def rebooted(self) -> None:
        """What a boot changes of a node that does not run: boot_id, kernel log, counters of links."""
        self._has_full_disk = False  # its file system was in memory
        self.write("proc/sys/kernel/random/boot_id", f"{uuid4()}\n")
        (self.disk / "state/kernel.log").write_text("")
        for number in range(hardware.PORTS):
            for counter in hardware.COUNTERS["counters"]:
                self.port_counts(number, counter, 0)
