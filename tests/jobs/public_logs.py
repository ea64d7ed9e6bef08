"""What NCCL and nccl-tests printed elsewhere: short excerpts of public logs, each with its address.

Lines are as they were published, but for spaces at their ends and the `#  ` that a page took for a heading
(`sixteen-tests`). Where one is left out between two others, nothing that a parser looks at is missing.
"""

# ruff: noqa: E501
from __future__ import annotations

from dataclasses import dataclass

_ROWS = """\
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
"""
"""The header of rows since 2022."""


@dataclass(frozen=True)
class Excerpt:
    """One log: where it is published, what printed it, and its lines."""

    name: str
    source: str
    printed_by: str
    text: str


@dataclass(frozen=True)
class Algorithm:
    """What a log says of the algorithm for one collective and size; `share` is that of a rank where it differs."""

    log: str
    collective: str
    size: int
    expected: str
    share: int = 0


@dataclass(frozen=True)
class Ranks:
    """How many ranks and nodes were asked for, and what is wrong with those in the header (nothing: all is well)."""

    log: str
    ranks: int
    nodes: int
    problem: str


@dataclass(frozen=True)
class Row:
    """A measurement: bus bandwidth out of place, wrong values of both placements; or the problem with it.

    `ranks` where the collective divides its message among them.
    """

    log: str
    size: int
    measured: int = 0
    bus: str = ""
    wrong: str = ""
    kind: str = ""
    problem: str = ""
    ranks: int = 0


