! SPDX-License-Identifier: Apache-2.0
! Parts of arrays of derived types as buffers: forms x kinds of array x calls. Values are right, and the arrays are afterwards what they were:
! bounds, place, what lies between the elements. A receive after the call may be refused where the compiler passes a copy; it is never wrong.
! ranks: 1 2
! Bounds and place of an array.
#define SAME(array) (lbound(array, 1) == low .and. ubound(array, 1) == high .and. at(array(low)) == place)
#define REMEMBER(array) low = lbound(array, 1); high = ubound(array, 1); place = at(array(low))
! Every call with one form; n elements, `inside`: the compiler must pass it as it is.
#define ALL_CALLS(form, array, n, inside, name) \
REMEMBER(array); what = name; \
call give(n); form = 0; call MPI_Recv(form, n, MPI_REAL8, 0, 1, self, MPI_STATUS_IGNORE); call MPI_Wait(mine, MPI_STATUS_IGNORE); call check(all(form == sent(1:n)) .and. SAME(array), 'Recv'); \
call take(n); form = sent(n:1:-1); call MPI_Send(form, n, MPI_REAL8, 0, 1, self); call MPI_Wait(mine, MPI_STATUS_IGNORE); call check(all(got(1:n) == sent(n:1:-1)) .and. SAME(array), 'Send'); \
form = sent(1:n) + rank; call MPI_Bcast(form, n, MPI_REAL8, 0, world); call check(all(form == sent(1:n)) .and. SAME(array), 'Bcast'); \
call MPI_Allreduce(MPI_IN_PLACE, form, n, MPI_REAL8, MPI_SUM, world); call check(all(form == size*sent(1:n)) .and. SAME(array), 'Allreduce'); \
got = 0; call MPI_Gather(form, n, MPI_REAL8, got, n, MPI_REAL8, 0, self); call check(all(got(1:n) == size*sent(1:n)) .and. SAME(array), 'Gather'); \
form = 0; call MPI_Gather(sent, n, MPI_REAL8, form, n, MPI_REAL8, 0, self); call check(all(form == sent(1:n)) .and. SAME(array), 'Gather'); \
form = sent(n:1:-1); call MPI_Isend(form, n, MPI_REAL8, 0, 1, self, request); call MPI_Recv(got, n, MPI_REAL8, 0, 1, self, MPI_STATUS_IGNORE); call MPI_Wait(request, MPI_STATUS_IGNORE); call check(all(got(1:n) == sent(n:1:-1)) .and. SAME(array), 'Isend'); \
form = 0; call MPI_Irecv(form, n, MPI_REAL8, 0, 1, self, request, code); if (later(code, inside)) call MPI_Send(sent, n, MPI_REAL8, 0, 1, self); call MPI_Wait(request, MPI_STATUS_IGNORE); call check(all(form == merge(sent(1:n), 0d0, code == MPI_SUCCESS)) .and. SAME(array), 'Irecv'); \
form = sent(n:1:-1); got = 0; call MPI_Iallreduce(form, got, n, MPI_REAL8, MPI_SUM, self, request); call MPI_Wait(request, MPI_STATUS_IGNORE); call check(all(got(1:n) == sent(n:1:-1)) .and. SAME(array), 'Iallreduce'); \
form = 0; call MPI_Igather(sent, n, MPI_REAL8, form, n, MPI_REAL8, 0, self, request, code); if (later(code, inside)) continue; call MPI_Wait(request, MPI_STATUS_IGNORE); call check(all(form == merge(sent(1:n), 0d0, code == MPI_SUCCESS)) .and. SAME(array), 'Igather'); \
call MPI_Send_init(form, n, MPI_REAL8, 0, 1, self, request, code); form = sent(1:n); if (later(code, inside)) call MPI_Start(request); if (code == MPI_SUCCESS) call MPI_Recv(got, n, MPI_REAL8, 0, 1, self, MPI_STATUS_IGNORE); call MPI_Wait(request, MPI_STATUS_IGNORE); call check(code /= MPI_SUCCESS .or. all(got(1:n) == sent(1:n)), 'Send_init'); if (code == MPI_SUCCESS) call MPI_Request_free(request); \
call MPI_Recv_init(form, n, MPI_REAL8, 0, 1, self, request, code); if (later(code, inside)) call MPI_Request_free(request); \
call MPI_Pack_size(n, MPI_REAL8, self, bytes); position = 0; call MPI_Pack(form, n, MPI_REAL8, packed, bytes, position, self); position = 0; form = 0; call MPI_Unpack(packed, bytes, position, form, n, MPI_REAL8, self); call check(all(form == sent(1:n)) .and. SAME(array), 'Pack')
module elements_of
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  type inner
    real(8) :: first, x
  end type
  type element
    integer :: id = 7
    real(8) :: x
    complex(8) :: z
    real(8) :: s(3)
    type(inner) :: c
  end type
  type, extends(element) :: longer
    real(8) :: more(4)
  end type
  type(MPI_Comm) :: self, world
  type(MPI_Request) :: mine, request
  integer :: rank, size, low, high, code, bytes, position, k, refused = 0
  integer(c_intptr_t) :: place
  character(8) :: packed(64)
  character(30) :: what
  real(8), parameter :: sent(6) = [(100d0 + k, k = 1, 6)]
  real(8), asynchronous :: got(12)
