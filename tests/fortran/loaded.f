! SPDX-License-Identifier: Apache-2.0
! Part of a shared library that loaded.c loads: what mpif.h has as COMMON blocks is known in each of several. PART: the name.
      subroutine PART(sum)
      implicit none
      include 'mpif.h'
      integer sum, ierr
      sum = 1
      call mpi_allreduce(MPI_IN_PLACE, sum, 1, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      call mpi_recv(sum, 0, MPI_INTEGER, MPI_PROC_NULL, 0,
     &              MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      end
