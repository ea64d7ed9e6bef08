"""CPU time of one quick health pass beside the same checks in the structure of the reference projects.

Both run against the same fake programs on the same test node, a healthy ND96isr_H100_v5, so the ratio is about
structure: how many programs and shell processes a pass starts. The fake nvidia-smi is cheaper than the real one, which
has to open every GPU; that favours the yardstick, which calls it more often.
"""

from __future__ import annotations

import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.table import Ratio
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import H100, Node
from tests.bed.slurm.engine import nhc_blob

ROUNDS = 5
LIMIT = 1 / 3
REFERENCE = Path(__file__).with_name("health_reference.sh")
MEMORY_KIB = 1_961_032_704
DF = """case "$*" in
    *pcent,ipcent*) printf 'Use%% IUse%%\\n 17%%  3%%\\n' ;;
    *ipcent*) printf 'IUse%%\\n  3%%\\n' ;;
    *) printf 'Use%%\\n 17%%\\n' ;;
esac"""


def health_ratio() -> Ratio:
    """By the built-in runner: CPU seconds of the whole process tree, user and system, the least of alternating runs."""
    return _ratio({})


def nhc_health_ratio() -> Ratio:
    """The same by LBNL NHC, which `cycleforge blobs fetch` has kept, or of the git copy that NHC_SRC names."""
    return _ratio(nhc_blob())


def _ratio(blobs: Mapping[str, bytes]) -> Ratio:
    with tempfile.TemporaryDirectory() as name:
        node = _node(Path(name) / "node")
        for content in blobs.values():
            engine = node.root / "opt/cycleforge/slurm_nhc/nhc"
            engine.mkdir()
            subprocess.run(["tar", "-xf", "-", "-C", str(engine)], input=content, check=True)
        health = str(node.root / "opt/cycleforge/slurm_nhc/health.sh")
        ours, ours_calls = _counted(node, lambda: _cpu_seconds(node, health, "quick"))
        theirs, theirs_calls = _counted(node, lambda: _cpu_seconds(node, str(REFERENCE), str(node.root)))
        result = node.result("quick")
        if result["verdict"] != "pass":
            raise RuntimeError(f"the quick pass on a healthy node is no pass: {result}")
        rounds = [(ours(), theirs(), _one_call(node)) for _ in range(ROUNDS)]
    ours_s, theirs_s, call_s = (min(column) for column in zip(*rounds, strict=True))
    return Ratio(
        f"CPU time of a quick health pass ({result['engine'].strip()}, {ours_calls} calls of nvidia-smi)", ours_s,
        f"one shell process per metric and GPU ({theirs_calls} calls, {call_s * 1000:.1f} ms each)", theirs_s, LIMIT,
    )  # fmt: skip


def _node(folder: Path) -> Healthy:
    folder.mkdir()
    node = healthy(Node(folder, "slurm_nhc"), H100)
    node.memory(MEMORY_KIB)
    node.fake("dmesg", "exit 0")
    node.fake("df", DF)
    node.remove("nvidia-smi")
    (node.bin / "nvidia-smi").symlink_to(NVIDIA_SMI)
    return node


def _counted(node: Healthy, run: Callable[[], float]) -> tuple[Callable[[], float], int]:
    """The run after one warm-up, and how often that called nvidia-smi."""
    node.forget()
    run()
    return run, len(node.calls("nvidia-smi"))


def _one_call(node: Healthy) -> float:
    """CPU seconds of one call of the fake for one figure."""
    return _cpu_seconds(node, "-c", "exec nvidia-smi -i 0 --query-gpu=persistence_mode --format=csv,noheader,nounits")


def _cpu_seconds(node: Healthy, *words: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = subprocess.run(
        [shutil.which("bash") or "bash", *words], env=node.environment(), capture_output=True, text=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        raise RuntimeError(f"{words} ended with {result.returncode}: {result.stdout}{result.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
