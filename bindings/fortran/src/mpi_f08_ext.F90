! SPDX-License-Identifier: Apache-2.0
! Going on after processes have failed, beside the module mpi_f08: see mpi-ext.h. Constants and interfaces, no code.
module mpi_f08_ext
  use mpi_f08
  implicit none
  integer, parameter :: MPIX_ERR_PROC_FAILED = 16001
  integer, parameter :: MPIX_ERR_PROC_FAILED_PENDING = 16002
  integer, parameter :: MPIX_ERR_REVOKED = 16003
  integer, parameter :: MPIX_FT = 903
  interface MPIX_Comm_agree
    subroutine MPIX_Comm_agree_f08(comm, flag, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_iagree
    subroutine MPIX_Comm_iagree_f08(comm, flag, request, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(inout), asynchronous :: flag
      type(MPI_Request), intent(out) :: request
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_revoke
    subroutine MPIX_Comm_revoke_f08(comm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_is_revoked
    subroutine MPIX_Comm_is_revoked_f08(comm, flag, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      logical, intent(out) :: flag
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_shrink
    subroutine MPIX_Comm_shrink_f08(comm, newcomm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Comm), intent(out) :: newcomm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_ishrink
    subroutine MPIX_Comm_ishrink_f08(comm, newcomm, request, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Comm), intent(out), asynchronous :: newcomm
      type(MPI_Request), intent(out) :: request
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_get_failed
    subroutine MPIX_Comm_get_failed_f08(comm, failedgrp, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Group), intent(out) :: failedgrp
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_ack_failed
    subroutine MPIX_Comm_ack_failed_f08(comm, num_to_ack, num_acked, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: num_to_ack
      integer, intent(out) :: num_acked
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_failure_ack
    subroutine MPIX_Comm_failure_ack_f08(comm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface MPIX_Comm_failure_get_acked
    subroutine MPIX_Comm_failure_get_acked_f08(comm, failedgrp, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Group), intent(out) :: failedgrp
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_agree
    subroutine PMPIX_Comm_agree_f08(comm, flag, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_iagree
    subroutine PMPIX_Comm_iagree_f08(comm, flag, request, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(inout), asynchronous :: flag
      type(MPI_Request), intent(out) :: request
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_revoke
    subroutine PMPIX_Comm_revoke_f08(comm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_is_revoked
    subroutine PMPIX_Comm_is_revoked_f08(comm, flag, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      logical, intent(out) :: flag
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_shrink
    subroutine PMPIX_Comm_shrink_f08(comm, newcomm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Comm), intent(out) :: newcomm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_ishrink
    subroutine PMPIX_Comm_ishrink_f08(comm, newcomm, request, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Comm), intent(out), asynchronous :: newcomm
      type(MPI_Request), intent(out) :: request
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_get_failed
    subroutine PMPIX_Comm_get_failed_f08(comm, failedgrp, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Group), intent(out) :: failedgrp
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_ack_failed
    subroutine PMPIX_Comm_ack_failed_f08(comm, num_to_ack, num_acked, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(in) :: num_to_ack
      integer, intent(out) :: num_acked
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_failure_ack
    subroutine PMPIX_Comm_failure_ack_f08(comm, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
  interface PMPIX_Comm_failure_get_acked
    subroutine PMPIX_Comm_failure_get_acked_f08(comm, failedgrp, ierror)
      import
      type(MPI_Comm), intent(in) :: comm
      type(MPI_Group), intent(out) :: failedgrp
      integer, intent(out), optional :: ierror
    end subroutine
  end interface
end module mpi_f08_ext
