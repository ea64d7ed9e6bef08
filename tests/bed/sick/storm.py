"""A storm: random faults, repairs, jobs, boots and drains of other people on a cluster, and what must hold throughout.

Every choice comes from the seed and from the storm's own book, never from what Slurm answers, so that a seed repeats
its events. The book knows what is really broken; Slurm's log and the results of nodes say what was done about it. Three
things must hold:

* No sick node takes a job: once the checks have seen a fault, no job that Slurm allocates later runs on that node
  until the fault has ended, whoever drains or resumes the node meanwhile.
* No drain of an administrator is undone, not for a moment.
* No healthy node is lost for good: when all faults have ended, every node is in service again after what the nodes
  themselves ask for: nothing, a reboot, or another VM.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from tests.bed.slurm import hardware

if TYPE_CHECKING:
    from tests.bed.sick.cluster import SickCluster
    from tests.bed.sick.node import SickNode

HEALS, BOOT, VM = "heals", "boot", "vm"
"""What really ends a fault: time, a reboot, another VM."""
CURES = {"": 0, "heal": 0, "reset": 1, "reboot": 1, "service": 2}
"""How much a node asks for, by the worst cure in its result."""
ADMIN = "administrator: wait for me"
OURS = "CycleForge health:"
JOB = 'echo "$SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} $SLURMD_NODENAME" >>/mnt/shared/ran; sleep 0.2'
RESULT = "var/lib/cycleforge/health/quick.json"


@dataclass(frozen=True)
class Fault:
    """Something that breaks; `check` is the beginning of the checks that see it, empty where none does by itself."""

    name: str
    check: str
    ends: str
    happens: Callable[[SickNode], None]


FAULTS = (
    Fault("a GPU is lost", "gpu_count", HEALS, lambda node: node.gpus(7)),
    Fault("ECC errors", "gpu_ecc", BOOT, lambda node: node.field(3, "ecc.errors.uncorrected.volatile.sram", "1")),
    Fault("a row remap failed", "gpu_remap", VM, lambda node: node.field(1, "remapped_rows.failure", "Yes")),
    Fault("XID 79", "gpu_xid", VM, lambda node: node.xid(79)),
    Fault("XID 119", "gpu_xid", BOOT, lambda node: node.xid(119, "Timeout after 6s of waiting for RPC response")),
    Fault("nvidia-smi hangs", "nvidia_smi", HEALS, lambda node: node.state("nvidia-smi.hang")),
    Fault("nvidia-smi ends with 15", "nvidia_smi", HEALS, lambda node: node.state("nvidia-smi.exit", 15)),
    Fault("a port is down", "ib_ports_active", HEALS, lambda node: node.port_down(5)),
    Fault("a port is slow", "ib_rate", HEALS, lambda node: node.port_shows(2, rate="200 Gb/sec (4X HDR)")),
    Fault("a mount is gone", "mount", HEALS, lambda node: node.lose_mount()),
    Fault("a mount does not answer", "mount", HEALS, lambda node: node.hang_mount()),
    Fault("memory is missing", "memory_total", HEALS, lambda node: node.memory_kib(hardware.MEMORY_KIB // 2)),
    Fault("a disk is gone", "nvme_disks", BOOT, lambda node: node.disk_gone(3)),
    Fault("the system disk is full", "", HEALS, lambda node: node.fill_disk()),
)


@dataclass
class Book:
    faults: list[Fault] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    """Faults that the checks have seen, with the place in Slurm's log from which on no job may begin."""
    sick: list[tuple[int, int]] = field(default_factory=list)
    """Ended times of sickness, from place to place in the log."""
    needs: int = 0
    administrator: bool = False
    killed_s: float = 0
    """When the node's power was last cut, in seconds of this machine's clock."""


