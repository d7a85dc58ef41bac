! SPDX-License-Identifier: Apache-2.0
! Client and server in Fortran: a port, and two processes that connect through it.
! ranks: 2
program connect
   use mpi_f08
   implicit none
   character(len=MPI_MAX_PORT_NAME) :: port
   type(MPI_Comm) :: other
   integer :: rank, got
   call MPI_Init()
   call MPI_Comm_rank(MPI_COMM_WORLD, rank)
   port = ' '
   if (rank == 0) call MPI_Open_port(MPI_INFO_NULL, port)
   call MPI_Bcast(port, len(port), MPI_CHARACTER, 0, MPI_COMM_WORLD)
   if (rank == 0) then
      call MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other)
   else
      call MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_SELF, other)
   end if
   call MPI_Sendrecv(rank, 1, MPI_INTEGER, 0, 1, got, 1, MPI_INTEGER, 0, 1, other, MPI_STATUS_IGNORE)
   if (got /= 1 - rank) call MPI_Abort(MPI_COMM_WORLD, 1)
   call MPI_Comm_disconnect(other)
   if (other /= MPI_COMM_NULL) call MPI_Abort(MPI_COMM_WORLD, 2)
   if (rank == 0) call MPI_Close_port(port)
   call MPI_Finalize()
end program
