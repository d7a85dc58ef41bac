! SPDX-License-Identifier: Apache-2.0
! Spawning from Fortran: arguments of both forms, blanks that end them, and what goes wrong. The program spawns itself.
! ranks: 2
module judge
  implicit none
contains
  subroutine check(holds, what)
    use mpi
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    integer :: ierr
    if (holds) return
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end module

subroutine child(parent)
  use judge, only: check
  use mpi_f08
  implicit none
  type(MPI_Comm), intent(inout) :: parent
  character(len=32) :: word
  integer :: rank, number, remote
  logical :: there
  integer(MPI_ADDRESS_KIND) :: appnum
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_remote_size(parent, remote)
  call check(remote == 1 .or. remote == 2, 'parents')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, appnum, there)
  call check(there, 'MPI_APPNUM')
  call check(command_argument_count() == 2, 'number of arguments')
  call get_command_argument(1, word)
  call check(word == 'two words', 'first argument')
  call get_command_argument(2, word)
  read (word, *) number
  call MPI_Send([number, int(appnum), rank], 3, MPI_INTEGER, 0, 5, parent)
  call MPI_Comm_disconnect(parent)
end subroutine

subroutine by_module(program)
  use judge, only: check
  use mpi
  implicit none
  character(len=*), intent(in) :: program
  character(len=16) :: arguments(3), each(2, 3)
  character(len=len(program)) :: programs(2)
  integer :: children, codes(2), code, class, ierr, got(3), status(MPI_STATUS_SIZE), i, sum
  arguments = ['two words       ', '41              ', '                ']
  call MPI_Comm_spawn(program, arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, codes, ierr)
  call check(all(codes == MPI_SUCCESS), 'mpi: codes')
  do i = 1, 2
    call MPI_Recv(got, 3, MPI_INTEGER, MPI_ANY_SOURCE, 5, children, status, ierr)
    call check(got(1) == 41 .and. got(3) == status(MPI_SOURCE), 'mpi: MPI_Comm_spawn')
  end do
  call MPI_Comm_disconnect(children, ierr)
  programs = program
  each(1, :) = arguments
  each(2, :) = ['two words       ', '42              ', '                ']
  call MPI_Comm_spawn_multiple(2, programs, each, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, children, &
    codes, ierr)
  sum = 0
  do i = 1, 2
    call MPI_Recv(got, 3, MPI_INTEGER, MPI_ANY_SOURCE, 5, children, status, ierr)
    call check(got(1) == 41 + got(2), 'mpi: arguments of each program')
    sum = sum + got(1)
  end do
  call check(sum == 83, 'mpi: MPI_Comm_spawn_multiple')
  call MPI_Comm_disconnect(children, ierr)
  call MPI_Comm_spawn('/nonexistent/x', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, children, MPI_ERRCODES_IGNORE, code)
  call MPI_Error_class(code, class, ierr)
  call check(class == MPI_ERR_SPAWN .and. children == MPI_COMM_NULL, 'mpi: a program that is not there')
end subroutine

subroutine by_types(program)
  use judge, only: check
  use mpi_f08
  implicit none
  character(len=*), intent(in) :: program
  character(len=16) :: arguments(3)
  type(MPI_Comm) :: children
  type(MPI_Status) :: status
  integer :: codes(1), code, class, rank, got(3)
  arguments = ['two words       ', '43              ', '                ']
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_spawn(program, arguments, 1, MPI_INFO_NULL, 1, MPI_COMM_WORLD, children, codes)
  call check(codes(1) == MPI_SUCCESS, 'mpi_f08: codes')
  if (rank == 0) then
    call MPI_Recv(got, 3, MPI_INTEGER, 0, 5, children, status)
    call check(got(1) == 43, 'mpi_f08: MPI_Comm_spawn')
  end if
  call MPI_Comm_disconnect(children)
  call MPI_Comm_spawn_multiple(2, ['/nonexistent/x', '/nonexistent/y'], MPI_ARGVS_NULL, [1, 1], &
    [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, children, MPI_ERRCODES_IGNORE, code)
  call MPI_Error_class(code, class)
  call check(class == MPI_ERR_SPAWN .and. children == MPI_COMM_NULL, 'mpi_f08: programs that are not there')
end subroutine

program spawning
  use mpi_f08
  implicit none
  type(MPI_Comm) :: parent
  character(len=1024) :: name
  integer :: rank
  call MPI_Init()
  call MPI_Comm_get_parent(parent)
  if (parent /= MPI_COMM_NULL) then
    call child(parent)
  else
    call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
    call get_command_argument(0, name)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank)
    if (rank == 0) call by_module(trim(name))
    call by_types(trim(name))
  end if
  call MPI_Finalize()
end program
