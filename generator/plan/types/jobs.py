"""Job folders: everything that their files say."""

from __future__ import annotations

from typing import Literal

from ...recipes.checkpoints import CheckpointPlan
from ...recipes.memory import MemoryPlan
from ...records import record

__all__ = ["BaselinePlan", "CheckpointPlan", "JobPlan", "MemoryPlan", "StepPlan", "TablePlan"]


@record
class StepPlan:
    """One batch job of a job folder: a file for sbatch that runs one of the recipe's scripts."""

    script: str
    file: str
    title: str
    options: tuple[tuple[str, str | int | bool], ...]
    """Options of sbatch in the order in which the file has them; true is an option without a value."""
    settings: tuple[tuple[str, str], ...]
    """What the step has instead of the lines of `settings.env`, sorted."""


@record
class BaselinePlan:
    """One figure by which a run of NCCL's tests may be judged (GB/s of 10^9 bytes)."""

    kind: Literal["published", "derived"]
    """A derived figure warns at most, and a run above it has not passed."""
    collectives: tuple[str, ...]
    """As the test programs are named, for example `all_reduce`."""
    nodes: int
    or_more: bool
    message_size: str
    """As NCCL's tests take it, for example `8G`."""
    or_larger: bool
    metric: Literal["avg busbw", "busbw"]
    algorithms: tuple[str, ...]
    """The run must have used one of them, as NCCL's log names them; empty where the figure names none."""
    fabric: str | None
    """What must have connected the nodes, `mnnvl` or `infiniband`; None where it makes no difference."""
    expected: float | None
    warn: float | None
    fail: float | None
    formula: str | None
    """How a derived figure was calculated."""
    source: str
    """Titles and addresses."""

    def applies(self, nodes: int) -> bool:
        """Whether a run on that many nodes may be judged by it."""
        return nodes == self.nodes or (self.or_more and nodes > self.nodes)


@record
class TablePlan:
    """A table that a job reads, one file beside its scripts; `-` stands where a row has nothing."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@record
class JobPlan:
    """One job folder below `jobs/`; `recipe` names the source folder `recipes/<recipe>`."""

    name: str
    definition_path: tuple[str | int, ...]
    """Of its entry; of all jobs where it is there because it fits the partitions."""
    displaces: str | None
    """The recipe of the default job that it takes the place of, because it has its name; None: it displaces none."""
    kind: Literal["validation", "training"]
    recipe: str
    title: str
    node_array: str
    partition: str
    vm_size: str
    nodes: int
    model: str | None
    """The model that is trained, as the recipe knows it."""
    settings: tuple[tuple[str, str], ...]
    """Every line of the job's `settings.env`, sorted."""
    nccl: tuple[tuple[str, str], ...]
    """Every line of the job's `nccl.env`, sorted: what NCCL and UCX need on the VM size, and what benchmarks or
    training add to it."""
    sharp: tuple[tuple[str, str], ...]
    """Every line of the job's `sharp.env`, sorted: what training adds if it asks for SHARP; empty: no such file."""
    baselines: tuple[BaselinePlan, ...] | None
    """Every line of the job's `baselines.tsv`; None: the job judges by no such figures."""
    tables: tuple[TablePlan, ...]
    """Other figures and facts of the plan that the job reads."""
    steps: tuple[StepPlan, ...]
    """In the order in which they are submitted; the last one is the job itself."""
    shared_folders: tuple[str, ...]
    """What a training job needs for all users; `commands` create them first."""
    commands: tuple[str, ...]
    """Shell lines that submit all steps, from the home folder that `jobs/` was copied into."""
    file_system: str | None
    """Mount point of the shared file system that `STAGE_PATH` (images, data, checkpoints) is on; None = on none."""
    memory: MemoryPlan | None
    """What one GPU must hold while the model is trained; None: no model, or nothing is known of its division."""
    checkpoint: CheckpointPlan | None
    checkpoint_file_system: str | None
    """Mount point of the shared file system that checkpoints are written to; None = to none, or there are none."""
