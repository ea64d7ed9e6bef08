"""Slurm's client commands, as a test asks them of any cluster."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.bed.limits import COMMAND_S

LIMIT_S = 600.0
"""A net against hanging, for a busy machine; nothing that is waited for takes a tenth of it."""


@dataclass(frozen=True)
class NodeState:
    """What Slurm says about a node: state words in lower case (`idle`, `drained`, `draining`…) and the reason."""

    state: str
    reason: str


class Client(ABC):
    """A cluster, seen from its scheduler."""

    shared: Path
    """The folder that all nodes share, on the host."""
    shared_inside = "/shared"
    """The same folder as nodes see it."""

    @abstractmethod
    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        """Run Bash text on the scheduler, as root; it must succeed. Its output."""

    @abstractmethod
    def report(self) -> str:
        """What a failed test shows: Slurm's view and the ends of logs."""

    def slurm(self, *command: str) -> str:
        return self.ok('"$@"', *command)

    def states(self) -> dict[str, NodeState]:
        rows = (line.split("|", 2) for line in self.slurm("sinfo", "-h", "-N", "-o", "%N|%T|%E").splitlines())
        return {name: NodeState(state, "" if reason == "none" else reason) for name, state, reason in rows}

    def node(self, name: str) -> dict[str, str]:
        """Fields of `scontrol show node`; `State` is words with `+` between them."""
        return fields(self.slurm("scontrol", "--oneliner", "show", "node", name))

    def all_flags(self) -> dict[str, set[str]]:
        """`flags` of every node, asked at once."""
        nodes = [fields(line) for line in self.slurm("scontrol", "--oneliner", "show", "nodes").splitlines()]
        return {node["NodeName"]: set(node["State"].rstrip("*").split("+")) for node in nodes if "State" in node}

    def flags(self, name: str) -> set[str]:
        """The words of a node's state, as `scontrol` and azslurm have them: `IDLE`, `CLOUD`, `POWERED_DOWN`…"""
        return set(self.node(name)["State"].rstrip("*").split("+"))

    def wait(self, what: str, condition: Callable[[], bool], limit_s: float = LIMIT_S) -> float:
        """Poll until the condition holds; seconds it took."""
        start = time.monotonic()
        pause = 0.1
        while not condition():
            if time.monotonic() - start > limit_s:
                raise AssertionError(f"not within {limit_s} s: {what}\n{self.report()}")
            time.sleep(pause)
            # Each look is a handful of processes, which delay what is waited for.
            pause = min(pause * 1.25, 0.6)
        return time.monotonic() - start

    def wait_state(self, node: str, *wanted: str, limit_s: float = LIMIT_S) -> NodeState:
        self.wait(f"{node} is {' or '.join(wanted)}", lambda: self.states()[node].state in wanted, limit_s)
        return self.states()[node]

    def submit(self, script: str, *options: str) -> str:
        output = f"--output={self.shared_inside}/%j.out"
        words = ["sbatch", "--parsable", f"--chdir={self.shared_inside}", output, *options]
        return self.ok('printf "#!/bin/bash\\n%s\\n" "$1" | "${@:2}"', script, *words).strip()

    def submit_held(self, *options: str) -> str:
        """Submit a job that runs until `release`, and wait until it does; its number. It says `end` at its end."""
        number = self.submit("until [[ -e go.$SLURM_JOB_ID ]]; do sleep 0.2; done; echo end", *options)
        self.wait_job(number, "RUNNING")
        return number

    def release(self, number: str) -> None:
        (self.shared / f"go.{number}").touch()

    def output(self, name: str) -> str:
        """What a job has written so far, by its number; empty when it has not begun."""
        path = self.shared / f"{name}.out"
        return path.read_text() if path.exists() else ""

    def job(self, number: str) -> dict[str, str]:
        return fields(self.slurm("scontrol", "--oneliner", "show", "job", number))

    def wait_job(self, number: str, *wanted: str, limit_s: float = LIMIT_S) -> dict[str, str]:
        """Wait until a job has one of the states (`RUNNING`, `PENDING`…); its fields."""
        self.wait(f"job {number} is {' or '.join(wanted)}", lambda: self.job(number)["JobState"] in wanted, limit_s)
        return self.job(number)

    def finish(self, number: str, limit_s: float = LIMIT_S) -> dict[str, str]:
        """Wait until a job has ended and its epilogs have run; its fields."""
        running = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
        self.wait(f"job {number} ends", lambda: self.job(number)["JobState"] not in running, limit_s)
        self.wait(f"epilogs of job {number}", lambda: self.slurm("squeue", "-h", "-j", number) == "", limit_s)
        return self.job(number)

    def drain(self, node: str, reason: str) -> None:
        self.slurm("scontrol", "update", f"NodeName={node}", "State=DRAIN", f"Reason={reason}")

    def resume(self, *nodes: str) -> None:
        self.slurm("scontrol", "update", f"NodeName={','.join(nodes)}", "State=RESUME")

    def all_resumed(self) -> bool:
        """Whether all nodes are idle; what is drained is resumed, also a node that joins only now after a reboot."""
        states = self.states()
        if out := [name for name, row in states.items() if row.state.startswith(("drain", "down"))]:
            self.resume(*out)
        return {row.state for row in states.values()} == {"idle"}


def fields(text: str) -> dict[str, str]:
    return dict(word.split("=", 1) for word in text.split() if "=" in word)
