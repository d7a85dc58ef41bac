! SPDX-License-Identifier: Apache-2.0
! The Fortran side of mixed.c.
module operators
  implicit none
contains
  subroutine sum_up(in, inout, len, type)
    integer :: len, type
    integer :: in(len), inout(len)
    inout = inout + in
  end subroutine
end module

subroutine fortran_part(comm, key, op, made, good)
  use mpi
  use operators
  implicit none
  integer :: comm, key, op, made, good, rank, least, ierr
  call MPI_Comm_rank(comm, rank, ierr)
  call MPI_Allreduce(rank + 4, least, 1, MPI_INTEGER, op, comm, ierr)
  good = merge(1, 0, least == 4)
  call MPI_Op_create(sum_up, .true., made, ierr)
end subroutine

subroutine fortran_attributes(comm, from_c, made, good)
  use mpi
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: comm, from_c, made, good, ierr
  integer(MPI_ADDRESS_KIND) :: value
  integer(c_int), pointer :: in_c
  logical :: flag
  call MPI_Comm_get_attr(comm, from_c, value, flag, ierr)
  call c_f_pointer(transfer(value, c_null_ptr), in_c)
  good = merge(2, 0, flag .and. in_c == 77)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, made, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(comm, made, -3_MPI_ADDRESS_KIND, ierr)
end subroutine

module handlers
  implicit none
  integer :: heard_of = 0, heard = 0
contains
  subroutine hears(comm, code)
    integer :: comm, code
    heard_of = comm
    heard = code
  end subroutine
end module

subroutine fortran_handler(comm, made)
  use mpi
  use handlers
  implicit none
  integer :: comm, made, ierr
  call MPI_Comm_create_errhandler(hears, made, ierr)
end subroutine

subroutine fortran_heard(comm, code)
  use handlers
  implicit none
  integer :: comm, code
  comm = heard_of
  code = heard
end subroutine

subroutine fortran_fails(comm, code)
  use mpi
  implicit none
  integer :: comm, code
  call MPI_Send(comm, 1, MPI_INTEGER, 0, -5, comm, code)
end subroutine

! Keys that are made and freed, so many times.
subroutine fortran_keys(times)
  use mpi
  implicit none
  integer :: times, key, n, code
  do n = 1, times
    call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 7_MPI_ADDRESS_KIND, code)
    call MPI_Comm_free_keyval(key, code)
  end do
end subroutine
