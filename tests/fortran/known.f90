! SPDX-License-Identifier: Apache-2.0
! Calls that are known, for profiling libraries (ci/fortran.sh has the list).
program known
  use mpi_f08
  implicit none
  integer :: rank, n, list(4), names(2)
  type(MPI_Comm) :: comm
  character(len=MPI_MAX_OBJECT_NAME) :: name
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  list = rank
  call MPI_Sendrecv(list(1:3:2), 2, MPI_INTEGER, rank, 1, names, 2, MPI_INTEGER, rank, 1, comm, MPI_STATUS_IGNORE)
  call MPI_Allreduce(MPI_IN_PLACE, n, 1, MPI_INTEGER, MPI_SUM, comm)
  call MPI_Comm_get_name(comm, name, n)
  call PMPI_Barrier(comm)
  call with_module(comm%MPI_VAL)
  call with_header(comm%MPI_VAL)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
end program

! What the layer does more for than to convert arguments: callbacks, attributes, strings, arrays of requests, attached buffers.
subroutine with_module(comm)
  use mpi
  implicit none
  integer :: comm, op, key, info, handler, ierr, length, requests(2), one
  integer(MPI_ADDRESS_KIND) :: value
  logical :: flag
  character(len=20) :: text
  double precision :: buffer(100 + MPI_BSEND_OVERHEAD), in, out
  external :: add, hear
  call MPI_Op_create(add, .true., op, ierr)
  in = 1
  call MPI_Reduce(in, out, 1, MPI_DOUBLE_PRECISION, op, 0, comm, ierr)
  call MPI_Op_free(op, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, 0_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_set_attr(comm, key, 5_MPI_ADDRESS_KIND, ierr)
  call MPI_Comm_get_attr(comm, key, value, flag, ierr)
  call MPI_Comm_delete_attr(comm, key, ierr)
  call MPI_Comm_free_keyval(key, ierr)
  call MPI_Comm_create_errhandler(hear, handler, ierr)
  call MPI_Comm_set_errhandler(comm, handler, ierr)
  call MPI_Errhandler_free(handler, ierr)
  call MPI_Info_create(info, ierr)
  call MPI_Info_set(info, 'word', 'value', ierr)
  length = len(text)
  call MPI_Info_get_string(info, 'word', length, text, flag, ierr)
  call MPI_Info_free(info, ierr)
  call MPI_Buffer_attach(buffer, 8 * size(buffer), ierr)
  call MPI_Irecv(one, 1, MPI_INTEGER, MPI_PROC_NULL, 0, comm, requests(1), ierr)
  call MPI_Ibsend(one, 1, MPI_INTEGER, MPI_PROC_NULL, 0, comm, requests(2), ierr)
  call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
  call MPI_Buffer_detach(buffer, length, ierr)
end subroutine

subroutine with_header(comm)
  implicit none
  include 'mpif.h'
  integer :: comm, pair, ierr, size
  call MPI_Type_contiguous(2, MPI_INTEGER, pair, ierr)
  call MPI_Type_size(pair, size, ierr)
  call MPI_Type_free(pair, ierr)
  call MPI_Barrier(comm, ierr)
end subroutine

subroutine add(in, inout, length, type)
  implicit none
  integer :: length, type
  double precision :: in(length), inout(length)
  inout = inout + in
end subroutine

subroutine hear(comm, code)
  implicit none
  integer :: comm, code
end subroutine
