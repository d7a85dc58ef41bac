! SPDX-License-Identifier: Apache-2.0
! The module mpi: messages, indexes from 1, handles and statuses in arrays, logicals, texts, attributes, callbacks.
! ranks: 1 2 4
module functions
  use mpi
  implicit none
  integer :: handled = 0, deleted = 0
contains
  subroutine add(in, inout, len, type)
    integer :: len, type
    integer :: in(len), inout(len)
    if (type /= MPI_INTEGER) stop 'the operator sees another type'
    inout = in + inout
  end subroutine
  subroutine on_error(comm, code)
    integer :: comm, code, class, ierr
    call MPI_Error_class(code, class, ierr)
    if (comm == MPI_COMM_WORLD .and. class == MPI_ERR_RANK) handled = handled + 1
  end subroutine
  subroutine copy(comm, key, extra, in, out, flag, ierr)
    integer :: comm, key, ierr
    integer(MPI_ADDRESS_KIND) :: extra, in, out
    logical :: flag
    out = in + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine
  subroutine remove(comm, key, value, extra, ierr)
    integer :: comm, key, ierr
    integer(MPI_ADDRESS_KIND) :: value, extra
    deleted = deleted + 1
    ierr = MPI_SUCCESS
  end subroutine
end module

program basic
  use mpi
  use functions
  implicit none
  integer :: rank, size, ierr, i, n, op, handler, key, comm, cart, group
  integer :: requests(4), statuses(MPI_STATUS_SIZE, 4), status(MPI_STATUS_SIZE), indexes(4)
  integer :: out(2), in(2), total(3), coordinates(1), dims(1), info, type, types(2)
  logical :: flag, periods(1)
  integer(MPI_ADDRESS_KIND) :: value, places(2)
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=5) :: short
  character(len=12) :: text
  double precision :: start

  call MPI_Init(ierr)
  start = MPI_Wtime()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)

  ! Messages to both neighbours of a ring, completed in three ways.
  out = [rank, 10 * rank]
  call MPI_Irecv(in(1), 1, MPI_INTEGER, modulo(rank - 1, size), 1, MPI_COMM_WORLD, requests(1), ierr)
  call MPI_Irecv(in(2), 1, MPI_INTEGER, modulo(rank + 1, size), 2, MPI_COMM_WORLD, requests(2), ierr)
  call MPI_Isend(out(1), 1, MPI_INTEGER, modulo(rank + 1, size), 1, MPI_COMM_WORLD, requests(3), ierr)
  call MPI_Isend(out(2), 1, MPI_INTEGER, modulo(rank - 1, size), 2, MPI_COMM_WORLD, requests(4), ierr)
  call MPI_Waitall(4, requests, statuses, ierr)
  call check(in(1) == modulo(rank - 1, size) .and. in(2) == 10 * modulo(rank + 1, size), 'messages')
  call check(statuses(MPI_SOURCE, 1) == modulo(rank - 1, size) .and. statuses(MPI_TAG, 2) == 2, 'statuses')
  call check(all(requests == MPI_REQUEST_NULL), 'requests are null')
  requests = MPI_REQUEST_NULL
  call MPI_Waitany(4, requests, i, status, ierr)
  call check(i == MPI_UNDEFINED, 'an undefined index stays')
  call MPI_Isend(out, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, requests(3), ierr)
  call MPI_Recv(in, 2, MPI_INTEGER, rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
  call MPI_Waitsome(4, requests, n, indexes, MPI_STATUSES_IGNORE, ierr)
  call check(n == 1 .and. indexes(1) == 3, 'indexes from 1')

  ! Reductions in place and with an operator of the program.
  total = [1, rank, 2]
  call MPI_Allreduce(MPI_IN_PLACE, total, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  call check(all(total == [size, size * (size - 1) / 2, 2 * size]), 'in place')
  call MPI_Op_create(add, .true., op, ierr)
  total = rank
  call MPI_Allreduce(MPI_IN_PLACE, total, 3, MPI_INTEGER, op, MPI_COMM_WORLD, ierr)
  call check(all(total == size * (size - 1) / 2), 'operator')
  call MPI_Op_free(op, ierr)

  ! Error handlers.
  call MPI_Comm_create_errhandler(on_error, handler, ierr)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler, ierr)
  call MPI_Send(out, 1, MPI_INTEGER, size + 5, 1, MPI_COMM_WORLD, ierr)
  call check(ierr /= MPI_SUCCESS .and. handled == 1, 'error handler')
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, ierr)

  ! Attributes: what is set is got back, copied and deleted; those of MPI come as values.
  call MPI_Comm_create_keyval(copy, remove, key, 7_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 35_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
  call MPI_Comm_get_attr(comm, key, value, flag, ierr)
  call check(flag .and. value == 42, 'copied attribute')
  call MPI_Comm_free(comm, ierr)
  call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
  call check(deleted == 2 .and. comm == MPI_COMM_NULL, 'deleted attributes')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
  call check(.not. flag, 'no attribute')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
  call check(flag .and. value >= 32767, 'MPI_TAG_UB')
  call MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(MPI_COMM_SELF, key, -1_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_dup(MPI_COMM_SELF, comm, ierr)
  call MPI_Comm_get_attr(comm, key, value, flag, ierr)
  call check(flag .and. value == -1, 'MPI_COMM_DUP_FN')

  ! Texts: blanks at the end go in none and come out.
  call MPI_Comm_set_name(comm, 'a name   ', ierr)
  call MPI_Comm_get_name(comm, name, n, ierr)
  call check(n == 6 .and. name == 'a name', 'names')
  call MPI_Comm_free(comm, ierr)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, ' key ', ' some value ', ierr)
  call MPI_Info_get(info, 'key', 12, text, flag, ierr)
  call check(flag .and. text == 'some value', 'info')
  call MPI_Info_get(info, 'key', 5, short, flag, ierr)
  call check(flag .and. short == 'some', 'a cut value')
  call MPI_Info_free(info, ierr)

  ! Logical arrays, and datatypes in arrays.
  dims = size
  periods = .true.
  call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, .false., cart, ierr)
  periods = .false.
  call MPI_Cart_get(cart, 1, dims, periods, coordinates, ierr)
  call check(periods(1) .and. coordinates(1) == rank .and. dims(1) == size, 'topology')
  call MPI_Comm_free(cart, ierr)
  places = [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND]
  call MPI_Type_create_struct(2, [1, 1], places, [MPI_INTEGER, MPI_DOUBLE_PRECISION], type, ierr)
  call MPI_Type_get_contents(type, 3, 2, 2, indexes, places, types, ierr)
  call check(types(1) == MPI_INTEGER .and. types(2) == MPI_DOUBLE_PRECISION .and. places(2) == 8, 'contents')
  call MPI_Type_free(type, ierr)
  call MPI_Sizeof(start, n, ierr)
  call check(n == 8, 'MPI_Sizeof')
  call MPI_Sizeof(types, n, ierr)
  call check(n == 4, 'MPI_Sizeof of an array')
  call MPI_Sizeof(flag, n, ierr)
  call check(n == 4, 'MPI_Sizeof of a truth value')
  call MPI_Sizeof(periods, n, ierr)
  call check(n == 4, 'MPI_Sizeof of truth values')
  call MPI_Sizeof(text(1:1), n, ierr)
  call check(n == 1, 'MPI_Sizeof of a character')
  call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
  call MPI_Group_free(group, ierr)
  call check(group == MPI_GROUP_NULL .and. MPI_Wtime() >= start, 'the rest')
  call MPI_Finalize(ierr)
contains
  subroutine check(good, what)
    logical, intent(in) :: good
    character(len=*), intent(in) :: what
    if (.not. good) then
      print *, 'wrong: ', what
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
  end subroutine
end program