contains
  function at(something)
    integer(c_intptr_t) :: at
    class(*), target, intent(in) :: something
    at = 0
    select type (something)
    type is (real(8)); at = transfer(c_loc(something), at)
    type is (element); at = transfer(c_loc(something), at)
    type is (longer); at = transfer(c_loc(something), at)
    type is (inner); at = transfer(c_loc(something), at)
    end select
  end function
  subroutine check(right, call)
    logical, intent(in) :: right
    character(*), intent(in) :: call
    if (right) return
    print *, 'elements: wrong: ', trim(what), ' in ', call
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
  ! A request was made, or the call has said why not.
  logical function later(code, inside)
    integer, intent(in) :: code
    logical, intent(in) :: inside
    integer :: class, length
    character(MPI_MAX_ERROR_STRING) :: text
    later = code == MPI_SUCCESS
    if (later) return
    call check(.not. inside, 'refused')
    refused = refused + 1
    call MPI_Error_class(code, class)
    call MPI_Error_string(code, text, length)
    call check(class == MPI_ERR_BUFFER .and. index(text, 'passes a copy') > 0 .and. index(text, 'MPI_') == 1, text)
  end function
  subroutine give(n)
    integer, intent(in) :: n
    call MPI_Isend(sent, n, MPI_REAL8, 0, 1, self, mine)
  end subroutine
  subroutine take(n)
    integer, intent(in) :: n
    got = 0
    call MPI_Irecv(got, n, MPI_REAL8, 0, 1, self, mine)
  end subroutine
  subroutine shape(a, b, r)
    type(element), intent(inout) :: a(0:), b(2:)
    real(8), intent(inout) :: r(-1:)
    ALL_CALLS(a%x, a, 6, .false., 'assumed shape %x')
    ALL_CALLS(b(2:6:2)%c%x, b, 3, .false., 'assumed shape section %c%x')
    ALL_CALLS(r(::3), r, 2, .true., 'assumed shape section')
    ALL_CALLS(r, r, 6, .true., 'assumed shape')
  end subroutine
  subroutine explicit(a, n)
    integer, intent(in) :: n
    type(element), intent(inout) :: a(0:n - 1)
    ALL_CALLS(a%x, a, 6, .false., 'explicit shape %x')
    ALL_CALLS(a%s(2), a, 6, .false., 'explicit shape %s(2)')
  end subroutine
  subroutine class_dummy(a)
    class(element), intent(inout) :: a(0:)
    ALL_CALLS(a%x, a, 6, .false., 'class %x')
    ALL_CALLS(a(::2)%c%x, a, 3, .false., 'class section %c%x')
    select type (a)
    type is (longer)
      ALL_CALLS(a%x, a, 6, .false., 'type is %x')
      ALL_CALLS(a%more(3), a, 6, .false., 'type is %more(3)')
    type is (element)
      ALL_CALLS(a%x, a, 6, .false., 'type is %x')
    end select
  end subroutine
  ! Pointers to components, whose compiler here does not see that they are.
  subroutine pointers(px, pc)
    real(8), pointer, intent(in) :: px(:)
    type(inner), pointer, intent(in) :: pc(:)
    ALL_CALLS(px, px, 6, .true., 'pointer to %x')
    ALL_CALLS(px(::2), px, 3, .true., 'pointer to %x, section')
    ALL_CALLS(pc%x, pc, 6, .false., 'pointer to %c, %x')
  end subroutine
