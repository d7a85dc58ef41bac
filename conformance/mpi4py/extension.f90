! SPDX-License-Identifier: Apache-2.0
! What extension.py calls through f2py: communicators, datatypes and requests of mpi4py in Fortran, and back.

! The sum of `values` over all processes.
subroutine total(comm, n, values, sums)
  use mpi
  implicit none
  integer, intent(in) :: comm, n
  double precision, intent(in) :: values(n)
  double precision, intent(out) :: sums(n)
  integer :: ierr
  call MPI_Allreduce(values, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, comm, ierr)
end subroutine

! A communicator and a datatype made in Fortran, which Python uses and frees.
subroutine make(comm, reversed, pair)
  use mpi
  implicit none
  integer, intent(in) :: comm
  integer, intent(out) :: reversed, pair
  integer :: rank, ierr
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Comm_split(comm, 0, -rank, reversed, ierr)
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
  call MPI_Type_commit(pair, ierr)
end subroutine

! The error class of a send to a rank that is not there: the error handler of Python's communicator returns.
subroutine wrong(comm, class)
  use mpi
  implicit none
  integer, intent(in) :: comm
  integer, intent(out) :: class
  integer :: size, code, ierr
  call MPI_Comm_size(comm, size, ierr)
  call MPI_Send(size, 1, MPI_INTEGER, size, 0, comm, code)
  call MPI_Error_class(code, class, ierr)
end subroutine
