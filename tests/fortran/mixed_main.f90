! SPDX-License-Identifier: Apache-2.0
! A program in Fortran with a library in C (mixed.c): both make objects that the other uses and frees.
program main
  use mpi_f08
  implicit none
  interface
    subroutine c_library(comm, made, type, good) bind(C)
      integer :: comm, made, type, good
    end subroutine
  end interface
  type(MPI_Comm) :: comm, made
  type(MPI_Datatype) :: type
  integer :: rank, size, theirs, good, n, pair(2)
  call MPI_Init()
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call MPI_Comm_rank(comm, rank)
  call MPI_Comm_size(comm, size)
  call c_library(comm%MPI_VAL, made%MPI_VAL, type%MPI_VAL, good)
  call MPI_Comm_rank(made, theirs)
  call MPI_Type_size(type, n)
  pair = rank
  call MPI_Bcast(pair, 1, type, 0, made)
  if (good /= 1 .or. theirs /= size - 1 - rank .or. n /= 8 .or. any(pair /= size - 1)) then
    print *, 'wrong: objects of C', good, theirs, n, pair
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  call MPI_Type_free(type)
  call MPI_Comm_free(made)
  call MPI_Comm_free(comm)
  call MPI_Finalize()
end program
