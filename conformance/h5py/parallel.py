# SPDX-License-Identifier: Apache-2.0
"""A file of all processes through h5py: rows of each, independently and together, in chunks and compressed, read by others. parallel.py NAME"""

import sys

import h5py
import numpy
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size, name = comm.rank, comm.size, sys.argv[1]
width = 10_000


def row(of, salt):
    return numpy.arange(width) * (of + 1) + salt


with h5py.File(name, "w", driver="mpio", comm=comm) as file:
    alone = file.create_dataset("alone", (size, width), dtype="i8")
    together = file.create_dataset("together", (size, width), dtype="i8")
    chunks = file.create_dataset("chunks", (size, width), dtype="f8", chunks=(1, 500), compression="gzip")
    columns = file.create_dataset("columns", (width, size), dtype="i8")
    file.attrs["size"] = size
    alone[rank] = row(rank, 1)
    with together.collective:
        together[rank] = row(rank, 2)
    with chunks.collective:
        # Filters need the collective way, which HDF5 leaves where it has to convert.
        chunks[rank] = row(rank, 3).astype("f8")
    with columns.collective:
        columns[:, rank] = row(rank, 4)

with h5py.File(name, "r", driver="mpio", comm=comm) as file:
    assert file.attrs["size"] == size
    other = (rank + size // 2) % size
    assert (file["alone"][other] == row(other, 1)).all()
    for salt, dataset in ((2, file["together"]), (3, file["chunks"])):
        with dataset.collective:
            assert (dataset[other] == row(other, salt)).all()
    with file["columns"].collective:
        assert (file["columns"][:, other] == row(other, 4)).all()

# In place, by some of the processes only; atomic mode.
with h5py.File(name, "r+", driver="mpio", comm=comm) as file:
    file.atomic = True
    if rank % 2:
        file["alone"][rank, ::2] = -rank
    comm.Barrier()
    assert (file["alone"][1, ::2] == -1).all() and (file["alone"][1, 1::2] == row(1, 1)[1::2]).all()
comm.Barrier()
if rank == 0:
    MPI.File.Delete(name)
    print("all is well")
