"""A jobs folder with `prove.sh` as it is rendered, and jobs of which a test says what they leave."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from generator.files import assets
from generator.files.file import Files
from generator.render.prove import program

FAKES = Path(__file__).with_name("fakes")
COMMANDS = ("sacct", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "sudo")
"""What `fakes/slurm` is called as."""
NODES = ("n1", "n2", "n3", "n4")
COLUMNS = ("gate", "level", "partition", "constraint", "vm_size", "job", "min_nodes", "gpus_per_node", "minutes",
           "finder", "settings", "what", "reason", "setup")  # fmt: skip
SETTINGS = "RESULTS_DIR=results\nRUNS_DIR=../runs\n"


def gate(name: str, /, **changes: str | int) -> str:
    """A row of prove.tsv: by default a gate of level quick on 8 GPUs a node whose job has its name."""
    row: dict[str, str | int] = {
        "gate": name, "level": "quick", "partition": "gpu", "constraint": "-", "vm_size": "Standard_ND96isr_H100_v5",
        "job": name, "min_nodes": 1, "gpus_per_node": 8, "minutes": 30, "finder": "-", "settings": "-",
        "what": f"what {name} does", "reason": "-", "setup": "-",
    }  # fmt: skip
    assert changes.keys() <= row.keys()
    return "\t".join(str(value) for value in (row | changes).values())


def write(folder: Path, files: Files) -> None:
    """Rendered files, as a build writes them."""
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(0o755 if file.executable else 0o644)


def write_jobs(jobs: Path, gates: Iterable[str], scripts: Mapping[str, str]) -> None:
    """`jobs` with prove.sh, the table of gates, and a folder per script (its `job.sbatch`)."""
    write(jobs.parent, program())
    (jobs / "prove.tsv").write_text("#" + "\t".join(COLUMNS) + "\n" + "".join(f"{line}\n" for line in gates))
    for name, script in scripts.items():
        (jobs / name).mkdir()
        (jobs / name / "job.sbatch").write_text(script)
        (jobs / name / "settings.env").write_text(SETTINGS)


@dataclasses.dataclass
class Proof:
    """What one start of prove.sh said and how it ended."""

    code: int
    output: str

    def verdict(self, name: str) -> str:
        """What the table at the end says for a gate."""
        table = self.output.rpartition("\ngate ")[2]
        (line,) = [line for line in table.splitlines() if line.startswith(f"{name} ")]
        return line[17:28].strip()


class Bed:
    """Fake Slurm around a jobs folder; `fakes/slurm` says what its files mean."""

    def __init__(
        self, root: Path, gates: Iterable[str], texts: Mapping[str, str], nodes: Iterable[str] = NODES
    ) -> None:
        self.jobs, self.fake = root / "jobs", root / "fake"
        for name in ("nodes", "jobs", "jobs.d", "users"):
            (self.fake / name).mkdir(parents=True)
        self._commands = root / "bin"
        self._commands.mkdir()
        for name in COMMANDS:
            (self._commands / name).symlink_to(FAKES / "slurm")
        for node in nodes:
            (self.fake / "nodes" / node).write_text("idle|h100|none\n")
        (self.fake / "job.sh").write_bytes((FAKES / "job.sh").read_bytes())
        for name, text in texts.items():
            (self.fake / "jobs.d" / name).write_text(f"{text}\n")
        write_jobs(self.jobs, gates, dict.fromkeys(texts, "#!/bin/bash\n"))

    @property
    def environment(self) -> dict[str, str]:
        """Slurm's commands first in PATH."""
        path = f"{self._commands}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.jobs.parent), "FAKE": str(self.fake)}

    def prove(self, *words: str, **environment: str) -> Proof:
        """One start of prove.sh to its end.

        It writes into a file: a pipe would also wait for a request that outlives a start that was killed.
        """
        path = self.fake / "output"
        with path.open("wb") as output:
            code = self._run(words, environment, output)
        return Proof(code, path.read_text())

    def _run(self, words: tuple[str, ...], environment: dict[str, str], output: BinaryIO) -> int:
        return subprocess.run(
            [self.jobs / "prove.sh", *words],
            env={**self.environment, "TMPDIR": str(self.jobs.parent), "PROVE_POLL_S": "0.05", "PROVE_SETTLE_S": "0",
                 **environment},
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, check=False,
        ).returncode  # fmt: skip

    def set(self, name: str, text: str = "") -> None:
        """A file of the fake cluster."""
        (self.fake / name).write_text(text)

    def drains(self) -> dict[str, str]:
        """Reasons by node."""
        rows = {path.name: path.read_text().rstrip("\n").split("|", 2) for path in (self.fake / "nodes").iterdir()}
        return {name: row[2] for name, row in sorted(rows.items()) if row[0] == "drained"}

    def submitted(self) -> list[str]:
        """`gate-attempt nodes` of every job, in order."""
        jobs = sorted((self.fake / "jobs").iterdir(), key=lambda path: int(path.name))
        rows = [path.read_text().split("|") for path in jobs]
        return [f"{re.sub(r'^prove-.*Z-[0-9]+-[0-9]{2}-', '', row[1])} {row[2]}" for row in rows]

    def record(self) -> dict[str, Any]:
        """The newest prove.json among the runs."""
        (path,) = (self.jobs / "runs").glob("prove-*/prove.json")
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content


def rendered_files() -> list[Path]:
    """The sources of prove.sh."""
    folder = assets.folder("recipes") / "prove"
    return [folder / "prove.sh", *sorted((folder / "prove.d").glob("*.sh"))]
