! SPDX-License-Identifier: Apache-2.0
! Sections that are not contiguous, used after the call: nonblocking and persistent collective operations, reductions, partitions, datatypes
! with gaps. For compilers with descriptors.
! ranks: 1 3
program sections
  use mpi_f08
  implicit none
  integer, parameter :: n = 3
  type(MPI_Comm) :: comm, quiet
  type(MPI_Request) :: request, pair(2)
  type(MPI_Datatype) :: gaps
  integer :: rank, size, i, code, round, left, right
  integer, allocatable :: all_of_them(:, :), mine(:, :), sum(:)
  ! Operations use these between their calls, so compilers must not keep them in registers.
  integer, asynchronous :: wide(24), got(24)
  integer, allocatable :: none(:)
  integer, pointer :: nobody(:, :) => null()
  logical :: flag

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, size)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  left = modulo(rank - 1, size)
  right = modulo(rank + 1, size)
  allocate (all_of_them(2, n * size), mine(2, n * size), sum(2 * n))

  ! Blocks of a section, and what lies between its elements.
  all_of_them = -1
  mine(1, :) = [(100 * rank + i, i = 1, n * size)]
  mine(2, :) = 0
  call MPI_Iallgather(mine(1, 1:n), n, MPI_INTEGER, all_of_them(2, :), n, MPI_INTEGER, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all(all_of_them(2, :) == [((100 * (i - 1) + modulo(round, n) + 1, round = 0, n - 1), i = 1, size)]), 'Iallgather')
  call check(all(all_of_them(1, :) == -1), 'between the elements')

  ! Only the root has a receive buffer; at the others it is the program's.
  all_of_them = -1
  call MPI_Igather(mine(1, 1:n), n, MPI_INTEGER, all_of_them(1, :), n, MPI_INTEGER, size - 1, comm, request)
  if (rank /= size - 1) all_of_them(1, :) = 7
  do
    call MPI_Request_get_status(request, flag, MPI_STATUS_IGNORE)
    if (flag) exit
  end do
  if (rank == size - 1) then
    call check(all_of_them(1, 1) == 1 .and. all_of_them(1, n * size) == 100 * rank + n, 'there when the status says so')
    all_of_them(1, 1) = 5
  else
    call check(all(all_of_them(1, :) == 7), 'not the root')
  end if
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  if (rank == size - 1) call check(all_of_them(1, 1) == 5, 'the program has it back since the status')

  call MPI_Ialltoall(mine(1, :), n, MPI_INTEGER, all_of_them(2, :), n, MPI_INTEGER, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all_of_them(2, 1) == n * rank + 1 .and. all_of_them(2, n * size) == 100 * (size - 1) + n * rank + n, 'Ialltoall')

  ! Reductions, in place and persistent: each start takes what is there then.
  sum = 0
  sum(1::2) = rank
  call MPI_Iallreduce(MPI_IN_PLACE, sum(1::2), n, MPI_INTEGER, MPI_SUM, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call check(all(sum(1::2) == size * (size - 1) / 2) .and. all(sum(2::2) == 0), 'Iallreduce')
  call MPI_Allreduce_init(mine(1, 1:n), sum(2::2), n, MPI_INTEGER, MPI_MAX, comm, MPI_INFO_NULL, request, code)
  call check(code == MPI_SUCCESS, 'Allreduce_init')
  do round = 1, 3
    mine(1, 1:n) = round * rank
    sum(1::2) = -round
    call MPI_Start(request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(sum(2::2) == round * (size - 1)) .and. all(sum(1::2) == -round), 'a persistent reduction')
  end do
  call MPI_Request_free(request)

  ! Partitions that become ready one by one.
  if (size > 1) then
    wide = [(i, i = 1, 24)] * (rank + 1)
    got = -1
    call MPI_Precv_init(got(2::2), 4, 3_MPI_COUNT_KIND, MPI_INTEGER, left, 0, comm, MPI_INFO_NULL, pair(1))
    call MPI_Psend_init(wide(1::2), 4, 3_MPI_COUNT_KIND, MPI_INTEGER, right, 0, comm, MPI_INFO_NULL, pair(2))
    do round = 1, 2
      call MPI_Startall(2, pair)
      do i = 3, 0, -1
        wide(6 * i + 1:6 * i + 6:2) = 1000 * round + i
        call MPI_Pready(i, pair(2))
      end do
      do
        call MPI_Parrived(pair(1), 2, flag)
        if (flag) exit
      end do
      call check(all(got(14:18:2) == 1000 * round + 2), 'a partition that has arrived')
      call MPI_Waitall(2, pair, MPI_STATUSES_IGNORE)
      call check(all(got(2:6:2) == 1000 * round) .and. all(got(20:24:2) == 1000 * round + 3), 'partitions')
      call check(all(got(1::2) == -1), 'nothing beside the partitions')
    end do
    call MPI_Request_free(pair(1))
    call MPI_Request_free(pair(2))
  end if

  ! A datatype with gaps picks among the elements of the section: MPI 5.0 section 19.1.12.
  call MPI_Type_vector(2, 1, 2, MPI_INTEGER, gaps)
  call MPI_Type_commit(gaps)
  wide = [(i, i = 1, 24)]
  got = -1
  call MPI_Irecv(got(1::3), 1, gaps, left, 1, comm, pair(1))
  call MPI_Isend(wide(2::3), 1, gaps, right, 1, comm, pair(2))
  call MPI_Waitall(2, pair, MPI_STATUSES_IGNORE)
  call check(got(1) == 2 .and. got(7) == 8 .and. count(got /= -1) == 2, 'a datatype with gaps, nonblocking')
  got = -1
  call MPI_Sendrecv(wide(2::3), 1, gaps, right, 2, got(1::3), 1, gaps, left, 2, comm, MPI_STATUS_IGNORE)
  call check(got(1) == 2 .and. got(7) == 8 .and. count(got /= -1) == 2, 'a datatype with gaps')

  ! Arrays that are not allocated, where no element is meant; more elements are an error and no crash.
  call MPI_Sendrecv(none, 0, MPI_INTEGER, right, 3, nobody, 0, MPI_INTEGER, left, 3, comm, MPI_STATUS_IGNORE)
  call MPI_Iallreduce(none, nobody, 0, MPI_INTEGER, MPI_SUM, comm, request)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Comm_dup(comm, quiet)
  call MPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN)
  call MPI_Isend(none, 1, MPI_INTEGER, right, 3, quiet, request, code)
  call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'an array that is not allocated')
  call MPI_Comm_free(quiet)

  ! Requests that are freed while they are active: what they receive arrives all the same, and what they send was taken before.
  got = -1
  call MPI_Irecv(got(1::3), 1, gaps, left, 4, comm, request)
  call MPI_Request_free(request)
  wide = [(i, i = 1, 24)]
  call MPI_Isend(wide(2::3), 1, gaps, right, 4, comm, request)
  call MPI_Request_free(request)
  call MPI_Send(wide, 1, MPI_INTEGER, right, 5, comm)
  call MPI_Recv(code, 1, MPI_INTEGER, left, 5, comm, MPI_STATUS_IGNORE)
  call MPI_F_sync_reg(got)
  call check(got(1) == 2 .and. got(7) == 8 .and. count(got /= -1) == 2, 'requests that were freed')
  got = -1
  call MPI_Recv_init(got(1::3), 1, gaps, left, 6, comm, request)
  call MPI_Start(request)
  call MPI_Sendrecv(wide(2::3), 1, gaps, right, 6, code, 0, MPI_INTEGER, MPI_PROC_NULL, 6, comm, MPI_STATUS_IGNORE)
  call MPI_Barrier(comm)
  call MPI_Sendrecv(wide, 1, MPI_INTEGER, right, 7, code, 1, MPI_INTEGER, left, 7, comm, MPI_STATUS_IGNORE)
  call MPI_Request_free(request)
  call MPI_F_sync_reg(got)
  call check(got(1) == 2 .and. got(7) == 8 .and. count(got /= -1) == 2, 'a persistent request that was freed')

  ! A section that is too short is named.
  call MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)
  call MPI_Isend(wide(1::12), 3, MPI_INTEGER, rank, 3, comm, request, code)
  call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'too short')
  call MPI_Psend_init(wide(1::2), 5, 3_MPI_COUNT_KIND, MPI_INTEGER, rank, 0, comm, MPI_INFO_NULL, request, code)
  call check(code /= MPI_SUCCESS .and. request == MPI_REQUEST_NULL, 'partitions beyond the section')

  call MPI_Type_free(gaps)
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