end module
! Whole elements: CLASS arrays of a longer dynamic type, CLASS(*), pointers to components of derived type.
module whole_elements
  use elements_of
  implicit none
  type(MPI_Datatype) :: of_element, of_inner
  type(longer), target :: wide(0:5), other(0:5)
contains
  subroutine begin(length)
    integer, intent(in) :: length
    if (of_element /= MPI_DATATYPE_NULL) call MPI_Type_free(of_element)
    call MPI_Type_contiguous(length/8, MPI_BYTE, of_element)
    call MPI_Type_commit(of_element)
    wide%x = sent
    wide%more(4) = sent
    other%x = 0
    other%more(4) = 0
  end subroutine
  subroutine polymorphic(a, b)
    class(element), intent(inout) :: a(:)
    class(*), intent(inout) :: b(0:)
    integer :: n
    n = 6*storage_size(a)/8
    what = 'class, bytes'
    call begin(storage_size(a))
    call MPI_Sendrecv(a, n, MPI_BYTE, 0, 1, b, n, MPI_BYTE, 0, 1, self, MPI_STATUS_IGNORE)
    call check(all(other%x == sent) .and. all(other%more(4) == sent), 'Sendrecv')
    what = 'class, elements'
    call begin(storage_size(a))
    call MPI_Irecv(b, 6, of_element, 0, 1, self, request)
    call MPI_Send(a, 6, of_element, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(other%x == sent) .and. all(other%more(4) == sent), 'Irecv')
    what = 'class, sections'
    call begin(storage_size(a))
    call MPI_Irecv(b(1::2), 3, of_element, 0, 1, self, request)
    call MPI_Send(a(2::2), 3, of_element, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(other(1::2)%x == sent(2::2)) .and. all(other(1::2)%more(4) == sent(2::2)) .and. all(other(::2)%x == 0), 'Irecv')
    what = 'class, one of two lengths'
    call MPI_Send(a, 7, MPI_BYTE, MPI_PROC_NULL, 1, self, code)
    call MPI_Error_class(code, n)
    call check(code == MPI_SUCCESS .or. n == MPI_ERR_TYPE, 'Send')
    select type (b)
    type is (longer)
      what = 'type is, section'
      call begin(storage_size(a))
      call MPI_Irecv(b(::5), 2, of_element, 0, 1, self, request)
      call MPI_Send(a(:2), 2, of_element, 0, 1, self)
      call MPI_Wait(request, MPI_STATUS_IGNORE)
      call check(all(other(::5)%more(4) == sent(:2)) .and. all(other(1:4)%x == 0), 'Irecv')
    end select
  end subroutine
  subroutine allocated()
    class(element), allocatable :: a(:)
    class(*), allocatable :: b(:)
    allocate (a(0:5), source=wide)
    allocate (b(0:5), source=wide)
    what = 'class allocatable'
    call begin(storage_size(wide))
    a%x = 0
    call MPI_Irecv(other, 6, of_element, 0, 1, self, request)
    call MPI_Send(b, 6, of_element, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(other%x == sent), 'Irecv')
    call MPI_Irecv(a(1::2), 3, of_element, 0, 1, self, request)
    call MPI_Send(b(::2), 3, of_element, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(a(1::2)%x == sent(::2)) .and. all(a(::2)%x == 0) .and. lbound(a, 1) == 0, 'Irecv')
  end subroutine
  subroutine component(pc)
    type(inner), pointer, intent(in) :: pc(:)
    real(8) :: flat(2, 6)
    what = 'pointer to %c'
    wide%c%first = -sent
    wide%c%x = sent
    call MPI_Irecv(flat, 6, of_inner, 0, 1, self, request)
    call MPI_Send(pc, 6, of_inner, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(flat(1, :) == -sent) .and. all(flat(2, :) == sent), 'Send')
    wide%c%first = 0
    call MPI_Irecv(pc(::2), 3, of_inner, 0, 1, self, request)
    call MPI_Send(flat(:, ::2), 3, of_inner, 0, 1, self)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call check(all(wide(::2)%c%first == -sent(::2)) .and. all(wide(1::2)%c%first == 0), 'Irecv')
  end subroutine
