! What the interfaces share. The variables are those of the library: what counts is where they are.
module isthmus_mpi_types
  implicit none
  ! Made for default kinds of 4 and 8 bytes: an error here comes from an option such as -fdefault-integer-8 or -fdefault-real-8.
  integer(8 - kind(0)), parameter, private :: isthmus_integer_has_4_bytes = 4
  integer(8 - kind(0.0)), parameter, private :: isthmus_real_has_4_bytes = 4
  integer(12 - kind(0d0)), parameter, private :: isthmus_double_has_8_bytes = 8
!CONSTANTS
  integer(MPI_OFFSET_KIND), parameter :: MPI_DISPLACEMENT_CURRENT = -1
  integer, bind(C, name="isthmus_mpi_bottom_") :: MPI_BOTTOM
  integer, bind(C, name="isthmus_mpi_in_place_") :: MPI_IN_PLACE
  integer, bind(C, name="isthmus_mpi_buffer_automatic_") :: MPI_BUFFER_AUTOMATIC
  integer, bind(C, name="isthmus_mpi_errcodes_ignore_") :: MPI_ERRCODES_IGNORE(1)
  integer, bind(C, name="isthmus_mpi_unweighted_") :: MPI_UNWEIGHTED(1)
  integer, bind(C, name="isthmus_mpi_weights_empty_") :: MPI_WEIGHTS_EMPTY(1)
  character(len=1), bind(C, name="isthmus_mpi_argv_null_") :: MPI_ARGV_NULL(1)
  character(len=1), bind(C, name="isthmus_mpi_argvs_null_") :: MPI_ARGVS_NULL(1, 1)
  type, bind(C) :: MPI_Status
    integer :: MPI_SOURCE
    integer :: MPI_TAG
    integer :: MPI_ERROR
    integer, private :: MPI_internal(5)
  end type MPI_Status
!OBJECTS
end module isthmus_mpi_types

