! SPDX-License-Identifier: Apache-2.0
! Going on after processes have failed, beside the module mpi: see mpi-ext.h. Constants and interfaces, no code.
module mpi_ext
  use mpi
  implicit none
  integer, parameter :: MPIX_ERR_PROC_FAILED = 16001
  integer, parameter :: MPIX_ERR_PROC_FAILED_PENDING = 16002
  integer, parameter :: MPIX_ERR_REVOKED = 16003
  integer, parameter :: MPIX_FT = 903
  interface
    subroutine MPIX_Comm_agree(comm, flag, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_iagree(comm, flag, request, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out) :: request
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_revoke(comm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_is_revoked(comm, flag, ierror)
      import
      integer, intent(in) :: comm
      logical, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_shrink(comm, newcomm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: newcomm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_ishrink(comm, newcomm, request, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: newcomm
      integer, intent(out) :: request
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_get_failed(comm, failedgrp, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: failedgrp
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_ack_failed(comm, num_to_ack, num_acked, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(in) :: num_to_ack
      integer, intent(out) :: num_acked
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_failure_ack(comm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine MPIX_Comm_failure_get_acked(comm, failedgrp, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: failedgrp
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_agree(comm, flag, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_iagree(comm, flag, request, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(inout) :: flag
      integer, intent(out) :: request
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_revoke(comm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_is_revoked(comm, flag, ierror)
      import
      integer, intent(in) :: comm
      logical, intent(out) :: flag
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_shrink(comm, newcomm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: newcomm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_ishrink(comm, newcomm, request, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: newcomm
      integer, intent(out) :: request
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_get_failed(comm, failedgrp, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: failedgrp
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_ack_failed(comm, num_to_ack, num_acked, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(in) :: num_to_ack
      integer, intent(out) :: num_acked
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_failure_ack(comm, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: ierror
    end subroutine
  end interface
  interface
    subroutine PMPIX_Comm_failure_get_acked(comm, failedgrp, ierror)
      import
      integer, intent(in) :: comm
      integer, intent(out) :: failedgrp
      integer, intent(out) :: ierror
    end subroutine
  end interface
end module mpi_ext
