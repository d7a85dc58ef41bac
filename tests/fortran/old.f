! SPDX-License-Identifier: Apache-2.0
! mpif.h in fixed form, with names that old programs use.
! ranks: 1 2
      program old
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, v(3), st(MPI_STATUS_SIZE), type, extent
      integer lengths(2), places(2), types(2), key, value
      integer both(2)
      logical flag
      integer(kind=MPI_ADDRESS_KIND) from, to
      call mpi_init(ierr)
      call MPI_COMM_RANK(MPI_COMM_WORLD, rank, ierr)
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      v(1) = 1
      v(2) = rank
      v(3) = 0
      call mpi_allreduce(MPI_IN_PLACE, v, 2, MPI_INTEGER, MPI_SUM,
     &                   MPI_COMM_WORLD, ierr)
      if (v(1) .ne. size) stop 1
      lengths(1) = 1
      lengths(2) = 1
      places(1) = 0
      places(2) = 8
      types(1) = MPI_INTEGER
      types(2) = MPI_DOUBLE_PRECISION
      call mpi_type_struct(2, lengths, places, types, type, ierr)
      call mpi_type_extent(type, extent, ierr)
      if (extent .ne. 16) stop 2
      call mpi_type_free(type, ierr)
      call mpi_keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0,
     &                       ierr)
      call mpi_attr_put(MPI_COMM_WORLD, key, -12, ierr)
      call mpi_attr_get(MPI_COMM_WORLD, key, value, flag, ierr)
      if (.not. flag .or. value .ne. -12) stop 3
      call mpi_attr_get(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
      if (.not. flag .or. value .lt. 32767) stop 4
      both(1) = rank
      both(2) = -rank
      call mpi_allreduce(both, v, 1, MPI_2INTEGER, MPI_MAXLOC,
     &                   MPI_COMM_WORLD, ierr)
      if (v(1) .ne. size - 1 .or. v(2) .ne. 1 - size) stop 5
      call mpi_sendrecv(rank, 1, MPI_INTEGER, rank, 1, v, 1,
     &                  MPI_INTEGER, rank, 1, MPI_COMM_WORLD, st, ierr)
      if (st(MPI_TAG) .ne. 1) stop 6
      if (mpi_wtime() .lt. 0d0) stop 7
! Functions that are as wide as addresses.
      call mpi_get_address(v(1), from, ierr)
      call mpi_get_address(v(3), to, ierr)
      if (mpi_aint_diff(to, from) .ne. 8) stop 8
      if (mpi_aint_add(from, to - from) .ne. to) stop 9
      if (kind(mpi_aint_add(from, to)) .ne. MPI_ADDRESS_KIND) stop 10
      call mpi_finalize(ierr)
      end
