"""A program of MPI: each rank says its host, its rank, the number of ranks, and the sum over all ranks of rank + 1.

Open MPI's library is called by its C interface, so that no compiler is needed. Handles are addresses of its objects.
Source: https://github.com/open-mpi/ompi/blob/v4.1.x/ompi/include/mpi.h.in
"""

import ctypes
import os

mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name)))


world = handle("ompi_mpi_comm_world")
rank, size, total = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
mpi.MPI_Init(None, None)
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
mine = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(total), 1, handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), world)
print(os.uname().nodename, rank.value, size.value, total.value, flush=True)
mpi.MPI_Finalize()
