! SPDX-License-Identifier: Apache-2.0
! Compiled with probed.f90 and run for each gfortran before the modules are made: whether its own descriptors are as `struct native` of fortran.h
! has them, and whether copies that it makes for a call are known by bounds that begin at 0 and are written back. Status 0: they are.
program probe
  use, intrinsic :: iso_c_binding
  implicit none
  interface
    subroutine probed(array, found)
      import
      type(*), dimension(..), asynchronous :: array
      integer(c_int64_t) :: found(6)
    end subroutine
  end interface
  type element
    integer :: number
    real(8) :: value
  end type
  type, extends(element) :: longer
    real(8) :: more(3)
  end type
  type(element), allocatable, target :: a(:)
  type(longer), target :: classes(4)
  real(8), allocatable, target :: z(:, :)
  real(8), target :: fixed(0:4)
  real(8), pointer :: p(:)
  integer(c_int64_t) :: found(6)

  allocate (a(0:2), z(0:4, 0:3))
  a%number = 7
  a%value = [1d0, 2d0, 3d0]
  z = 0
  fixed = 0
  p(0:) => fixed
  ! found: address, length of an element, bytes to the next one, lower and upper bound of the last dimension, rank.
  call probed(z, found)
  call check(all(found == [at(c_loc(z(0, 0))), 8_8, 40_8, 1_8, 4_8, 2_8]), 1)
  call probed(z(1, ::2), found)
  call check(all(found == [at(c_loc(z(1, 0))), 8_8, 80_8, 1_8, 2_8, 1_8]), 2)
  call probed(fixed, found)
  call check(all(found == [at(c_loc(fixed(0))), 8_8, 8_8, 1_8, 5_8, 1_8]), 3)
  call probed(p, found)
  call check(all(found == [at(c_loc(fixed(0))), 8_8, 8_8, 1_8, 5_8, 1_8]), 4)
  call probed(a, found)
  call check(all(found == [at(c_loc(a(0))), 16_8, 16_8, 1_8, 3_8, 1_8]), 5)
  ! A component of all elements: in place, or as a copy that is known and written back.
  call probed(a%value, found)
  call check(found(2) == 8 .and. found(6) == 1, 6)
  call check(merge(all(found(3:5) == [8_8, 0_8, 2_8]), all(found(3:5) == [16_8, 1_8, 3_8]), found(1) /= at(c_loc(a(0)%value))), 7)
  call check(lbound(a, 1) == 0 .and. ubound(a, 1) == 2 .and. all(a%number == 7) .and. all(a%value == [-1d0, 2d0, 3d0]), 8)
  call polymorphic(classes)
  call unlimited(classes)
  deallocate (a, z)
contains
  function at(address)
    type(c_ptr), intent(in) :: address
    integer(c_int64_t) :: at
    at = transfer(address, at)
  end function
  subroutine check(right, number)
    logical, intent(in) :: right
    integer, intent(in) :: number
    if (right) return
    print *, number, found
    stop 1
  end subroutine
  subroutine polymorphic(array)
    class(element), intent(inout) :: array(:)
    call probed(array, found)
    call check(found(1) == at(c_loc(classes(1))) .and. all(found(3:6) == [40_8, 1_8, 4_8, 1_8]), 9)
    call probed(array(2::2), found)
    call check(found(1) == at(c_loc(classes(2))) .and. all(found(3:6) == [80_8, 1_8, 2_8, 1_8]), 10)
  end subroutine
  subroutine unlimited(array)
    class(*), intent(inout) :: array(:)
    call probed(array(2::2), found)
    call check(found(1) == at(c_loc(classes(2))) .and. all(found(3:6) == [80_8, 1_8, 2_8, 1_8]), 11)
  end subroutine
end program
