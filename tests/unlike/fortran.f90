! SPDX-License-Identifier: Apache-2.0
! What Fortran has beside C, between unlike machines: LOGICALs, REAL and COMPLEX of 16 bytes, pairs, operators and
! error handlers of the program, sections. Each process sends the same values to the next one, and all reduce them.
program unlike
  use mpi_f08
  implicit none
  integer, parameter :: quad = selected_real_kind(30)
  integer :: rank, size, left, right, i, code, ones(6), heard = 0
  logical :: truth(4), other(4)
  logical(1) :: truth1(3), other1(3)
  logical(8) :: truth8(3), other8(3)
  integer(8) :: long(3), other_long(3)
  integer(2) :: short(3), other_short(3)
  real(quad) :: wide(3), other_wide(3)
  complex(quad) :: plane(2), other_plane(2)
  complex(8) :: z(2), other_z(2)
  real :: pair(2), best(2)
  character(len=5) :: word, other_word
  type(MPI_Op) :: op
  type(MPI_Errhandler) :: handler
  type(MPI_Comm) :: comm, handled
  type(MPI_Status) :: status
  type(MPI_Datatype) :: seen = MPI_DATATYPE_NULL

  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, size)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)

  truth = [.true., .false., .false., .true.]
  truth1 = [.true., .false., .true.]
  truth8 = [.false., .true., .true.]
  long = [1_8, -2_8, 2_8**40 + 3]
  short = [1_2, -2_2, 770_2]
  wide = [1 / 3.0_quad, -sqrt(2.0_quad), 1e1000_quad]
  plane = [cmplx(1 / 3.0_quad, -2, quad), (0.1_quad, 1e-1000_quad)]
  z = [(0.1d0, -2.5d0), (1d100, 3d0)]
  word = 'abc d'
  call MPI_Sendrecv(truth, 4, MPI_LOGICAL, right, 1, other, 4, MPI_LOGICAL, left, 1, comm, MPI_STATUS_IGNORE)
  call check(all(truth .eqv. other), 'LOGICAL')
  call MPI_Sendrecv(truth1, 3, MPI_LOGICAL1, right, 1, other1, 3, MPI_LOGICAL1, left, 1, comm, MPI_STATUS_IGNORE)
  call check(count(truth1 .eqv. other1) == 3, 'LOGICAL(1)')
  call MPI_Sendrecv(truth8, 3, MPI_LOGICAL8, right, 1, other8, 3, MPI_LOGICAL8, left, 1, comm, MPI_STATUS_IGNORE)
  call check(count(truth8 .eqv. other8) == 3, 'LOGICAL(8)')
  call MPI_Sendrecv(long, 3, MPI_INTEGER8, right, 1, other_long, 3, MPI_INTEGER8, left, 1, comm, MPI_STATUS_IGNORE)
  call check(all(long == other_long), 'INTEGER(8)')
  call MPI_Sendrecv(short, 3, MPI_INTEGER2, right, 1, other_short, 3, MPI_INTEGER2, left, 1, comm, MPI_STATUS_IGNORE)
  call check(all(short == other_short), 'INTEGER(2)')
  call MPI_Sendrecv(wide, 3, MPI_REAL16, right, 1, other_wide, 3, MPI_REAL16, left, 1, comm, status)
  call check(all(wide == other_wide), 'REAL(16)')
  call MPI_Get_count(status, MPI_REAL16, i)
  call check(i == 3, 'a count of REAL(16)')
  call MPI_Sendrecv(plane, 2, MPI_COMPLEX32, right, 1, other_plane, 2, MPI_COMPLEX32, left, 1, comm, MPI_STATUS_IGNORE)
  call check(all(plane == other_plane), 'COMPLEX(16)')
  call MPI_Sendrecv(z, 2, MPI_DOUBLE_COMPLEX, right, 1, other_z, 2, MPI_DOUBLE_COMPLEX, left, 1, comm, MPI_STATUS_IGNORE)
  call check(all(z == other_z), 'DOUBLE COMPLEX')
  call MPI_Sendrecv(word, 5, MPI_CHARACTER, right, 1, other_word, 5, MPI_CHARACTER, left, 1, comm, MPI_STATUS_IGNORE)
  call check(word == other_word, 'CHARACTER')

  ! Reductions.
  other_wide = wide
  call MPI_Allreduce(MPI_IN_PLACE, other_wide, 2, MPI_REAL16, MPI_MAX, comm)
  call check(all(other_wide == wide), 'MPI_MAX of REAL(16)')
  call MPI_Allreduce(MPI_IN_PLACE, other_plane, 1, MPI_COMPLEX32, MPI_SUM, comm)
  call check(abs(other_plane(1) - size * plane(1)) < 1e-30_quad, 'MPI_SUM of COMPLEX(16)')
  other(1) = rank /= size - 1
  call MPI_Allreduce(MPI_IN_PLACE, other(1), 1, MPI_LOGICAL, MPI_LAND, comm)
  call check(.not. other(1), 'MPI_LAND')
  pair = [real(rank), real(10 * rank)]
  call MPI_Allreduce(pair, best, 1, MPI_2REAL, MPI_MAXLOC, comm)
  call check(all(best == [real(size - 1), real(10 * (size - 1))]), 'MPI_MAXLOC of REALs')

  ! An operator of the program is told the handle of the datatype.
  call MPI_Op_create(add, .true., op)
  ones = 1
  call MPI_Allreduce(MPI_IN_PLACE, ones(1:5:2), 3, MPI_INTEGER, op, comm)
  call check(all(ones(1:5:2) == size) .and. all(ones(2:6:2) == 1), 'an operator of the program, on a section')
  call MPI_Op_free(op)

  ! An error handler is told the communicator.
  call MPI_Comm_dup(comm, handled)
  call MPI_Comm_create_errhandler(hear, handler)
  call MPI_Comm_set_errhandler(handled, handler)
  call MPI_Send(ones, 1, MPI_INTEGER, size, 1, handled, code)
  call check(heard == 1 .and. code /= MPI_SUCCESS, 'an error handler of the program')
  call MPI_Comm_set_errhandler(handled, MPI_ERRORS_RETURN)
  call MPI_Errhandler_free(handler)
  call MPI_Comm_free(handled)

  ! Sections, one after another and with gaps.
  ones = [(i, i = 1, 6)]
  call MPI_Sendrecv(ones(6:2:-2), 3, MPI_INTEGER, right, 2, ones(1:5:2), 3, MPI_INTEGER, left, 2, comm, MPI_STATUS_IGNORE)
  call check(all(ones == [6, 2, 4, 4, 2, 6]), 'sections')
  if (rank == 0) print '(a)', 'Fortran between unlike machines is right'
  call MPI_Comm_free(comm)
  call MPI_Finalize()
contains
  subroutine add(in, inout, length, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: from(:), to(:)
    seen = datatype
    call check(seen == MPI_INTEGER, 'the datatype of an operator')
    call c_f_pointer(in, from, [length])
    call c_f_pointer(inout, to, [length])
    to = to + from
  end subroutine

  subroutine hear(communicator, error_code)
    type(MPI_Comm) :: communicator
    integer :: error_code, class
    call MPI_Error_class(error_code, class)
    if (communicator == handled .and. class == MPI_ERR_RANK) heard = heard + 1
  end subroutine

  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (good) return
    print '(2a,i0)', what, ' is wrong at rank ', rank
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end program
