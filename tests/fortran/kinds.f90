! SPDX-License-Identifier: Apache-2.0
! Default REALs and INTEGERs of 8 bytes (-fdefault-real-8 -fdefault-integer-8): a program that says which kinds it gives to MPI.
program kinds
  use mpi_f08
  implicit none
  real :: x(3), y(3)
  integer :: n(2), m(2)
  integer(4) :: rank, size, few
  logical(4) :: flag
  integer(MPI_ADDRESS_KIND) :: extent, lower
  type(MPI_Status) :: status
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  x = [1, 2, 3]
  n = [2**30, 5]
  call MPI_Allreduce(x, y, 3_4, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (storage_size(x) /= 64 .or. any(y /= size*x)) stop 1
  y = 0
  call MPI_Sendrecv(x(::2), 2_4, MPI_REAL8, modulo(rank + 1_4, size), 0_4, y(2:), 2_4, MPI_REAL8, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status)
  if (any(y /= [0, 1, 3])) stop 2
  call MPI_Get_count(status, MPI_REAL8, few)
  if (few /= 2 .or. status%MPI_SOURCE /= modulo(rank - 1_4, size)) stop 3
  call MPI_Allreduce(n, m, 2_4, MPI_INTEGER8, MPI_SUM, MPI_COMM_WORLD)
  if (storage_size(n) /= 64 .or. any(m /= size*n)) stop 4
  call MPI_Type_get_extent(MPI_REAL8, lower, extent)
  call MPI_Initialized(flag)
  if (extent /= 8 .or. .not. flag .or. kind(MPI_Wtime()) /= 8) stop 5
  call MPI_Finalize()
end program