EXCERPTS = (
    Excerpt(
        "numbers", "https://github.com/NVIDIA/nccl/issues/1453", "NCCL 2.20 to 2.22, 24 × H100, log and rows in one stream",
        """\
[0] h100clust-worker-1:497888:497888 [0] NCCL INFO 65536 Bytes -> Algo 0 proto 0 time 37.798233
[0] h100clust-worker-1:497888:497888 [0] NCCL INFO 65536 Bytes -> Algo 0 proto 0 time 37.798233
[0]     345.6    0.19    0.36      0
[0]       131072         32768     float     sum      -1[0] h100clust-worker-1:497888:497888 [0] NCCL INFO 131072 Bytes -> Algo 0 proto 1 time 51.603912
[0] h100clust-worker-1:497888:497888 [0] NCCL INFO 131072 Bytes -> Algo 0 proto 1 time 51.603912
""",
    ),
    Excerpt(
        "ring-by-number", "https://github.com/NVIDIA/nccl/issues/1595", "NCCL 2.20 to 2.22, NCCL_ALGO=Ring",
        """\
[0] NCCL INFO 805306368 Bytes -> Algo 1 proto 2 time 3970.683594
[0] NCCL INFO 805306368 Bytes -> Algo 1 proto 2 time 3970.683594
""",
    ),
    Excerpt(
        "function-and-numbers",
        "https://github.com/aws-samples/awsome-distributed-training/blob/85d8f27/1.architectures/7.sagemaker-hyperpod-eks/slinky-slurm/README.md",
        "NCCL 2.23, training, labels of srun",
        """\
2: node-0:309:309 [0] NCCL INFO AllGather: 37756928 Bytes -> Algo 1 proto 2 time 2860.208008
1: node-3:278:278 [0] NCCL INFO AllGather: opCount 1606 sendbuff 0x93fd44a00 recvbuff 0x96d44e200 count 2359808 datatype 7 op 0 root 0 comm 0x555e2c6387e0 [nranks=4] stream 0x555e2b3a4370
""",
    ),
    Excerpt(
        "names", "https://github.com/NVIDIA/nccl/issues/1752", "NCCL 2.24 or newer, 512 × H200 on 64 nodes, Ethernet",
        """\
se2-r1-gpu-1:166761:166761 [0] NCCL INFO AllReduce: 16777216 Bytes -> Algo TREE proto LL128 channel{Lo..Hi}={0..15}
se2-r1-gpu-1:166761:166761 [0] NCCL INFO AllReduce: 33554432 Bytes -> Algo NVLS_TREE proto SIMPLE channel{Lo..Hi}={0..15}
""",
    ),
    Excerpt(
        "broadcast", "https://github.com/eunomia-bpf/nccl-eBPF/blob/main/docs/tmp/p3-broadcast-proto-sweep.md", "NCCL 2.29, two nodes by sockets",
        """\
NCCL INFO   Algorithm   |                            Tree                  |                            Ring                  |
NCCL INFO   Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |
NCCL INFO     Broadcast |     0.0/   0.0 |     0.0/   0.0 |     0.0/   0.0 |     9.3/   1.2 |    18.0/   0.0 |    22.4/   2.4 |
NCCL INFO Broadcast:    32768 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..0}
NCCL INFO Broadcast:  1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..3}
""",
    ),
    Excerpt(
        "no-algorithm", "https://github.com/microsoft/mscclpp/issues/477", "NCCL 2.19.4 with TUNING, 8 × H100 in one node, one process",
        """\
# nThread 1 nGpus 8 minBytes 268435456 maxBytes 2147483648 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 493516 on     node-0 device  0 [0001:00:00] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 493516 on     node-0 device  1 [0002:00:00] NVIDIA H100 80GB HBM3
#  Rank  2 Group  0 Pid 493516 on     node-0 device  2 [0003:00:00] NVIDIA H100 80GB HBM3
#  Rank  3 Group  0 Pid 493516 on     node-0 device  3 [0008:00:00] NVIDIA H100 80GB HBM3
#  Rank  4 Group  0 Pid 493516 on     node-0 device  4 [0009:00:00] NVIDIA H100 80GB HBM3
#  Rank  5 Group  0 Pid 493516 on     node-0 device  5 [000a:00:00] NVIDIA H100 80GB HBM3
#  Rank  6 Group  0 Pid 493516 on     node-0 device  6 [000b:00:00] NVIDIA H100 80GB HBM3
#  Rank  7 Group  0 Pid 493516 on     node-0 device  7 [000c:00:00] NVIDIA H100 80GB HBM3
node-0:493516:493516 [0] NCCL INFO cudaDriverVersion 12040
NCCL version 2.19.4+cuda12.4
""",
    ),
    Excerpt(
        "wrong-values", "https://github.com/NVIDIA/nccl/issues/1184", "NCCL 2.18.3, H100 and A100, 2 nodes",
        _ROWS + """\
           8             2     float     sum      -1    130.1    0.00    0.00      0    118.6    0.00    0.00      0
      262144         65536     float     sum      -1    325.1    0.81    0.81      0    325.3    0.81    0.81      0
      524288        131072     float     sum      -1    663.1    0.79    0.79  237858    569.4    0.92    0.92  238038
""",
    ),
    Excerpt(
        "sixteen-tests", "https://github.com/NVIDIA/nccl-tests/issues/254", "nccl-tests without MPI, 16 tasks on two nodes",
        "".join(
            f"#  Rank  0 Group  0 Pid {pid} on    {host} device  0 [0x1a] NVIDIA H100 80GB HBM3\n"
            for pid, host in (
                (544816, "dgx01"), (332597, "dgx02"), (332599, "dgx02"), (544818, "dgx01"), (332601, "dgx02"),
                (544822, "dgx01"), (544820, "dgx01"), (332596, "dgx02"), (332603, "dgx02"), (544821, "dgx01"),
                (332598, "dgx02"),
            )
        ),
    ),
    Excerpt(
        "two-tests", "https://github.com/NVIDIA/nccl-tests/issues/107", "nccl-tests of 2022 without MPI, one V100 in each of two nodes",
        """\
# nThread 1 nGpus 1 minBytes 1310720000 maxBytes 1310720000 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
# nThread 1 nGpus 1 minBytes 1310720000 maxBytes 1310720000 step: 1048576(bytes) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
#   Rank  0 Pid   1320 on ip-172-31-20-228 device  0 [0x00] Tesla V100-SXM2-16GB
#   Rank  0 Pid   2066 on ip-172-31-22-230 device  0 [0x00] Tesla V100-SXM2-16GB
""",
    ),
    Excerpt(
        "old-header", "https://github.com/NVIDIA/nccl-tests/issues/109", "nccl-tests of 2022, 6 × V100",
        """\
#   Rank  0 Pid   1115 on host0 device  0 [0x3b] Tesla V100-PCIE-32GB
#   Rank  1 Pid   1115 on host0 device  1 [0x60] Tesla V100-PCIE-32GB
#   Rank  2 Pid   1115 on host0 device  2 [0x61] Tesla V100-PCIE-32GB
#   Rank  3 Pid   1115 on host0 device  3 [0x86] Tesla V100-PCIE-32GB
""",
    ),
    Excerpt(
        "mi300x", "https://github.com/crickett-hpe/hpc-ai-envs/pull/30", "rccl-tests (develop:83d38d9), 8 × MI300X",
        """\
# nThread 1 nGpus 8 minBytes 8388608 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
rccl-tests: Version develop:83d38d9
# Using devices
#  Rank  0 Group  0 Pid  37300 on   g100n126 device  0 [0000:05:00] AMD Instinct MI300X
#  Rank  1 Group  0 Pid  37300 on   g100n126 device  1 [0000:33:00] AMD Instinct MI300X
#  Rank  2 Group  0 Pid  37300 on   g100n126 device  2 [0000:53:00] AMD Instinct MI300X
#  Rank  3 Group  0 Pid  37300 on   g100n126 device  3 [0000:65:00] AMD Instinct MI300X
#  Rank  4 Group  0 Pid  37300 on   g100n126 device  4 [0000:85:00] AMD Instinct MI300X
#  Rank  5 Group  0 Pid  37300 on   g100n126 device  5 [0000:ad:00] AMD Instinct MI300X
#  Rank  6 Group  0 Pid  37300 on   g100n126 device  6 [0000:cd:00] AMD Instinct MI300X
#  Rank  7 Group  0 Pid  37300 on   g100n126 device  7 [0000:e7:00] AMD Instinct MI300X
#
""" + _ROWS + """\
     8388608       2097152     float     sum      -1    91.10   92.08  161.14      0    94.94   88.36  154.63      0
""",
    ),
    Excerpt(
        "gb200", "https://github.com/coreweave/nccl-tests (README, one rack)", "NCCL 2.26.2, 72 × GB200 on 18 nodes",
        "#  Rank 71 Group  0 Pid  14840 on slurm-gb200-207-171 device  3 [0x01] NVIDIA Graphics Device\n#\n" + _ROWS + """\
   536870912     134217728     float     sum      -1   1806.7  297.16  586.06      0   1835.9  292.43  576.74      0
  1073741824     268435456     float     sum      -1   3108.8  345.38  681.17      0   2924.7  367.13  724.06      0
  8589934592    2147483648     float     sum      -1    20299  423.16  834.57      0    20006  429.37  846.82      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 745.53
""",
    ),
    Excerpt(
        "no-check", "https://github.com/Azure/aks-rdma-infiniband (tests/expected-output.md)", "16 × A100 on two nodes, -c 0",
        _ROWS + """\
  2147483648     536870912     float     sum      -1    21845   98.30  184.32    N/A    21781   98.59  184.86    N/A
  8589934592    2147483648     float     sum      -1    86026   99.85  187.22    N/A    86106   99.76  187.05    N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 56.3994
""",
    ),
    Excerpt(
        "error-column", "https://github.com/NVIDIA/nccl-tests/issues/78", "nccl-tests of 2021, 64 × V100 on 8 nodes, EDR",
        """\
#                                                       out-of-place                       in-place
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                       (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   268435456      67108864     float     sum   122131    2.20    4.33  2e-06   122165    2.20    4.33  2e-06
   536870912     134217728     float     sum   244833    2.19    4.32  2e-06   244844    2.19    4.32  2e-06
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 4.32178
""",
    ),
    Excerpt(
        "alltoall-without-redop", "https://github.com/NVIDIA/nccl-tests/issues/78#alltoall", "nccl-tests of 2021, alltoall_perf",
        """\
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52    0.51  1e+00
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 0.507636
""",
    ),
    Excerpt(
        "sendrecv", "https://github.com/NVIDIA/nccl-tests/issues/214", "sendrecv_perf, two A40 on two nodes",
        """\
#  Rank  0 Group  0 Pid 1478709 on      gpu23 device  0 [0x31] NVIDIA A40
#  Rank  1 Group  0 Pid 1171742 on      gpu24 device  0 [0x31] NVIDIA A40
#
""" + _ROWS + """\
         256            64     float     sum      -1    34.24    0.01    0.01      0    33.65    0.01    0.01    N/A
        8192          2048     float     sum      -1    31.76    0.26    0.26      0    31.59    0.26    0.
""",
    ),
    Excerpt(
        "all-gather", "https://github.com/microsoft/msccl/issues/48", "all_gather_perf of 2022, 16 ranks on two nodes",
        _ROWS + """\
        1024            16     float    none      -1    60.47    0.02    0.02      0    36.20    0.03    0.03      0
       16384           256     float    none      -1    37.94    0.43    0.40      0    37.50    0.44    0.41      0
      131072          2048     float    none      -1    55.21    2.37    2.23      0    50.25    2.61    2.45      0
      262144
""",
    ),
    Excerpt(
        "reduce-scatter", "https://github.com/NVIDIA/nccl-tests/issues/128", "reduce_scatter_perf of 2023, 8 ranks on two nodes, from 8 bytes on",
        _ROWS + """\
           0             0     float     sum      -1     5.70    0.00    0.00      0     5.54    0.00    0.00      0
           0             0     float     sum      -1     5.92    0.00    0.00      0     5.51    0.00    0.00      0
         128             4     float     sum      -1    32.31    0.00    0.00      0    25.35    0.01    0.00      0
         256             8     float     sum      -1    24.01    0.01    0.01      0    23.18    0.01    0.01      0
""",
    ),
    Excerpt(
        "alltoall", "https://github.com/NVIDIA/nccl/issues/1531", "alltoall_perf of 2024, 64 × H800 on 8 nodes; breaks off in its first row",
        """\
#  Rank 61 Group  0 Pid 2278519 on GPU-NODE16 device  5 [0x90] NVIDIA H800
#  Rank 62 Group  0 Pid 2278520 on GPU-NODE16 device  6 [0xb8] NVIDIA H800
#  Rank 63 Group  0 Pid 2278521 on GPU-NODE16 device  7 [0xc1] NVIDIA H800
#
""" + _ROWS + """\
     8388608         32768     float    none      -1    337.8   24.83   24.44      0    295.6   28.38
""",
    ),
    Excerpt(
        "labelled", "https://github.com/ROCm/rccl/issues/1490", "all_gather_perf of rccl-tests, srun --label, 32 × MI250X on 4 nodes",
        """\
 0: #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
 0: #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
 0:        65536           512     float    none      -1    107.5    0.61    0.59      0    105.6    0.62    0.60      0
""",
    ),
    Excerpt(
        "rccl-newest", "https://github.com/ROCm/rocm-systems/pull/3415", "rccl-tests 2.17.9 with RCCL 2.28.3, one GPU",
        """\
# rccl-tests version 2.17.9-users/speriaswamy-amd/gfx1151-rccl-tests-enablement:f220897c9b rccl-headers=22803 rccl-library=22803
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 1024 maxBytes 4294967296 step: 2(factor) warmup iters: 20 iters: 30 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid 135241 on stxh-4602-MAPLE device  0 [0000:c4:00] Radeon 8050S Graphics
RCCL version : 2.28.3-gfx1151-rccl:a188cf2
HIP version  : 7.12.60430-713bdeef5b
ROCm version : 7.12.0.2-9999-713bdeef5b
""",
    ),
    Excerpt(
        "rccl-rows", "https://github.com/ROCm/rocm-systems/pull/3272", "rccl-tests with RCCL 2.28.3, MI300X",
        """\
RCCL version : 2.28.3-amdsmi-bdf-topology:360c5c6+
HIP version  : 7.3.53390-490c8d4a00
#
""" + _ROWS + """\
        1024           256     float     sum      -1    53.88    0.02    0.04      0    54.23    0.02    0.04      0
       16384          4096     float     sum      -1    56.65    0.29    0.54      0    56.89    0.29    0.54      0
""",
    ),
    Excerpt(
        "fabric", "https://github.com/NVIDIA/nccl/issues/1357", "NCCL 2.21 or newer, 16 × H100 on two nodes",
        """\
qh100-gpu20:39634:39692 [5] NCCL INFO comm 0x5558e3c10180 rank 13 nRanks 16 nNodes 2 localRanks 8 localRank 5 MNNVL 0
qh100-gpu20:39634:39692 [5] NCCL INFO P2P Chunksize set to 131072
qh100-gpu20:39635:39691 [6] NCCL INFO comm 0x56089796c4b0 rank 14 nRanks 16 nNodes 2 localRanks 8 localRank 6 MNNVL 0
""",
    ),
    Excerpt(
        "newest-tests", "https://github.com/NVIDIA/dgx-spark-playbooks/pull/103", "nccl-tests 2.20.0 with NCCL 2.31.2, two GB10",
        """\
# nccl-tests version 2.20.0 (b4d5bee) nccl-headers=23102 nccl-library=23102
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8192 maxBytes 8589934592 step: 2(factor) warmup iters: 10 iters: 100 agg iters: 1 validation: 1 graph: 0 unalign: 0
#
# Using devices
#  Rank  0 Group  0 Pid 1666603 on spark-d708 device  0 [000f:01:00] NVIDIA GB10
#  Rank  1 Group  0 Pid 1669515 on spark-dbf4 device  0 [000f:01:00] NVIDIA GB10
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)
        8192          2048     float     sum      -1    35.15    0.23    0.23       0    30.33    0.27    0.27       0
       65536         16384     float     sum      -1    67.93    0.96    0.96       0    64.71    1.01    1.01       0
""",
    ),
    Excerpt(
        "tagged", "https://github.com/aws/aws-k8s-tester/pull/503", "mpirun --tag-output, 16 × H100 on two nodes",
        """\
[1,0]<stdout>:#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw  #wrong
[1,0]<stdout>:           8             2     float     sum      -1    12.90    0.00    0.00      0    12.87    0.00    0.00      0
[1,0]<stdout>:          32             8     float     sum      -1    22.25    0.00    0.00      0    13.34    0.00    0.00      0
[1,0]<stdout>:# Out of bounds values : 0 OK
[1,0]<stdout>:# Avg bus bandwidth    : 92.3405
""",
    ),
    Excerpt(
        "lowered", "https://github.com/NVIDIA/nccl-tests/issues/322", "nccl-tests 2.13 to 2.15, H100, -e 32g",
        "# Reducing maxBytes to 27951912277 due to memory limitation\n",
    ),
    Excerpt(
        "version-line", "https://github.com/NVIDIA/nccl/issues/1320", "NCCL 2.21.5, two A100 in one node",
        """\
#  Rank  0 Group  0 Pid    149 on     llm207 device  0 [0x56] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid    149 on     llm207 device  1 [0x57] NVIDIA A100-SXM4-80GB
llm207:149:149 [0] NCCL INFO Bootstrap : Using eno1:172.17.120.207<0>
NCCL version 2.21.5+cuda11.8
""",
    ),
)  # fmt: skip