class Storm:
    def __init__(self, cluster: SickCluster, seed: int) -> None:
        self.cluster, self.seed = cluster, seed
        self.books = {name: Book() for name in cluster.nodes}
        self.events: list[str] = []
        self._choose = random.Random(seed)
        self._log = cluster.folder / "log/scheduler/slurmctld/slurmctld.log"
        self._read = 0
        self._kinds: Sequence[tuple[int, Callable[[str], str]]] = (
            (26, self._quick),
            (20, self._break),
            (12, self._job),
            (10, self._repair),
            (5, self._reboot),
            (3, self._new_vm),
            (6, self._healthagent),
            (6, self._administrator),
            (8, self._careless),
            (2, self._without_controller),
        )

    def run(self, events: int, at_least_s: float = 0) -> int:
        """So many events, and more until so many seconds are over; then the storm ends. How many it were.

        The first thing that does not hold fails with all events. A seed repeats its events whatever their number.
        """
        weights, begin, number = [weight for weight, _ in self._kinds], time.monotonic(), 0
        while number < events or time.monotonic() - begin < at_least_s:
            ((_, event),) = self._choose.choices(self._kinds, weights)
            name = self._choose.choice(list(self.books))
            self.events.append(f"{number:4} {name} ")
            self.events[-1] += event(name)
            self._look()
            number += 1
        self._calm()
        return number

    def story(self) -> str:
        return "\n".join([f"seed {self.seed}, {len(self.events)} events", *self.events])

    # Events: each says what it was

    def _quick(self, name: str) -> str:
        names = self._choose.sample(list(self.books), self._choose.choice((1, 2, 3)))
        self._run_quick(*names)
        return f"quick run on {', '.join(names)}"

    def _run_quick(self, *names: str) -> None:
        self.cluster.each(lambda node: node.health("quick"), *names)
        for name in names:
            self._see(name)

    def _break(self, name: str) -> str:
        fault = self._choose.choice(FAULTS)
        book = self.books[name]
        if fault not in book.faults:
            fault.happens(self.cluster[name])
            book.faults.append(fault)
        return fault.name

    def _repair(self, name: str) -> str:
        """What heals by itself has healed."""
        self._end(name, HEALS)
        return "what heals has healed"

    def _reboot(self, name: str) -> str:
        self._boot(name)
        return "reboot"

    def _boot(self, name: str) -> None:
        book = self.books[name]
        # While it runs: some of what stays broken is broken from inside.
        self._end(name, BOOT)
        self._kill(name)
        self.cluster[name].rebooted()
        self.cluster.boot(name)
        if book.needs < CURES["service"]:
            book.needs = 0

    def _new_vm(self, name: str) -> str:
        self._replace(name)
        return "another VM"

    def _replace(self, name: str) -> None:
        book = self.books[name]
        self._kill(name)
        self._close(name, [fault.name for fault in book.faults])
        book.faults, book.needs = [], 0
        self.cluster[name].new_vm()

    def _kill(self, name: str) -> None:
        self.cluster.kill(name)
        self.books[name].killed_s = time.time()

    def _job(self, name: str) -> str:
        anywhere = self._choose.random() < 0.3
        self.cluster.submit(JOB, *([] if anywhere else [f"--nodelist={name}"]))
        return "a job for any node" if anywhere else "a job"

    def _healthagent(self, name: str) -> str:
        errors = self._choose.choice((0, 0, 2))
        self.cluster[name].healthagent(errors)
        return f"healthagent counts {errors} errors"

    def _administrator(self, name: str) -> str:
        book = self.books[name]
        book.administrator = not book.administrator
        if book.administrator:
            self.cluster.drain(name, ADMIN)
            return "drained by an administrator"
        self.cluster.resume(name)
        return "resumed by the administrator"

    def _careless(self, _: str) -> str:
        """Somebody wants a node that is broken for a job, and resumes it without a look at what is wrong with it."""
        broken = [name for name, book in self.books.items() if book.faults and not book.administrator]
        if not broken:
            return "nothing is broken"
        name = self._choose.choice(broken)
        self._run_quick(name)
        if self.cluster.states()[name].state == "drained":
            self.cluster.resume(name)
        job = self.cluster.submit(JOB, f"--nodelist={name}")
        if self.books[name].seen:
            self.cluster.wait(f"job {job} runs on {name}, or is refused", lambda: self._decided(name, job))
        return f"{name} is resumed by somebody who did not look, for a job"

    def _decided(self, name: str, job: str) -> bool:
        ran = self.cluster.shared / "ran"
        has_run = ran.exists() and any(line.startswith(f"{job} ") for line in ran.read_text().splitlines())
        return has_run or self.cluster.states()[name].state.startswith("drain")

    def _without_controller(self, name: str) -> str:
        """slurmctld does not run while the checks do."""
        self.cluster.stop_controller()
        try:
            self._run_quick(name)
        finally:
            self.cluster.start_controller()
        # Nobody can resume a node of which a new slurmctld has not heard yet.
        self.cluster.wait("every node is known again", self._all_known)
        return "quick run while slurmctld is down"

    def _all_known(self) -> bool:
        return all("UNKNOWN" not in flags for flags in self.cluster.all_flags().values())

    # The book

    def _end(self, name: str, kind: str) -> None:
        """Faults of a kind end; what else is broken stays so."""
        book, node = self.books[name], self.cluster[name]
        ended = [fault for fault in book.faults if fault.ends == kind]
        if not ended:
            return
        kernel = node.files / "state/kernel.log"
        before = kernel.read_text()
        self._close(name, [fault.name for fault in ended])
        node.heal()
        kernel.write_text(before)
        book.faults = [fault for fault in book.faults if fault not in ended]
        for fault in book.faults:
            if fault.check != "gpu_xid":
                fault.happens(node)

    def _close(self, name: str, ended: Sequence[str]) -> None:
        """From here on these faults keep no job away any more."""
        self._look()
        book = self.books[name]
        for fault in ended:
            if fault in book.seen:
                book.sick.append((book.seen.pop(fault), self._end_of_log()))

    def _see(self, name: str, place: int | None = None) -> None:
        """Take from a node's last result which of its faults the checks have seen."""
        book, node = self.books[name], self.cluster[name]
        text = self._result(node)
        if not text:
            return
        result = json.loads(text)
        failed = [row["check"] for row in result["checks"] if row["verdict"] == "fail"]
        for fault in book.faults:
            if fault.check and fault.name not in book.seen and any(one.startswith(fault.check) for one in failed):
                book.seen[fault.name] = self._end_of_log() if place is None else place
        if result["verdict"] == "fail":
            book.needs = max(book.needs, CURES[result.get("cure", "")])

    def _result(self, node: SickNode) -> str:
        """A node's last result; empty where none was written: a full disk may have been full before the first run."""
        if any(not fault.check for fault in self.books[node.name].faults):
            # Another file system lies over the folder, which only processes on the node see.
            return node.ok(f'file="${{CYCLEFORGE_ROOT}}/{RESULT}"; [[ ! -e "${{file}}" ]] || cat "${{file}}"')
        path = node.root / RESULT
        return path.read_text() if path.exists() else ""

    def _end_of_log(self) -> int:
        return self._log.stat().st_size

    # What must hold

    def _look(self) -> None:
        """Read on in Slurm's log, where drains tell what an epilog has seen; an administrator's drain must stand."""
        with self._log.open("rb") as stream:
            stream.seek(self._read)
            text = stream.read().decode(errors="replace")
        for match in re.finditer(rf"update_node: node (\w+) reason set to: {OURS}", text):
            self._see(match[1], self._read + match.start())
        self._read += len(text.encode())
        shown = self.cluster.states()
        for name, book in self.books.items():
            if book.administrator:
                held = shown[name].state in ("drained", "draining") and shown[name].reason == ADMIN
                self._demand(held, f"{name} is drained by an administrator, and Slurm shows {shown[name]}")

    def _jobs(self) -> None:
        """No job that has run was allocated to a node while a fault of it was known."""
        log = self._log.read_bytes().decode(errors="replace")
        places: dict[tuple[str, str], list[int]] = {}
        for match in re.finditer(r"(?:Allocate|Started) JobId=(\d+)(?: NodeList=| in \w+ on )(\w+)", log):
            places.setdefault((match[1], match[2]), []).append(match.start())
        ran = self.cluster.shared / "ran"
        for line in ran.read_text().splitlines() if ran.exists() else []:
            job, _, name = line.split()
            book = self.books[name]
            times = [*book.sick, *((since, len(log)) for since in book.seen.values())]
            for place in places[job, name]:
                known = [f"{since} to {until}" for since, until in times if since < place < until]
                if known and self._ran_from(log, job, name, place):
                    self._demand(
                        False, f"job {job} ran on {name}, where a fault was known: {', '.join(known)}, {place}"
                    )

    def _ran_from(self, log: str, job: str, name: str, place: int) -> bool:
        """Whether the run of a job that began here was no refusal of its prolog and not cut short by a reboot."""
        end = re.compile(rf"JobId={job}\b.*(WEXITSTATUS|requeue|Requeu|Prolog)|(?:Allocate|Started) JobId={job}\b")
        after = end.search(log, place + 20)
        return after is not None and "WEXITSTATUS" in after[0]

    def _calm(self) -> None:
        """The storm is over: what nobody has seen ends by itself, and people do what the nodes ask for."""
        self.events.append("the storm is over")
        for name, book in self.books.items():
            self._end(name, HEALS)
            if any(fault.ends == VM for fault in book.faults):
                self._replace(name)
            elif book.faults:
                self._boot(name)
            self.cluster[name].healthagent(0)
            if book.administrator:
                book.administrator = False
                self.cluster.resume(name)
        self.cluster.run("scancel --quiet --state=PENDING")
        self._some_runs()
        for name in self._out():
            needs = self.books[name].needs
            self._demand(needs > 0, f"{name} is healthy and stays out: {self.cluster.states()[name]}")
            if needs < CURES["service"]:
                self._boot(name)
            else:
                self._replace(name)
        self._some_runs()
        self._demand(not self._out(), f"stay out after what they have asked for: {self._out()}")
        self._look()
        self._cancel_lost()
        self.cluster.wait("all jobs have ended", lambda: self.cluster.slurm("squeue", "-h", "-a") == "")
        self._jobs()

    def _cancel_lost(self) -> None:
        """Cancel jobs whose node lost its power while they ran: Slurm shows them as running long after.

        It misses a job only when its node registers, BatchStartTimeout and ResumeTimeout after the job's start at the
        earliest; of itself a node that answers does so every twentieth ping. Source: Slurm 22.05,
        src/slurmctld/job_mgr.c, _purge_missing_jobs; src/slurmctld/ping_nodes.c, MAX_REG_FREQUENCY.
        """
        for line in self.cluster.slurm("squeue", "-h", "--states=RUNNING", "--format=%A %N %S").splitlines():
            number, name, start = line.split()
            if datetime.fromisoformat(start).timestamp() <= self.books[name].killed_s:
                self.cluster.slurm("scancel", number)

    def _some_runs(self) -> None:
        """As many quick runs as twenty minutes have, of the nodes that are out."""
        self._run_quick(*self.books)
        for _ in range(3):
            if out := self._out():
                self._run_quick(*out)

    def _out(self) -> list[str]:
        return [name for name, row in self.cluster.states().items() if row.state.startswith(("drain", "down", "fail"))]

    def _demand(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise AssertionError(f"{otherwise}\n{self.story()}\n{self.cluster.report()[:6000]}")
