! SPDX-License-Identifier: Apache-2.0
! mpif.h in fixed form, with names that old programs use.
! ranks: 1 2
      program old
      implicit none
      include 'mpif.h'
      integer ierr, rank, size, v(3), st(MPI_STATUS_SIZE), type, extent
      integer lengths(2), places(2), types(2), key, value
      integer both(2), other, class, infos(2), one(2)
      character*8 words(2, 2)
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
! A program that is not there: the error of spawning.
      call mpi_errhandler_set(MPI_COMM_SELF, MPI_ERRORS_RETURN, ierr)
      call mpi_comm_spawn('/x/y', MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0,
     &     MPI_COMM_SELF, other, MPI_ERRCODES_IGNORE, ierr)
      call mpi_error_class(ierr, class, ierr)
      if (class .ne. MPI_ERR_SPAWN) stop 11
      if (other .ne. MPI_COMM_NULL) stop 12
      words(1, 1) = 'x'
      words(2, 1) = 'y'
      words(1, 2) = ' '
      words(2, 2) = ' '
      infos(1) = MPI_INFO_NULL
      infos(2) = MPI_INFO_NULL
      one(1) = 1
      one(2) = 1
      call mpi_comm_spawn_multiple(2, words, words, one, infos, 0,
     &     MPI_COMM_SELF, other, both, ierr)
      call mpi_error_class(ierr, class, ierr)
      if (class .ne. MPI_ERR_SPAWN) stop 13
! A window without memory.
      call mpi_win_create(MPI_BOTTOM, from - from, 1, MPI_INFO_NULL,
     &     MPI_COMM_SELF, other, ierr)
      if (ierr .ne. MPI_SUCCESS) stop 14
      call mpi_win_free(other, ierr)
      if (other .ne. MPI_WIN_NULL) stop 15
      call mpi_finalize(ierr)
      end
