! SPDX-License-Identifier: Apache-2.0
! REALs of 8 bytes (-fdefault-real-8 -fdefault-double-8): MPI_REAL of mpif.h is as long as they are.
      program longer
      implicit none
      include 'mpif.h'
      real x(2), y(2)
      integer size, ierr
      call mpi_init(ierr)
      x(1) = 1
      x(2) = 7
      y(1) = 0
      y(2) = 0
      call mpi_allreduce(x, y, 2, MPI_REAL, MPI_SUM, MPI_COMM_SELF,
     &                   ierr)
      if (kind(x) .ne. 8 .or. y(1) .ne. 1 .or. y(2) .ne. 7) stop 1
      call mpi_type_size(MPI_COMPLEX, size, ierr)
      if (size .ne. 16) stop 2
      y(1) = 2
      y(2) = 3
      call mpi_reduce_local(x, y, 1, MPI_2REAL, MPI_MAXLOC, ierr)
      if (y(1) .ne. 2 .or. y(2) .ne. 3) stop 3
      if (kind(MPI_WTIME()) .ne. 8) stop 4
      call mpi_finalize(ierr)
      end