ALGORITHMS = (
    Algorithm("numbers", "AllReduce", 65536, "TREE"),
    Algorithm("numbers", "AllReduce", 131072, "TREE"),
    Algorithm("numbers", "AllReduce", 262144, "unknown"),  # the size was not measured
    Algorithm("ring-by-number", "AllReduce", 805306368, "RING"),
    # 2359808 elements of 4 bytes on each of 4 ranks: until 2.23 the line has the bytes of all of them.
    Algorithm("function-and-numbers", "AllGather", 37756928, "RING", 9439232),
    Algorithm("function-and-numbers", "AllGather", 151027712, "unknown", 37756928),
    Algorithm("function-and-numbers", "AllReduce", 37756928, "unknown"),  # another collective
    Algorithm("names", "AllReduce", 16777216, "TREE"),
    Algorithm("names", "AllReduce", 33554432, "NVLS_TREE"),
    Algorithm("broadcast", "Broadcast", 1048576, "RING"),
    Algorithm("no-algorithm", "AllReduce", 268435456, "unknown"),
    Algorithm("sendrecv", "SendRecv", 256, "unknown"),
)

RANKS = (
    Ranks("no-algorithm", 8, 1, ""),
    Ranks("no-algorithm", 16, 2, "8 ranks instead of 16"),
    Ranks("sixteen-tests", 16, 2, "11 ranks, 10 of them twice: separate tests"),
    Ranks("two-tests", 2, 2, "2 ranks, 1 of them twice: separate tests"),
    Ranks("old-header", 4, 1, ""),
    Ranks("old-header", 4, 2, "ranks on 1 nodes instead of 2"),
    Ranks("mi300x", 8, 1, ""),
    Ranks("gb200", 72, 18, "1 ranks instead of 72"),
    Ranks("sendrecv", 2, 2, ""),
    Ranks("newest-tests", 2, 2, ""),
    Ranks("version-line", 2, 1, ""),
    Ranks("lowered", 8, 1, "no ranks in the header"),
    Ranks("rccl-newest", 1, 1, ""),
    Ranks("alltoall", 64, 8, "3 ranks instead of 64"),
    Ranks("labelled", 32, 4, "no ranks in the header"),
)

