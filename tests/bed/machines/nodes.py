"""Nodes ready for a converge, and how two of them are compared."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.bed.machines import images
from tests.bed.machines.agent import FAKES, HOME, ORDER, SPECS, Agent, Ran, Script
from tests.bed.machines.booted import booted_machine
from tests.bed.machines.images import NodeKind
from tests.bed.machines.overlay import Entry, Machine, overlay_machine, saved
from tests.bed.machines.roots import node_root

# Of the agent, of our imitations, of apt and of daemons: not what a script of ours leaves.
NOT_COMPARED = re.compile(
    rf"{HOME[1:]}/logs|{SPECS[1:]}/(?!\.run)|var/lib/faked/(calls|journal)|var/(cache|lib)/apt|var/log|var/tmp"
)
# Results of a measurement: each has its own time.
MEASURED = re.compile(r"var/lib/cycleforge/health/")
QUICK = {"CYCLEFORGE_POLL_S": "0.02"}
"""For scripts: look again after 20 ms instead of seconds."""

SLURM_UNIT = re.compile(r"\b(slurmd|slurmctld|slurmdbd|slurmrestd|munge)(\.service)?\b")
ACTS = re.compile(r"^systemctl .*\b(start|restart|try-restart|(?<!-)reload|stop|enable|disable|mask|unmask|--now)\b")
RESTARTS = re.compile(r"^systemctl .*\b(start|restart|try-restart|try-reload-or-restart|(?<!-)reload|stop|--now)\b")


@dataclass(frozen=True)
class Kill:
    """The n-th command of a step, at which the script's process group is ended."""

    step: str
    at: int

    def environment(self) -> dict[str, str]:
        """Variables that make every Bash of the script watch for it."""
        return {"BASH_ENV": f"{FAKED}/kill.sh", "KILL_STEP": self.step, "KILL_AT": str(self.at)}

    def __str__(self) -> str:
        return f"command {self.at} of step '{self.step}'"


FAKED = "/var/lib/faked"
CHRONY_CONTAINER = "/etc/systemd/system/chrony.service.d/container.conf"
UNCONDITIONAL = "[Unit]\nConditionCapability=\n"
"""Of the unit of chrony: it starts only where it may set the clock, and a container may not."""


@contextmanager
def node(kind: NodeKind, layer: Path | None = None) -> Iterator[tuple[Machine, Agent]]:
    """A node without systemd, with our projects assigned; on a saved layer it is the same node after a power cut."""
    with overlay_machine(node_root(), *([layer] if layer else [])) as machine:
        images.power_on(machine, kind)
        if layer is None:
            images.prepare(machine, kind)
            images.without_systemd(machine, kind)
            machine.write(f"{FAKED}/kill.sh", (FAKES / "kill.sh").read_text())
        agent = Agent(machine, kind.attributes(), is_there=layer is not None)
        agent.assign(*ORDER, downloaded=layer is not None)
        yield machine, agent


@contextmanager
def booted_node(kind: NodeKind, files: Mapping[str, str] | None = None) -> Iterator[tuple[Machine, Agent]]:
    """A node with a real systemd and our projects assigned; `files` are written into the image before it boots."""
    with booted_image(kind, files) as image, booted_on(kind, image) as node:
        yield node


@contextmanager
def booted_image(kind: NodeKind, files: Mapping[str, str] | None = None) -> Iterator[Path]:
    with overlay_machine(node_root()) as machine:
        images.prepare(machine, kind)
        # chronyd runs without touching the clock, which is the host's.
        machine.write("/etc/default/chrony", 'DAEMON_OPTS="-x"\n')
        for path in (CHRONY_CONTAINER, CHRONY_CONTAINER.replace("chrony.", "chronyd.")):
            machine.write(path, UNCONDITIONAL)
        # Only the agent finds them there: what systemd runs has the real ones.
        for program in images.NOT_DURING_CONVERGE:
            machine.write(f"{HOME}/bin/{program}", (FAKES / "recorded").read_text(), 0o755)
        for path, text in (files or {}).items():
            machine.write(path, text)
        with saved(machine) as layer:
            yield layer


@contextmanager
def booted_on(kind: NodeKind, *layers: Path) -> Iterator[tuple[Machine, Agent]]:
    """Boot a node on saved layers; with more than one it is its second boot."""
    with booted_machine(node_root(), *layers) as machine:
        images.power_on(machine, kind)
        agent = Agent(machine, kind.attributes())
        agent.assign(*ORDER, downloaded=len(layers) > 1)
        yield machine, agent


def run_to_the_end(agent: Agent, project: str = "") -> dict[str, Ran]:
    """Run all scripts, or those of one project, whatever their markers say; each by its name. None may fail."""
    done = {}
    for script in agent.scripts:
        if project in ("", script.project):
            ran = agent.run(script, **QUICK)
            assert ran.code == 0, f"{script} ended with {ran.code}:\n{ran.output}"
            done[str(script)] = ran
    return done


def state(machine: Machine) -> dict[str, Entry]:
    """What a converge has made of the root, without logs and without what carries a time."""
    return {
        name: replace(entry, content=b"") if MEASURED.match(name) else entry
        for name, entry in machine.changes(since_root=True).items()
        if not NOT_COMPARED.match(name)
    }


def inodes(machine: Machine, entries: Mapping[str, Entry]) -> dict[str, int]:
    """Of the files among these; another one means that the file was written anew."""
    return {name: machine.path(f"/{name}").lstat().st_ino for name, entry in entries.items() if entry.kind == "file"}


def rewritten(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Files that a second converge has written anew although nothing in them is new."""
    names = [name for name, inode in before.items() if after[name] != inode]
    return [name for name in names if not name.startswith(("mnt/", "var/lib/cycleforge/health/"))]


def commands_per_step(agent: Agent, script: Script) -> tuple[Ran, dict[str, int]]:
    """Run a script and count the commands of each of its steps, those of scripts that it runs included."""
    count = f"{FAKED}/count"
    agent.machine.write(count, "")
    ran = agent.run(script, BASH_ENV=f"{FAKED}/kill.sh", KILL_COUNT=count, **QUICK)
    steps: dict[str, int] = {}
    for line in agent.machine.read(count).splitlines():
        number, step = line.split("\t")
        steps[step] = max(int(number), steps.get(step, 0))
    agent.machine.path(count).unlink()
    return ran, steps


def kills(script: Script, steps: Mapping[str, int], per_step: int) -> list[Kill]:
    """So many commands of each step, chosen by the names alone; with more than one the last command is among them."""
    found = []
    for step, commands in steps.items():
        chosen = random.Random(f"{script} {step}")
        at = {chosen.randint(1, commands) for _ in range(per_step - 1)} | {chosen.choice((commands, commands // 2 + 1))}
        found += [Kill(step, number) for number in sorted(at | ({commands} if per_step > 1 else set()))]
    return found