end module
program elements
  use elements_of
  use whole_elements
  implicit none
  type(element), allocatable, target :: a(:)
  type(element), pointer :: p(:)
  type(element), target :: fixed(-2:3)
  type(longer) :: long(6)
  class(element), allocatable :: c(:)
  real(8), allocatable, target :: r(:), r2(:, :)
  real(8), pointer :: q(:), px(:)
  type(inner), pointer :: pc(:)
  character(5) :: texts(3), others(3)
  integer(MPI_ADDRESS_KIND) :: address

  call MPI_Init()
  self = MPI_COMM_SELF
  world = MPI_COMM_WORLD
  call MPI_Comm_rank(world, rank)
  call MPI_Comm_size(world, size)
  call MPI_Comm_set_errhandler(self, MPI_ERRORS_RETURN)
  allocate (a(0:5), r(0:5), r2(0:2, 6), p(3:8))
  r2 = -1
  ALL_CALLS(a%x, a, 6, .false., 'allocatable %x')
  ALL_CALLS(a(1:3)%x, a, 3, .false., 'allocatable section %x')
  ALL_CALLS(a(::2)%s(3), a, 3, .false., 'allocatable section %s(3)')
  ALL_CALLS(a%z%re, a, 6, .false., 'allocatable %z%re')
  ALL_CALLS(a%c%x, a, 6, .false., 'allocatable %c%x')
  ALL_CALLS(a(3)%s, a, 3, .true., 'allocatable element %s')
  ALL_CALLS(p%x, p, 6, .false., 'pointer %x')
  ALL_CALLS(p(4:8:2)%c%x, p, 3, .false., 'pointer section %c%x')
  ALL_CALLS(fixed%x, fixed, 6, .false., 'static %x')
  ALL_CALLS(fixed(3:-2:-1)%x, fixed, 6, .false., 'static reversed %x')
  ALL_CALLS(long%x, long, 6, .false., 'extended type %x')
  ALL_CALLS(long%more(2), long, 6, .false., 'extended type %more(2)')
  ALL_CALLS(r, r, 6, .true., 'allocatable from 0')
  ALL_CALLS(r(5:0:-1), r, 6, .true., 'allocatable reversed')
  ALL_CALLS(r2(1, :), r, 6, .true., 'row')
  call check(all(r2(0, :) == -1) .and. all(r2(2, :) == -1), 'beside the row')
  q(0:) => r
  ALL_CALLS(q, q, 6, .true., 'pointer from 0')
  ALL_CALLS(q(::5), q, 2, .true., 'pointer section')
  px => a%x
  ALL_CALLS(px, px, 6, .false., 'pointer to %x')
  pc => a%c
  call pointers(px, pc)
  call shape(a, p, r)
  call explicit(a, 6)
  call class_dummy(a)
  call class_dummy(long)
  allocate (c(0:5), source=long)
  ALL_CALLS(c%x, c, 6, .false., 'class allocatable %x')
  call class_dummy(c)
  call check(all(a%id == 7) .and. all(p%id == 7) .and. all(fixed%id == 7) .and. all(long%id == 7) .and. all(c%id == 7), 'between the elements')

  ! Parts of texts, addresses, and the size of an element.
  texts = ['abcde', 'fghij', 'klmno']
  others = '-----'
  what = 'texts'
  call MPI_Sendrecv(texts(:)(2:3), 6, MPI_CHARACTER, 0, 1, others(:)(4:5), 6, MPI_CHARACTER, 0, 1, self, MPI_STATUS_IGNORE)
  call check(all(others == ['---bc', '---gh', '---lm']), 'Sendrecv')
  what = 'address'
  call MPI_Get_address(a%x, address, code)
  if (later(code, .false.) .or. .true.) call check(code /= MPI_SUCCESS .or. address == at(a(0)%x), 'Get_address')
  call MPI_Get_address(a(2)%x, address)
  call check(address == at(a(2)%x), 'Get_address')
  call MPI_Get_address(r(2::2), address)
  call check(address == at(r(2)), 'Get_address')
  call MPI_Sizeof(a%x, code)
  call check(code == 8, 'Sizeof')
  call check(MPI_SUBARRAYS_SUPPORTED .eqv. refused == 0, 'MPI_SUBARRAYS_SUPPORTED')

  call MPI_Type_contiguous(2, MPI_REAL8, of_inner)
  call MPI_Type_commit(of_inner)
  of_element = MPI_DATATYPE_NULL
  call polymorphic(wide, other)
  call allocated()
  pc => wide%c
  call component(pc)
  deallocate (a, r, r2, p, c)
  call MPI_Finalize()
end program
