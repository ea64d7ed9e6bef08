"""The callback that ends a training of Composer in time: with stand-ins of what it calls, and, where `COMPOSER_PYTHON`
names a Python with mosaicml 0.29 and llm-foundry 0.18 (a processor is enough), under these.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from generator.files import assets

TRAINER = """
import hashlib, os, sys
import torch
from composer import Callback, Trainer
from composer.models import ComposerClassifier
from llmfoundry.utils.builders import build_callback
from llmfoundry.utils.registry_utils import import_file
from torch.utils.data import DataLoader, TensorDataset

import_file(sys.argv[1])
torch.manual_seed(1)
inputs, wanted = torch.randn(64, 4), torch.randint(0, 2, (64,))
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
data = DataLoader(TensorDataset(inputs, wanted), batch_size=8)


class Person(Callback):
    def batch_end(self, state, logger):
        if int(state.timestamp.batch) == 11 and len(sys.argv) > 3:
            open(os.environ["STOP_FILE"], "w").close()

    def eval_start(self, state, logger):
        print("evaluated at", int(state.timestamp.batch))


trainer = Trainer(
    model=ComposerClassifier(net, num_classes=2), optimizers=torch.optim.Adam(net.parameters(), 1e-2), device="cpu",
    train_dataloader=data, eval_dataloader=data, eval_interval="50ba", max_duration="20ba", run_name="mine",
    save_folder=sys.argv[2], save_interval="100ba", autoresume=True, progress_bar=False,
    callbacks=[Person(), build_callback("exit_clock", {})],
)
print("from", int(trainer.state.timestamp.batch))
trainer.fit()
weights = b"".join(weight.detach().numpy().tobytes() for weight in net.parameters())
print("ended at", int(trainer.state.timestamp.batch), hashlib.sha256(weights).hexdigest())
trainer.close()
"""


class Asked(list[int]):
    """The tensor with which ranks ask each other; the other rank's answer comes with `all_reduce`."""

    def item(self) -> int:
        return self[0]


# What this rank is told, what the other one says, how much is done: whether all stop after this batch.
@pytest.mark.parametrize(
    ("stop_at", "file", "other", "done", "stops"),
    [("", False, 0, 0.5, False), ("1", False, 0, 0.5, True), ("9999999999", False, 0, 0.5, False),
     ("", True, 0, 0.5, True), ("", False, 1, 0.5, True), ("1", True, 1, 1.0, False)],
)  # fmt: skip
def test_all_ranks_stop_after_the_same_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop_at: str, file: bool, other: int, done: float, stops: bool
) -> None:
    made: dict[str, Any] = {}

    def all_reduce(asked: Asked, *, reduce_operation: str) -> None:
        assert reduce_operation == "MAX"
        asked[0] = max(asked[0], other)

    def tensor(values: list[int], dtype: str) -> Asked:
        return Asked(values)

    dist = SimpleNamespace(all_reduce=all_reduce, get_global_rank=lambda: 0)
    for name, module in {
        "torch": SimpleNamespace(tensor=tensor, int32="int32"),
        "composer": SimpleNamespace(Callback=object),
        "composer.utils": SimpleNamespace(dist=dist),
        "llmfoundry.registry": SimpleNamespace(
            callbacks=SimpleNamespace(register=lambda name, *, func: made.update({name: func}))
        ),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    runpy.run_path(str(assets.folder("recipes") / "mpt/exit_clock.py"))
    monkeypatch.setenv("STOP_AT", stop_at)
    monkeypatch.setenv("STOP_FILE", str(tmp_path / "stop"))
    if file:
        (tmp_path / "stop").touch()
    calls: list[str] = []
    evaluator = SimpleNamespace(eval_interval=lambda state, event: True)
    state = SimpleNamespace(
        get_elapsed_duration=lambda: done, evaluators=[evaluator], stop_training=lambda: calls.append("stopped"),
        device=SimpleNamespace(tensor_to_device=lambda tensor: tensor), timestamp=SimpleNamespace(batch=7),
    )  # fmt: skip
    made["exit_clock"]().batch_checkpoint(state, None)
    assert (bool(calls), evaluator.eval_interval(state, "fit_end")) == (stops, not stops)


@pytest.fixture(scope="module")
def python() -> str:
    found = os.environ.get("COMPOSER_PYTHON", "")
    if not found:
        pytest.skip("COMPOSER_PYTHON names no Python with mosaicml 0.29 and llm-foundry 0.18")
    return found


def test_a_stopped_training_ends_as_an_undisturbed_one(tmp_path: Path, python: str) -> None:
    """Stopped in the middle of an epoch, and gone on with from there."""
    clock = str(assets.folder("recipes") / "mpt/exit_clock.py")

    def trained(folder: str, *person: str, **environment: str) -> list[str]:
        done = subprocess.run(
            [python, "-W", "ignore", "-c", TRAINER, clock, folder, *person],
            cwd=tmp_path, env={**os.environ, "STOP_AT": "", "STOP_FILE": str(tmp_path / "stop"), **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout.splitlines()

    later = str(time.time() + 10000)
    start, evaluated, end = trained("undisturbed", STOP_AT=later)
    assert (start, evaluated, end.split()[:3]) == ("from 0", "evaluated at 20", ["ended", "at", "20"])
    # By a person's file, then by the clock, which is over before the first batch; nothing is evaluated on the way out.
    said = trained("stopped", "stops")
    assert [line.rpartition(" ")[0] for line in said] == [
        "from",
        "exit_clock: stopped after batch 11, as",
        "ended at 11",
    ]
    (tmp_path / "stop").unlink()
    assert trained("stopped", STOP_AT="1")[:2] == ["from 11", "exit_clock: stopped after batch 12, as asked"]
    assert trained("stopped", STOP_AT=later) == ["from 12", evaluated, end]
