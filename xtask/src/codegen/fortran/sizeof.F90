  interface MPI_Sizeof
#if defined(ISTHMUS_DESCRIPTORS)
    subroutine MPI_Sizeof_f08ts(x, size, ierror) bind(C, name="mpi_sizeof_f08ts")
      type(*), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
#else
    subroutine MPI_Sizeof_i1(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      integer(1) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_i2(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      integer(2) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_i4(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      integer(4) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_i8(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      integer(8) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_r4(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      real(4) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_r8(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      real(8) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_c4(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      complex(4) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
    subroutine MPI_Sizeof_c8(x, size, ierror)
      !DIR$ IGNORE_TKR (R) x
      complex(8) :: x ISTHMUS_ANY_RANK
      integer, intent(out) :: size
      integer, intent(out), optional :: ierror
    end subroutine
#endif
  end interface
