! SPDX-License-Identifier: Apache-2.0
! Names of services in all three interfaces. Blanks at the ends of names do not count.
! ranks: 1 2
module by_mpi
contains
  subroutine look(found, class)
    use mpi
    character(len=MPI_MAX_PORT_NAME), intent(out) :: found
    integer, intent(out) :: class
    integer :: code, ierror
    call MPI_Lookup_name('ocean   ', MPI_INFO_NULL, found, code)
    call MPI_Error_class(code, class, ierror)
  end subroutine
end module

subroutine take_back(name, port, class)
  implicit none
  include 'mpif.h'
  character*(*) name, port
  integer class, code, ierror
  call MPI_UNPUBLISH_NAME(name, MPI_INFO_NULL, port, code)
  call MPI_ERROR_CLASS(code, class, ierror)
end subroutine

program names
  use mpi_f08
  use by_mpi, only: look
  implicit none
  character(len=20) :: name = 'ocean', port = 'isthmus1: a port'
  character(len=MPI_MAX_PORT_NAME) :: found
  integer :: rank, class
  type(MPI_Info) :: info
  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Info_create(info)
  call MPI_Info_set(info, 'isthmus_scope', 'job')
  call look(found, class)
  if (class /= MPI_ERR_NAME) stop 1
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) call MPI_Publish_name(name, info, port)
  call MPI_Barrier(MPI_COMM_WORLD)
  found = '?'
  call MPI_Lookup_name(trim(name), info, found)
  if (found /= port) stop 2
  call look(found, class)
  if (class /= MPI_SUCCESS .or. found /= port) stop 3
  call MPI_Barrier(MPI_COMM_WORLD)
  if (rank == 0) then
    call take_back(name, port, class)
    if (class /= MPI_SUCCESS) stop 4
    call take_back(name, port, class)
    if (class /= MPI_ERR_SERVICE) stop 5
  end if
  call MPI_Info_free(info)
  call MPI_Finalize()
end program
