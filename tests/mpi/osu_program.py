# ruff: noqa: PTH119
# What the job `osu` asks of the OSU Micro-Benchmarks 7.4: osu_latency and osu_bw, by the name that it is called by,
# with -m FROM:TO and -i ITERATIONS. Two ranks send real messages; figures are of the clock, rows in the real form.
# Open MPI's library is called by its C interface, so that no compiler is needed. Handles are addresses of its objects.
# Sources: https://github.com/sherrywong1220/osu-micro-benchmarks-7.4/tree/bed60f5/c/mpi/pt2pt/standard and c/util (the
# width of a column and its two decimals are -DFIELD_WIDTH=18 and -DFLOAT_PRECISION=2 of its configure.ac),
# https://github.com/open-mpi/ompi/blob/v4.1.x/ompi/include/mpi.h.in
import ctypes
import os
import sys
import time

LATENCY = os.path.basename(sys.argv[0]) == "osu_latency"
WINDOW = 1 if LATENCY else 64
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=True))
first, last = (int(number) for number in arguments["-m"].split(":"))
# Half the CPU time of a start is the search for adapters that are not there.
for name, value in (("pml", "ob1"), ("btl", "self,tcp"), ("mpi_yield_when_idle", "1")):
    os.environ.setdefault(f"OMPI_MCA_{name}", value)
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


world, byte = handle("ompi_mpi_comm_world"), handle("ompi_mpi_byte")
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
if size.value != 2:
    if not rank.value:
        print("This test requires exactly two processes", file=sys.stderr, flush=True)
    mpi.MPI_Finalize()
    sys.exit(1)
other, buffer = 1 - rank.value, ctypes.create_string_buffer(last)


def send(length: int) -> None:
    mpi.MPI_Send(buffer, length, byte, other, 1, world)


def receive(length: int) -> None:
    mpi.MPI_Recv(buffer, length, byte, other, 1, world, None)


if not rank.value:
    column = "Avg Latency(us)" if LATENCY else "Bandwidth (MB/s)"
    print(f"\n# OSU MPI {'Latency' if LATENCY else 'Bandwidth'} Test v7.4\n# Datatype: MPI_CHAR.\n# Size{column:>22}")
length = first
while length <= last:
    rounds = int(arguments["-i"])
    began = time.perf_counter()
    for _ in range(rounds):
        for _ in range(WINDOW):
            (receive if rank.value else send)(length)
        answer = length if LATENCY else 4
        (send if rank.value else receive)(min(answer, last))
    taken = time.perf_counter() - began
    figure = taken / rounds / 2 * 1e6 if LATENCY else length * WINDOW * rounds / taken / 1e6
    if not rank.value:
        print(f"{length:<10d}{figure:18.2f}", flush=True)
    length *= 2
mpi.MPI_Finalize()
