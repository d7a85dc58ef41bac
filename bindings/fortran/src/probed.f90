! SPDX-License-Identifier: Apache-2.0
! What probe.f90 calls: takes a descriptor as the words that it is, and writes -1 into the first REAL(8) of the array.
subroutine probed(words, found)
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int64_t), intent(in) :: words(*)
  integer(c_int64_t), intent(out) :: found(6)
  real(8), pointer :: first
  type(c_ptr) :: address
  integer :: rank, last
  ! Address, offset, length, version and rank (a byte behind 4 others), distance; then stride and bounds of each dimension.
  rank = int(ibits(words(4), 32, 8))
  last = 5 + 3*max(1, min(rank, 15)) - 3
  found = [words(1), words(3), words(last + 1)*words(5), words(last + 2), words(last + 3), int(rank, c_int64_t)]
  if (words(3) /= 8 .or. rank /= 1) return
  address = transfer(words(1), address)
  call c_f_pointer(address, first)
  first = -1
end subroutine
