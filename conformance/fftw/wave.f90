! SPDX-License-Identifier: Apache-2.0
! FFTW's Fortran interface for MPI: the transform of a plane wave is one number, in 2 dimensions, in place and transposed, and back.
program wave
  use, intrinsic :: iso_c_binding
  use mpi_f08
  implicit none
  include 'fftw3-mpi.f03'
  integer(C_INTPTR_T), parameter :: rows = 24, columns = 18, along = 5, across = 7
  real(8), parameter :: turn = 2 * acos(-1d0)
  type(C_PTR) :: plan, back, memory
  complex(C_DOUBLE_COMPLEX), pointer :: data(:, :), turned(:, :)
  complex(8) :: expected
  integer(C_INTPTR_T) :: local, n, first, turned_n, turned_first, i, j
  real(8) :: gap, worst
  integer :: rank
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call fftw_mpi_init()
  local = fftw_mpi_local_size_2d_transposed(rows, columns, MPI_COMM_WORLD%MPI_VAL, n, first, turned_n, turned_first)
  memory = fftw_alloc_complex(local)
  call c_f_pointer(memory, data, [columns, n])
  call c_f_pointer(memory, turned, [rows, turned_n])
  plan = fftw_mpi_plan_dft_2d(rows, columns, data, turned, MPI_COMM_WORLD%MPI_VAL, FFTW_FORWARD, &
                              ior(FFTW_ESTIMATE, FFTW_MPI_TRANSPOSED_OUT))
  back = fftw_mpi_plan_dft_2d(rows, columns, turned, data, MPI_COMM_WORLD%MPI_VAL, FFTW_BACKWARD, &
                              ior(FFTW_ESTIMATE, FFTW_MPI_TRANSPOSED_IN))
  do j = 1, n
    do i = 1, columns
      data(i, j) = point(first + j - 1, i - 1)
    end do
  end do
  call fftw_mpi_execute_dft(plan, data, turned)
  gap = 0
  do j = 1, turned_n
    do i = 1, rows
      expected = merge(dble(rows * columns), 0d0, i - 1 == along .and. turned_first + j - 1 == across)
      gap = max(gap, abs(turned(i, j) - expected))
    end do
  end do
  call fftw_mpi_execute_dft(back, turned, data)
  do j = 1, n
    do i = 1, columns
      gap = max(gap, abs(data(i, j) / (rows * columns) - point(first + j - 1, i - 1)))
    end do
  end do
  call MPI_Allreduce(gap, worst, 1, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
  if (worst > 1d-10) then
    print *, 'wave: off by', worst
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end if
  if (rank == 0) print '(a)', 'wave: good'
  call fftw_destroy_plan(plan)
  call fftw_destroy_plan(back)
  call fftw_free(memory)
  call fftw_mpi_cleanup()
  call MPI_Finalize()
contains
  complex(8) function point(row, column)
    integer(C_INTPTR_T), intent(in) :: row, column
    point = exp(cmplx(0, turn * (dble(along * row) / rows + dble(across * column) / columns), 8))
  end function
end program
