# SPDX-License-Identifier: Apache-2.0
# Python with a Fortran extension (f2py): both call MPI, and each uses what the other has made.
from mpi4py import MPI
import numpy
import extension

comm = MPI.COMM_WORLD.Dup()
rank, size = comm.Get_rank(), comm.Get_size()

sums = extension.total(comm.py2f(), numpy.full(3, rank + 1.0))
assert (sums == size * (size + 1) / 2).all(), sums

handle, pair = extension.make(comm.py2f())
reversed, pair = MPI.Comm.f2py(handle), MPI.Datatype.f2py(pair)
assert reversed.Get_rank() == size - 1 - rank
assert pair.Get_size() == 8
values = numpy.full(2, rank, dtype="i")
reversed.Bcast([values, 1, pair], root=0)
assert (values == size - 1).all(), values
pair.Free()
reversed.Free()

comm.Set_errhandler(MPI.ERRORS_RETURN)
assert extension.wrong(comm.py2f()) == MPI.ERR_RANK
comm.Free()
if rank == 0:
    print("extension: good")
