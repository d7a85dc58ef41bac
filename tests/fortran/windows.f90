! SPDX-License-Identifier: Apache-2.0
! Windows through the modules: memory as C pointers, operations with sections and derived types, attributes by value,
! error handlers and attribute functions in Fortran.
! ranks: 1 3
module judge
  implicit none
  integer :: heard = 0, deleted = 0
contains
  subroutine check(fine, what)
    use mpi_f08
    logical, intent(in) :: fine
    character(len=*), intent(in) :: what
    if (fine) return
    print *, 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine hear(win, code)
    use mpi_f08
    type(MPI_Win) :: win
    integer :: code, class
    call MPI_Error_class(code, class)
    call check(win /= MPI_WIN_NULL .and. class == MPI_ERR_RMA_SYNC, 'what a handler is told')
    heard = heard + 1
  end subroutine

  subroutine on_delete(win, keyval, value, extra, code)
    use mpi_f08
    type(MPI_Win) :: win
    integer :: keyval, code
    integer(MPI_ADDRESS_KIND) :: value, extra
    call check(win /= MPI_WIN_NULL .and. keyval /= MPI_KEYVAL_INVALID, 'the window of a deleted value')
    call check(value == 42 .and. extra == 7, 'a deleted value')
    deleted = deleted + 1
    code = MPI_SUCCESS
  end subroutine
end module

subroutine by_types(rank, size)
  use, intrinsic :: iso_c_binding
  use judge
  use mpi_f08
  implicit none
  integer, intent(in) :: rank, size
  type(MPI_Win) :: win
  type(MPI_Errhandler) :: handler
  type(MPI_Request) :: request
  type(C_PTR) :: base
  integer, pointer :: cells(:), first(:)
  integer :: unit, next, before, keyval, i, numbers(10), got(5)
  integer(MPI_ADDRESS_KIND) :: bytes, value
  character(len=MPI_MAX_OBJECT_NAME) :: name
  logical :: flag
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  call MPI_Win_allocate_shared(40_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
  call c_f_pointer(base, cells, [10])
  call check(all(cells == 0), 'new memory')
  call MPI_Win_get_name(win, name, i)
  call check(i == 0 .and. name == '', 'the name of a new window')
  numbers = [(100 * rank + i, i = 1, 10)]
  call MPI_Win_fence(0, win)
  call MPI_Put(numbers(1:9:2), 5, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call check(all(cells(1:5) == [(100 * before + i, i = 1, 9, 2)]), 'a section that was put')
  got = 0
  call MPI_Get(got, 5, MPI_INTEGER, next, 0_MPI_ADDRESS_KIND, 5, MPI_INTEGER, win)
  call MPI_Win_fence(0, win)
  call check(all(got == numbers(1:9:2)), 'what was got')
  call MPI_Accumulate(1, 1, MPI_INTEGER, 0, 9_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win)
  call MPI_Win_fence(MPI_MODE_NOSUCCEED, win)
  call MPI_Win_shared_query(win, 0, bytes, unit, base)
  call c_f_pointer(base, first, [10])
  call check(bytes == 40 .and. unit == 4 .and. first(10) == size, 'memory of another process')
  call MPI_Win_lock_all(0, win)
  call MPI_Rget(got, 1, MPI_INTEGER, 0, 9_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(got(1) == size, 'a get with a request')
  call MPI_Fetch_and_op(5, got(2), MPI_INTEGER, rank, 8_MPI_ADDRESS_KIND, MPI_REPLACE, win)
  call MPI_Compare_and_swap(6, 5, got(3), MPI_INTEGER, rank, 8_MPI_ADDRESS_KIND, win)
  call MPI_Win_unlock_all(win)
  call check(got(2) == 0 .and. got(3) == 5 .and. cells(9) == 6, 'a cell that was swapped')
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag)
  call check(flag .and. value == 40, 'MPI_WIN_SIZE')
  call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag)
  call check(flag .and. value == 4, 'MPI_WIN_DISP_UNIT')
  call MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, value, flag)
  call check(flag .and. value == MPI_WIN_FLAVOR_SHARED, 'MPI_WIN_CREATE_FLAVOR')
  call MPI_Win_get_attr(win, MPI_WIN_MODEL, value, flag)
  call check(flag .and. value == MPI_WIN_UNIFIED, 'MPI_WIN_MODEL')
  call MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, keyval, 7_MPI_ADDRESS_KIND)
  call MPI_Win_set_attr(win, keyval, 42_MPI_ADDRESS_KIND)
  call MPI_Win_get_attr(win, keyval, value, flag)
  call check(flag .and. value == 42, 'an attribute')
  call MPI_Win_free_keyval(keyval)
  call MPI_Win_create_errhandler(hear, handler)
  call MPI_Win_set_errhandler(win, handler)
  call MPI_Errhandler_free(handler)
  call MPI_Win_unlock(0, win, i)
  call check(i /= MPI_SUCCESS .and. heard == 1, 'an error that a handler hears of')
  call MPI_Win_free(win)
  call check(win == MPI_WIN_NULL .and. deleted == 1, 'a window that was freed')
end subroutine

subroutine by_module(rank, size)
  use judge, only: check
  use mpi
  implicit none
  integer, intent(in) :: rank, size
  integer :: win, memory(8), group, ierr, next, before
  integer(MPI_ADDRESS_KIND) :: at
  logical :: flag
  memory = -1
  next = mod(rank + 1, size)
  before = mod(rank + size - 1, size)
  call MPI_Win_create(memory, 32_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
  call MPI_Win_get_group(win, group, ierr)
  call MPI_Win_post(group, 0, win, ierr)
  call MPI_Win_start(group, 0, win, ierr)
  at = 3
  call MPI_Put(rank, 1, MPI_INTEGER, next, at, 1, MPI_INTEGER, win, ierr)
  call MPI_Win_complete(win, ierr)
  call MPI_Win_wait(win, ierr)
  call MPI_F_sync_reg(memory)
  call check(memory(4) == before .and. memory(3) == -1, 'mpi: MPI_Put')
  call MPI_Group_free(group, ierr)
  call MPI_Win_get_attr(win, MPI_WIN_SIZE, at, flag, ierr)
  call check(flag .and. at == 32, 'mpi: MPI_WIN_SIZE')
  call MPI_Win_free(win, ierr)
end subroutine

program windows
  use mpi_f08
  implicit none
  integer :: rank, size
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call by_types(rank, size)
  call by_module(rank, size)
  call MPI_Finalize()
end program
