! SPDX-License-Identifier: Apache-2.0
! What a call takes from Fortran, beside calls.c: arguments and output are the same. F08: through mpi_f08, otherwise through mpi.
#if defined(F08)
#define INTERFACE mpi_f08
#define REQUEST type(MPI_Request)
#else
#define INTERFACE mpi
#define REQUEST integer
#endif
program calls
  use INTERFACE
  implicit none
  integer(8) :: repetitions, n
  integer :: rank, from, to, ierr
  REQUEST :: requests(2)
  double precision :: start
  logical :: self
  character(len=20) :: what, number
  call get_command_argument(1, what)
  call get_command_argument(2, number)
  read (number, *) repetitions
  self = what == 'self'
  from = 1
  call MPI_Init(ierr)
  start = MPI_Wtime()
  do n = 1, repetitions
    if (self) then
      call MPI_Irecv(to, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, requests(1), ierr)
      call MPI_Isend(from, 1, MPI_INTEGER, 0, 0, MPI_COMM_SELF, requests(2), ierr)
      call MPI_Wait(requests(2), MPI_STATUS_IGNORE, ierr)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
    else
      call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    end if
  end do
  print '(f0.2)', (MPI_Wtime() - start) / repetitions * 1d9
  call MPI_Finalize(ierr)
end program
