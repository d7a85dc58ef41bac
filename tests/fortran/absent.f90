! SPDX-License-Identifier: Apache-2.0
! Chapters that are not there yet: each call ends with the error that says so, whatever it is given in the place of an argument.
! ranks: 2
module judge
  implicit none
contains
  ! Ends the program unless the error is the named one and the handle is null.
  subroutine absent(code, null, what)
    use mpi
    integer, intent(in) :: code
    logical, intent(in) :: null
    character(len=*), intent(in) :: what
    integer :: class, ierr
    call MPI_Error_class(code, class, ierr)
    if (class == MPI_ERR_UNSUPPORTED_OPERATION .and. null) return
    print *, 'wrong: ', what, class, null
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine
end module

subroutine by_module
  use judge, only: absent
  use mpi
  implicit none
  integer :: code, other, codes(2)
  character(len=8) :: arguments(2, 2)
  arguments = ' '
  call MPI_Comm_spawn('x', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, MPI_ERRCODES_IGNORE, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi: MPI_Comm_spawn')
  call MPI_Comm_spawn_multiple(2, ['x', 'y'], MPI_ARGVS_NULL, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, other, &
    MPI_ERRCODES_IGNORE, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi: MPI_Comm_spawn_multiple')
  call MPI_Comm_spawn_multiple(2, ['x', 'y'], arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, other, &
    codes, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi: MPI_Comm_spawn_multiple with arguments')
end subroutine

subroutine by_types
  use judge, only: absent
  use mpi_f08
  implicit none
  type(MPI_Comm) :: other
  integer :: code, codes(2)
  character(len=8) :: arguments(2, 2)
  character(len=MPI_MAX_PORT_NAME) :: port
  arguments = ' '
  call MPI_Comm_spawn('x', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, other, MPI_ERRCODES_IGNORE, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi_f08: MPI_Comm_spawn')
  call MPI_Comm_spawn_multiple(2, ['x', 'y'], MPI_ARGVS_NULL, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, other, &
    MPI_ERRCODES_IGNORE, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi_f08: MPI_Comm_spawn_multiple')
  call MPI_Comm_spawn_multiple(2, ['x', 'y'], arguments, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_SELF, other, &
    codes, code)
  call absent(code, other == MPI_COMM_NULL, 'mpi_f08: MPI_Comm_spawn_multiple with arguments')
  call MPI_Lookup_name('x', MPI_INFO_NULL, port, code)
  call absent(code, .true., 'mpi_f08: MPI_Lookup_name')
end subroutine

program all_absent
  use mpi_f08
  implicit none
  call MPI_Init()
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN)
  call by_module
  call by_types
  call MPI_Finalize()
end program
