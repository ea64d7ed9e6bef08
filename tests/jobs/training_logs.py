"""What Megatron-LM, Composer and LLM Foundry print while they train: lines in their forms, and short public excerpts.

Megatron-LM 878d65f, megatron/training/training.py (training_log) and megatron/core/utils.py (StragglerDetector.report);
mosaicml/composer v0.29.0, composer/loggers/console_logger.py and composer/callbacks/speed_monitor.py, whose figures come
after ten batches; mosaicml/llm-foundry v0.18.0, llmfoundry/command_utils/train.py, whose last line is `Done.`.
"""

# ruff: noqa: E501
from __future__ import annotations

PUBLIC_MEGATRON = """\
 [2024-04-06 02:59:36] iteration       43/     100 | consumed samples:         5504 | elapsed time per iteration (ms): 5444.9 | throughput per GPU (TFLOP/s/GPU): 239.8 | learning rate: 8.600000E-06 | global batch size:   128 | lm loss: 1.825991E+00 | load_balancing_loss: 1.019746E+00 | loss scale: 1.0 | grad norm: 1.426 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
 [2024-04-06 02:59:41] iteration       44/     100 | consumed samples:         5632 | elapsed time per iteration (ms): 5533.8 | throughput per GPU (TFLOP/s/GPU): 236.0 | learning rate: 8.800000E-06 | global batch size:   128 | lm loss: 1.875063E+00 | load_balancing_loss: 1.020033E+00 | loss scale: 1.0 | grad norm: 1.611 | num zeros: 0.0 | number of skipped iterations:   0 | number of nan iterations:   0 |
"""
"""https://github.com/NVIDIA/Megatron-LM/issues/756: 16 H100, with a time stamp, throughput and a second loss."""

PUBLIC_OLD_MEGATRON = """\
 iteration      122/  250000 | consumed samples:       124928 | elapsed time per iteration (ms): 86545.2 | learning rate: 9.150E-06 | global batch size:  1024 | lm loss: 2.504220E+00 | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations:   0 | number of nan iterations:   0 |
 iteration      123/  250000 | consumed samples:       125952 | elapsed time per iteration (ms): 87871.6 | learning rate: 9.225E-06 | global batch size:  1024 | lm loss: 2.493043E+00 | loss scale: 1.0 | grad norm: 0.236 | number of skipped iterations:   0 | number of nan iterations:   0 |
"""
"""https://github.com/epfLLM/Megatron-LLM/issues/11: neither time stamp nor throughput."""

DONE = "2026-11-22 03:00:00,123: rank0[77][MainThread]: INFO: llmfoundry.command_utils.train: Done.\n"


def megatron_line(
    number: int, of: int, loss: str, milliseconds: float, *, tflops: float | None = 150.0, batch: int = 64, nan: int = 0
) -> str:
    """One report; without `tflops` as without --log-throughput."""
    speed = "" if tflops is None else f" throughput per GPU (TFLOP/s/GPU): {tflops:.1f} |"
    return (
        f" [2026-11-22 03:00:00] iteration {number:8d}/{of:8d} | consumed samples: {number * batch:12d} |"
        f" elapsed time per iteration (ms): {milliseconds:.1f} |{speed} learning rate: 1.000000E-05 |"
        f" global batch size: {batch:5d} | lm loss: {loss} | loss scale: 1.0 | grad norm: 1.234 |"
        f" number of skipped iterations:   0 | number of nan iterations: {nan:3d} |\n"
    )


def straggler_line(slow: float, rank: int, fast: float = 402.11, fastest: int = 5) -> str:
    return (
        "[2026-11-22 03:00:00] | MnRtt/Rnk: 801.22ms/5 | MxRtt/Rnk: 871.22ms/9 | MnPwr/Rnk: 500.00W/1 |"
        f" MxDRtt/Rnk: 1.20ms/3 | MnEtpt/Rnk: {slow:.2f}TF/{rank} | MxEtpt/Rnk: {fast:.2f}TF/{fastest}\n"
    )


def megatron_log(of: int, *, until: int | None = None, slow: float = 395.0, rank: int = 9) -> str:
    """A report of every tenth iteration, with a loss that falls, and the slowest rank of each."""
    text = "WARNING: could not find the metadata file\n"
    for number in range(10, (until or of) + 1, 10):
        text += megatron_line(number, of, f"{9 - 4 * number / of:.6E}", 20000.0 if number == 10 else 1234.5)
        text += straggler_line(slow, rank)
    return text


def composer_log(batches: int, *, tokens: float = 2100.0, until: int | None = None) -> str:
    """A report of every batch, with a loss that falls; speed after ten of them."""
    text = "Starting training...\n"
    for number in range(1, (until or batches) + 1):
        text += f"[batch={number}/{batches}]:\n\t Train time/batch: {number - 1}\n"
        text += f"\t Train loss/train/total: {10 - number * 0.05:.4f}\n"
        if number > 10:
            text += f"\t Train throughput/batches_per_sec: 0.0401\n\t Train throughput/device/tokens_per_sec: {tokens:.4f}\n"
            text += "\t Train throughput/device/mfu: 0.4012\n"
        text += "\t Train time/train: 0.0081\n"
    return text + (DONE if until is None else "")
