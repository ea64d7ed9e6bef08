"""CycleCloud's node agent (jetpack) as cluster-init scripts meet it, on a disposable machine.

Known behaviour: a spec is at /mnt/cluster-init/<project>/<spec>, its files without execute bits; the `*.sh` of its
scripts folder run by name, as root, with a few variables; success leaves a marker under the script's name; a script
that fails ends the converge, and the next converge repeats what has no marker. Working folder and umask are not
documented, so unhelpful ones are chosen.
Source: https://learn.microsoft.com/azure/cyclecloud/how-to/projects
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from generator.files import assets
from generator.files.file import File, Files
from generator.projects.content import contents
from generator.projects.ini import read_project
from tests.bed.machines.overlay import PATH, Machine

HOME = "/opt/cycle/jetpack"
SPECS = "/mnt/cluster-init"
ORDER = ("misc_ubuntu", "misc_ndv4", "pyxis_enroot", "slurm_nhc", "slurm_policy")
"""Our projects as the cluster template names them: projects/README.md."""

FAKES = Path(__file__).with_name("fakes")
STEP = re.compile(r"^\S+Z \S+: (?P<step>[^:]+): (?P<outcome>.*) \((?P<ms>\d+) ms\)$", re.MULTILINE)
# A Python of the agent's own is on PATH before the system's; a script that uses it by accident shall fail.
EMBEDDED_PYTHON = '#!/bin/sh\necho "this is the node agent\'s own Python" >&2\nexit 97\n'


@dataclass(frozen=True)
class Script:
    project: str
    spec: str
    name: str

    @property
    def marker(self) -> str:
        """The file that says that the script has succeeded: by name, not by version or content."""
        return f"{SPECS}/.run/{self.project}/{self.spec}/scripts/{self.name}.run"

    @property
    def log(self) -> str:
        return f"{HOME}/logs/cluster-init/{self.project}/{self.spec}/scripts/{self.name}.out"

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True)
class Ran:
    script: Script
    code: int
    output: str
    seconds: float

    def steps(self) -> list[tuple[str, str, int]]:
        """Name, outcome and milliseconds of the steps that ended."""
        return [(found["step"], found["outcome"], int(found["ms"])) for found in STEP.finditer(self.output)]


@cache
def _shipped(name: str) -> tuple[str, Files]:
    """Version and files of a project, as the product renders it."""
    project = read_project(assets.folder("projects") / name)
    return project.version, contents(project, shipped=True)


class Agent:
    """The agent of one machine. `attributes` are the node's, with Python's True and False as values where so meant."""

    def __init__(self, machine: Machine, attributes: Mapping[str, str | bool | int], *, is_there: bool = False) -> None:
        """`is_there`: the machine has it and its attributes already, as after a reboot."""
        self.machine = machine
        self.scripts: list[Script] = []
        self._versions: dict[str, str] = {}
        if is_there:
            return
        machine.write(f"{HOME}/bin/jetpack", (FAKES / "jetpack").read_text(), 0o755)
        machine.write(f"{HOME}/system/embedded/bin/python3", EMBEDDED_PYTHON, 0o755)
        machine.write(f"{HOME}/config/node.json", json.dumps(dict(attributes)))
        for key, value in attributes.items():
            self.attribute(key, value)

    def attribute(self, key: str, value: str | bool | int) -> None:
        self.machine.write(f"{HOME}/config/attributes/{key}", f"{value}\n")

    def blob(self, project: str, name: str, content: bytes) -> None:
        self.machine.write(f"{HOME}/system/locker/{project}/{name}", content)

    def assign(self, *projects: str, downloaded: bool = False) -> None:
        """Put the default specs of our projects on the node, as the product renders them, in this order.

        `downloaded`: they are there already, as after a reboot.
        """
        for name in projects:
            version, files = _shipped(name)
            self.place(name, version, {} if downloaded else files)

    def place(self, project: str, version: str, files: Mapping[PurePosixPath, File]) -> None:
        """Download the default spec of a project, given as the paths and contents of the project's folder."""
        start = PurePosixPath("specs/default/cluster-init")
        for path, file in files.items():
            if path.is_relative_to(start):
                # Blob storage keeps no modes.
                self.machine.write(f"{SPECS}/{project}/default/{path.relative_to(start)}", file.content)
        self._versions[project] = version
        folder = self.machine.path(f"{SPECS}/{project}/default/scripts")
        self.scripts += [Script(project, "default", path.name) for path in sorted(folder.glob("*.sh"))]

    def environment(self, script: Script) -> dict[str, str]:
        return {
            "PATH": f"{HOME}/bin:{HOME}/system/embedded/bin:{PATH}",
            "CYCLECLOUD_HOME": HOME,
            "CYCLECLOUD_PROJECT_NAME": script.project,
            "CYCLECLOUD_PROJECT_PATH": f"{SPECS}/{script.project}",
            "CYCLECLOUD_PROJECT_VERSION": self._versions[script.project],
            "CYCLECLOUD_SPEC_NAME": script.spec,
            "CYCLECLOUD_SPEC_PATH": f"{SPECS}/{script.project}/{script.spec}",
        }

    def run(self, script: Script, **extra: str) -> Ran:
        """Run one script whatever its marker says; a success leaves one. `extra` goes into the environment."""
        path = f"{SPECS}/{script.project}/{script.spec}/scripts/{script.name}"
        start = time.perf_counter()
        result = self.machine.run(
            'umask 077; [[ -d "${2%/*}" ]] || mkdir -p "${2%/*}"; cd "${1%/*}"; [[ -x "$1" ]] || chmod u+x "$1"; '
            'exec "$1" >"$2" 2>&1',
            path, script.log, environment=self.environment(script) | extra, timeout_s=300,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        log = self.machine.path(script.log)
        output = log.read_text(errors="replace") if log.exists() else result.output
        if result.code == 0:
            self.machine.write(script.marker, "")
        return Ran(script, result.code, output, seconds)

    def is_done(self, script: Script) -> bool:
        return self.machine.path(script.marker).exists()

    def converge(self, scripts: Sequence[Script] | None = None) -> list[Ran]:
        """Run, in order, what has no marker; stop at the first failure, as the agent does until its next attempt."""
        done = []
        for script in self.scripts if scripts is None else scripts:
            if not self.is_done(script):
                done.append(self.run(script))
                if done[-1].code != 0:
                    break
        return done

    def converges(self) -> list[Ran]:
        done = self.converge()
        for ran in done:
            assert ran.code == 0, f"{ran.script} ended with {ran.code}:\n{ran.output}"
        assert all(self.is_done(script) for script in self.scripts)
        return done

    def forget_markers(self) -> None:
        """As `jetpack converge --rerun-scripts`, or a marker disk that was emptied."""
        self.machine.ok(f"rm -rf {SPECS}/.run")

    def warnings(self) -> Iterator[str]:
        for script in filter(self.is_done, self.scripts):
            for line in self.machine.read(script.log).splitlines():
                if "WARNING:" in line or "ERROR:" in line:
                    yield f"{script}: {line}"
