"""Ends a training of Composer before its job does: a checkpoint, then a clean end.

LLM Foundry imports this file because the recipe names it in `code_paths`. STOP_AT (Unix time, may be empty) and
STOP_FILE are set by the recipe. Whoever signals Composer's launcher ends it, and what came after the last checkpoint is
trained again.

Sources: mosaicml/composer v0.29.0, composer/core/state.py, stop_training; composer/trainer/trainer.py, _train_loop: the
callbacks of the event BATCH_CHECKPOINT end with CheckpointSaver, which saves when the duration has been reached.
"""

import os
import time
from pathlib import Path

import torch
from composer import Callback
from composer.utils import dist
from llmfoundry.registry import callbacks


def asked_to_stop():
    """Whether the job has to end soon."""
    stop_at = os.environ.get("STOP_AT", "")
    if stop_at and time.time() >= float(stop_at):
        return True
    return bool(os.environ.get("STOP_FILE")) and Path(os.environ["STOP_FILE"]).exists()


class ExitClock(Callback):
    """Any rank may ask for the stop; all learn of it after the same batch."""

    def batch_checkpoint(self, state, logger):
        if state.get_elapsed_duration() >= 1:
            return
        asked = state.device.tensor_to_device(torch.tensor([int(asked_to_stop())], dtype=torch.int32))
        dist.all_reduce(asked, reduce_operation="MAX")
        if not asked.item():
            return
        # An evaluation may take longer than is left.
        for evaluator in state.evaluators:
            evaluator.eval_interval = lambda state, event: False
        state.stop_training()
        if dist.get_global_rank() == 0:
            print(f"exit_clock: stopped after batch {int(state.timestamp.batch)}, as asked", flush=True)


callbacks.register("exit_clock", func=ExitClock)
