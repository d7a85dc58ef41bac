! SPDX-License-Identifier: Apache-2.0
! The module mpi_f08: types, operators, no ierror, large counts, sections that are not contiguous, callbacks.
! ranks: 1 2 4
module functions
  use mpi_f08
  implicit none
  integer :: freed = 0
contains
  subroutine largest(in, inout, len, type)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: in, inout
    integer :: len
    type(MPI_Datatype) :: type
    integer, pointer :: a(:), b(:)
    call c_f_pointer(in, a, [len])
    call c_f_pointer(inout, b, [len])
    if (type == MPI_INTEGER) b = max(a, b)
  end subroutine
  subroutine query(extra, status, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    type(MPI_Status) :: status
    integer :: ierr
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra))
    call MPI_Status_set_cancelled(status, .false.)
    ierr = MPI_SUCCESS
  end subroutine
  subroutine release(extra, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = freed + 1
    ierr = MPI_SUCCESS
  end subroutine
  subroutine cancel(extra, complete, ierr)
    integer(MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = MPI_SUCCESS
  end subroutine
end module

program modern
  use mpi_f08
  use functions
  use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
  implicit none
  type(MPI_Datatype), parameter :: element = MPI_INTEGER
  type(MPI_Comm) :: comm
  type(MPI_Request) :: request, pair(2)
  type(MPI_Status) :: status
  type(MPI_Op) :: op
  type(c_ptr) :: memory
  integer :: rank, size, i, n, left, right
  integer :: matrix(6, 5), got(6, 5), part(3, 2), whole(3)
  integer, pointer :: given(:)
  integer(MPI_COUNT_KIND) :: many
  logical :: flag
  character(len=MPI_MAX_OBJECT_NAME) :: name

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)

  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call check(comm /= MPI_COMM_WORLD .and. comm == comm, 'operators')
  call MPI_Comm_set_name(comm, 'of mine')
  call MPI_Comm_get_name(comm, name, n)
  call check(name == 'of mine' .and. n == 7, 'names')

  ! Sections of both sides, nonblocking: this test is for compilers with descriptors.
  matrix = reshape([(100 * rank + i, i = 1, 30)], [6, 5])
  got = -1
  call MPI_Irecv(got(2:6:2, 1:5:4), 6, element, left, 4, comm, pair(1))
  call MPI_Isend(matrix(1:5:2, 2:4:2), 6, element, right, 4, comm, pair(2))
  call MPI_Waitall(2, pair, MPI_STATUSES_IGNORE)
  call check(all(pair == MPI_REQUEST_NULL) .and. .not. any(pair /= MPI_REQUEST_NULL), 'comparison of arrays of handles')
  matrix = matrix + 100 * (left - rank)
  call check(all(got(2:6:2, 1:5:4) == matrix(1:5:2, 2:4:2)), 'sections')
  call check(all(got(1:5:2, :) == -1) .and. all(got(:, 2:4) == -1), 'nothing beside the section')
  ! Fewer elements than the section has.
  got = -1
  call MPI_Sendrecv(matrix(1:5:2, 2:4:2), 4, element, right, 5, got(:, 3), 4, element, left, 5, comm, status)
  call MPI_Get_count(status, element, n)
  matrix = matrix + 100 * (modulo(left - 1, size) - left)
  call check(n == 4 .and. all(got(1:4, 3) == [matrix(1:5:2, 2), matrix(1, 4)]) .and. got(5, 3) == -1, 'part of a section')
  ! Backwards, and a collective operation that needs a copy.
  whole = [1, 2, 3]
  call MPI_Bcast(whole(3:1:-1), 3, element, 0, comm)
  call check(all(whole == [1, 2, 3]), 'backwards')
  got = rank + 1
  call MPI_Allreduce(MPI_IN_PLACE, got(1:5:2, 1:3:2), 6, element, MPI_SUM, comm)
  call check(all(got(1:5:2, 1:3:2) == size * (size + 1) / 2) .and. all(got(2:6:2, :) == rank + 1), 'reduction of a section')

  ! Large counts.
  many = 6
  part = reshape([(rank, i = 1, 6)], [3, 2])
  call MPI_Sendrecv_replace(part, many, element, right, 6, left, 6, comm, status)
  call check(all(part == left), 'a large count')
  call MPI_Get_count(status, element, many)
  call check(many == 6 .and. status%MPI_SOURCE == left .and. status%MPI_TAG == 6, 'status')

  call MPI_Op_create(largest, .true., op)
  n = rank
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, element, op, comm)
  call check(n == size - 1, 'operator')
  call MPI_Op_free(op)
  call check(op == MPI_OP_NULL, 'a freed operator')

  call MPI_Grequest_start(query, release, cancel, 3_MPI_ADDRESS_KIND, request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_elements(status, MPI_INTEGER, n)
  call check(n == 3 .and. freed == 1, 'generalized request')

  call MPI_Alloc_mem(40_MPI_ADDRESS_KIND, MPI_INFO_NULL, memory)
  call c_f_pointer(memory, given, [10])
  given = 5
  call MPI_Free_mem(given)
  call MPI_Test(request, flag, status)
  call check(flag, 'a null request')
  call MPI_Comm_free(comm)
  call MPI_Finalize()
contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (.not. good) then
      print *, 'wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1)
    end if
  end subroutine
end program
