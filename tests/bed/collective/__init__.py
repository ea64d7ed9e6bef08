"""A stand-in for nccl-tests and rccl-tests on machines without GPUs: MPI on CPUs, their output, bandwidths of a model.

    install(folder)         # the five programs in a folder, for example /opt/nccl-tests/build of a node
    srun --mpi=pmix --ntasks-per-node=8 /opt/nccl-tests/build/all_reduce_perf -b 1M -e 8G -f 2 -g 1 -c 1

`program.py` is all of it: `all_reduce_perf`, `all_gather_perf`, `reduce_scatter_perf`, `alltoall_perf` and
`sendrecv_perf`, by the name that it is called by. It needs Open MPI's library (openmpi-bin, which brings libopenmpi3)
and no compiler. Each collective moves real data once per row; `#wrong` is what differs. One process may stand for many
GPUs (`-g 8`), which is what a test with many nodes wants: a process costs 0.1 s of CPU.

In the path of rccl-tests (`rccl` in it) it prints what rccl-tests prints. Options: those of nccl-tests (-b -e -f -i -g
-t -c -n -w -a -d -G …); one that would change the output otherwise ends the program with a message.
`NCCL_TESTS_SPLIT=DIV 8` and `MOD 8` work, and so do NCCL_TESTS_DEVICE, CUDA_VISIBLE_DEVICES and, for rccl-tests,
HIP_VISIBLE_DEVICES. With NCCL_DEBUG=INFO and TUNING in NCCL_DEBUG_SUBSYS it writes NCCL_DEBUG_FILE in the form of
FAKE_NCCL_VERSION.

The model. A message of S bytes reaches FAKE_BUSBW x S / (S + FAKE_HALF_BYTES), lowered by the slowest part that takes
part in it, then multiplied by 1 +- noise, drawn for each row and each placement:

    FAKE_BUSBW=190                  GB/s of bus bandwidth, also by collective: `all_reduce=190,alltoall=45`
    FAKE_HALF_BYTES=4194304         message that reaches half of it
    FAKE_SLOW_NODE=hpc-3            also several: `hpc-3,hpc-5`
    FAKE_SLOW_PAIR=hpc-1:hpc-4      slow when both are in one group of ranks; several: `hpc-1:hpc-4,hpc-2:hpc-3`
    FAKE_SLOW_RAIL=hpc-2:5          slow when GPU 5 of the node is in use, or its adapter (NCCL_IB_HCA names it)
    FAKE_SLOW_PERCENT=15            how much slower
    FAKE_NOISE_PERCENT=0            uniform, for each measurement
    FAKE_SEED=7                     the same noise each time for the same nodes, collective and size
    FAKE_GPUS=8                     GPUs of a node      FAKE_GPU_MEMORY_GIB=79    of each; large messages are lowered
    FAKE_WRONG=3                    wrong values in each row, beside those that are really wrong
    FAKE_ALGORITHM=RING             what NCCL logs; nothing for alltoall and sendrecv, as NCCL
    FAKE_STOP_AT=header|row|footer  rank 0 is killed there, in the middle of a line
    FAKE_HANG_AT=start|header|row   rank 0 (`start`: the ranks of FAKE_BAD_NODE) never goes on
    FAKE_END=3                      exit status after a whole run
    FAKE_WITHOUT_MPI=1              built without MPI: each task is a test of its own, and passes
    FAKE_BAD_NODE=hpc-2             its ranks end at their start with status 1, or hang with FAKE_HANG_AT=start

Source of the output: https://github.com/NVIDIA/nccl-tests/blob/a0b82b2/src/util.cu and src/common.cu (2.19.6, 2026),
https://github.com/ROCm/rccl-tests/blob/ae3e635/src/common.cu (2024). Both count elements of all_gather, reduce_scatter
and alltoall per rank and round them down (src/all_gather.cu): the size of a row may be below the one asked for.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

COLLECTIVES = ("all_reduce", "all_gather", "reduce_scatter", "alltoall", "sendrecv")
PROGRAM = Path(__file__).with_name("program.py")
LIBRARY = "libmpi.so.40"
"""Of Open MPI 4 and 5."""


def install(folder: Path) -> None:
    """Put the five programs, `<collective>_perf`, into a folder, which is made.

    Skips without Open MPI where it cannot be had; fails where tests/install-tools.sh would have installed it.
    """
    needs_mpi()
    folder.mkdir(parents=True, exist_ok=True)
    # The interpreter itself: a virtual environment is not everywhere, and its start takes longer.
    text = f"#!{Path(sys.executable).resolve()} -IS\n{PROGRAM.read_text(encoding='utf-8')}"
    for name in COLLECTIVES:
        path = folder / f"{name}_perf"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


def needs_mpi() -> None:
    """Skip or fail the test where Open MPI is missing."""
    if shutil.which("mpirun"):
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        pytest.fail("mpirun not found: run tests/install-tools.sh")
    pytest.skip("mpirun not found, and no apt or no root to install openmpi-bin")
