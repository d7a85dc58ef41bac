! SPDX-License-Identifier: Apache-2.0
! Heat in a rod: each process has a part of it, and neighbours exchange their edges while the inside is computed.
! Build and run:
!     mpifort -O2 examples/stencil.f90 -o stencil
!     isthmus run --site home:2 --site lab:2 ./stencil
program stencil
  use mpi_f08
  implicit none
  integer, parameter :: n = 1000, steps = 200
  double precision :: now(0:n + 1), next(0:n + 1), heat, total, start
  type(MPI_Request) :: requests(4)
  integer :: rank, size, left, right, step, length
  character(len=MPI_MAX_PROCESSOR_NAME) :: node

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Get_processor_name(node, length)
  left = merge(MPI_PROC_NULL, rank - 1, rank == 0)
  right = merge(MPI_PROC_NULL, rank + 1, rank == size - 1)

  now = 0
  if (rank == 0) now(1) = 1000
  start = MPI_Wtime()
  do step = 1, steps
    call MPI_Irecv(now(0), 1, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(now(n + 1), 1, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, requests(2))
    call MPI_Isend(now(n), 1, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, requests(3))
    call MPI_Isend(now(1), 1, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(4))
    next(2:n - 1) = now(2:n - 1) + 0.25 * (now(1:n - 2) - 2 * now(2:n - 1) + now(3:n))
    call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE)
    ! No heat leaves the ends of the rod.
    if (left == MPI_PROC_NULL) now(0) = now(1)
    if (right == MPI_PROC_NULL) now(n + 1) = now(n)
    next(1) = now(1) + 0.25 * (now(0) - 2 * now(1) + now(2))
    next(n) = now(n) + 0.25 * (now(n - 1) - 2 * now(n) + now(n + 1))
    now(1:n) = next(1:n)
  end do

  heat = sum(now(1:n))
  call MPI_Reduce(heat, total, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD)
  print '(a, i0, a, i0, a, a)', 'part ', rank, ' of ', size, ' on ', node(1:length)
  if (rank == 0) then
    print '(a, f8.3, a, f7.3, a)', 'heat in all: ', total, ', after ', MPI_Wtime() - start, ' s'
    if (abs(total - 1000) > 1d-6) call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Finalize()
end program
