! SPDX-License-Identifier: Apache-2.0
! Calls that are known, for profiling libraries (ci/fortran.sh has the list).
program known
  use mpi_f08
  implicit none
  integer :: rank, n, list(4), names(2)
  type(MPI_Comm) :: comm
  character(len=MPI_MAX_OBJECT_NAME) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  list = rank
  call MPI_Sendrecv(list(1:3:2), 2, MPI_INTEGER, rank, 1, names, 2, MPI_INTEGER, rank, 1, comm, MPI_STATUS_IGNORE)
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, comm)
  call MPI_Comm_get_name(comm, name, n)
  call PMPI_Barrier(comm)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
end program