ROWS = (
    Row("numbers", 131072, problem="0 complete rows for 131072 bytes"),
    Row("wrong-values", 524288, 524288, "0.79", "237858 238038", "#wrong"),
    Row("mi300x", 8388608, 8388608, "161.14", "0 0", "#wrong"),
    Row("gb200", 8589934592, 8589934592, "834.57", "0 0", "#wrong"),
    Row("no-check", 8589934592, 8589934592, "187.22", "N/A N/A", "#wrong"),
    Row("error-column", 536870912, 536870912, "4.32", "2e-06 2e-06", "error"),
    Row("alltoall-without-redop", 268435456, problem="0 complete rows"),
    Row("sendrecv", 256, 256, "0.01", "0 N/A", "#wrong"),
    Row("sendrecv", 8192, problem="0 complete rows"),  # the excerpt breaks off within the row
    Row("newest-tests", 8192, 8192, "0.23", "0 0", "#wrong"),
    Row("tagged", 32, 32, "0.00", "0 0", "#wrong"),
    Row("all-gather", 131072, 131072, "2.23", "0 0", "#wrong", ranks=16),
    Row("all-gather", 131080, 131072, "2.23", "0 0", "#wrong", ranks=16),  # 16 x 16 bytes are the least step
    Row("all-gather", 131328, problem="0 complete rows", ranks=16),
    Row("all-gather", 131080, problem="0 complete rows"),
    Row("all-gather", 262144, problem="0 complete rows for 262144 bytes in the output, and 1 that are", ranks=16),
    Row("reduce-scatter", 256, 256, "0.01", "0 0", "#wrong", ranks=8),
    Row("alltoall", 8388608, problem="and 1 that are not complete", ranks=64),
    Row("labelled", 65536, 65536, "0.59", "0 0", "#wrong", ranks=32),
    Row("rccl-rows", 16384, 16384, "0.54", "0 0", "#wrong"),
    Row("lowered", 34359738368, problem="nccl-tests lowered to 27951912277 bytes"),
)

FABRICS = (("fabric", "infiniband"), ("no-algorithm", "unknown"))
VERSIONS = (
    ("no-algorithm", "2.19.4+cuda12.4"), ("newest-tests", "23102"), ("version-line", "2.21.5+cuda11.8"),
    ("gb200", "unknown"), ("rccl-newest", "2.28.3-gfx1151-rccl"), ("rccl-rows", "2.28.3-amdsmi-bdf-topology"),
)  # fmt: skip
FOOTERS = (
    ("gb200", "Avg bus bandwidth", "745.53"),
    ("tagged", "Out of bounds values", "0 OK"),
    ("sendrecv", "Out of bounds values", None),
)
