! SPDX-License-Identifier: Apache-2.0
! Going on after losses, in the three Fortran interfaces: agreement, revoking, shrinking.
! ranks: 1 2
module with_f08
  use mpi_f08
  use mpi_f08_ext
  implicit none
contains
  subroutine try_f08()
    type(MPI_Comm) :: comm, made
    type(MPI_Group) :: failed
    type(MPI_Request) :: request
    integer :: flag, acked, size, code
    logical :: revoked
    call MPI_Comm_dup(MPI_COMM_WORLD, comm)
    call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
    flag = 6
    call MPIX_Comm_agree(comm, flag)
    if (flag /= 6) error stop 1
    call MPIX_Comm_iagree(comm, flag, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    if (flag /= 6) error stop 2
    call MPIX_Comm_get_failed(comm, failed)
    call MPI_Group_size(failed, size)
    if (size /= 0) error stop 3
    call MPIX_Comm_ack_failed(comm, 5, acked)
    if (acked /= 0) error stop 4
    call MPIX_Comm_failure_ack(comm)
    call MPIX_Comm_failure_get_acked(comm, failed)
    call MPIX_Comm_is_revoked(comm, revoked)
    if (revoked) error stop 5
    call MPI_Barrier(comm, code)
    call MPIX_Comm_revoke(comm)
    call MPIX_Comm_is_revoked(comm, revoked)
    if (.not. revoked) error stop 6
    call MPI_Barrier(comm, code)
    if (code /= MPIX_ERR_REVOKED) error stop 7
    call MPIX_Comm_shrink(comm, made)
    call MPI_Barrier(made)
    call MPI_Comm_free(made)
    call MPIX_Comm_ishrink(comm, made, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call PMPIX_Comm_agree(made, flag)
    call MPI_Comm_free(made)
    call MPI_Comm_free(comm)
  end subroutine
end module

module with_mpi
  use mpi_ext
  implicit none
contains
  subroutine try_mpi()
    integer :: flag, code, made
    flag = 5
    call MPIX_Comm_agree(MPI_COMM_WORLD, flag, code)
    if (code /= MPI_SUCCESS .or. flag /= 5) error stop 8
    call MPIX_Comm_shrink(MPI_COMM_WORLD, made, code)
    if (code /= MPI_SUCCESS .or. MPIX_ERR_PROC_FAILED /= 16001) error stop 9
    call MPI_Comm_free(made, code)
  end subroutine
end module

subroutine try_old()
  include 'mpif.h'
  include 'mpif-ext.h'
  integer flag, code
  flag = 3
  call mpix_comm_agree(MPI_COMM_WORLD, flag, code)
  if (code /= MPI_SUCCESS .or. flag /= 3) error stop 10
  if (MPIX_ERR_PROC_FAILED_PENDING /= 16002) error stop 11
end subroutine

program faults
  use with_f08
  use with_mpi, only: try_mpi
  implicit none
  call MPI_Init()
  call try_f08()
  call try_mpi()
  call try_old()
  call MPI_Finalize()
end program
