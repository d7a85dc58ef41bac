// SPDX-License-Identifier: Apache-2.0
//! Memory as values: the one place of this room with unsafe code.
//!
//! Every piece of memory has an owner.
//!
//! * **The user**: memory of the program. Its constructors ([`ReadMemory::new`], [`WriteMemory::new`]) are unsafe: the
//!   room that meets C promises there what MPI asks of the program, and once ([`Promised`]) for what is mapped for it.
//!   The memory stays valid, and is not written (for [`ReadMemory`]) or not touched at all (for [`WriteMemory`]) by
//!   others, until the operation that got the value is complete.
//! * **The library**: [`OwnMemory`]. Everybody may make it, without a promise. A [`ReadMemory`] or [`WriteMemory`] made
//!   of it keeps it alive, and all its bytes have one door, which counts who reads them and who changes them.
//!
//! No value gives out a slice that outlives a call: bytes are copied ([`ReadMemory::read`], [`WriteMemory::write`] and
//! their sisters), or lent to a closure ([`ReadMemory::with`], [`WriteMemory::with_mut`]), as a reduction or a socket
//! must have them. So no value points to memory that is gone, and nobody reads library memory while another writes it:
//!
//! ```compile_fail,E0599
//! # use isthmus_datatype::raw::OwnMemory;
//! let own = OwnMemory::new(0, 64);
//! let reading = own.reading();
//! let kept = reading.slice(0, 8); // there is no such method
//! own.memory().write(0, &[1]);
//! assert_eq!(kept[0], 0);
//! ```
//! ```compile_fail
//! # use isthmus_datatype::raw::OwnMemory;
//! let mut memory = OwnMemory::new(0, 64).memory();
//! let kept = memory.with_mut(0, 64, |bytes| bytes); // they cannot leave
//! ```
//! Who comes to a byte that another has is refused, in whichever thread (see `raw/door.rs`):
//! ```should_panic
//! # use isthmus_datatype::raw::OwnMemory;
//! let own = OwnMemory::new(0, 64);
//! own.reading().with(0, 8, |_| own.memory().write(0, &[1])); // panics
//! ```
//! ```
//! # use isthmus_datatype::raw::OwnMemory;
//! let own = OwnMemory::new(0, 64);
//! own.reading().with(0, 8, |_| own.memory().write(8, &[1])); // another byte
//! own.reading().with(0, 8, |one| own.reading().with(0, 8, |other| assert_eq!(one, other)));
//! std::thread::scope(|scope| {
//!     scope.spawn(|| own.memory().write(0, &[1; 8])); // copies take turns
//!     own.memory().write(0, &[2; 8]);
//! });
//! ```
//! What is used from outside, by address, is [exposed](Exposed): it stays, and its door knows.
//! ```
//! # use isthmus_datatype::raw::OwnMemory;
//! let own = OwnMemory::new(0, 64);
//! let exposed = own.memory().exposed(0, 8);
//! own.memory().write(8, &[1]);
//! drop(own); // the bytes are still there
//! # drop(exposed);
//! ```
//! ```should_panic
//! # use isthmus_datatype::raw::OwnMemory;
//! let own = OwnMemory::new(0, 64);
//! let _exposed = own.memory().exposed(0, 8);
//! own.memory().write(0, &[1]); // panics
//! ```
//! User memory cannot be made without a promise:
//! ```compile_fail,E0133
//! # use isthmus_datatype::raw::WriteMemory;
//! let mut bytes = [0_u8; 8];
//! let memory = WriteMemory::new(bytes.as_mut_ptr(), 0, 8);
//! ```
//! All methods check ranges. What they leave to their callers is the order of what is done with user memory, which the
//! promise covers: the engine's lock sees to it. A thread that changes user memory twice at once is refused
//! (`raw/lent.rs`).
//!
//! `origin` is the address that MPI calls the buffer; data may lie before it (negative displacements),
//! so a value carries the window `[low, high)` relative to it that the datatype and count can touch.

mod copy;
mod door;
mod exposed;
mod lent;
mod own;
mod values;
pub(crate) mod wide;
#[cfg(target_arch = "x86_64")]
pub(crate) mod x87;

use std::ops::Range;

pub use exposed::{Exposed, UserMemory};
pub use own::OwnMemory;

use self::copy::{Pack, Unpack};
use self::door::{Claim, Turn, Wish};
use self::lent::Lent;
use crate::layout::Rows;

/// Who owns a piece of memory, and with that how its bytes are reached. Memory of a device would be one more: it has to
/// be refused, or copied to where the processor can reach it, in each method that asks this.
#[derive(Clone, Debug)]
enum Owner {
    /// The program, whose promise is all that is needed.
    User,
    /// The library. The memory lives as long as this.
    Library(OwnMemory),
}

impl Owner {
    /// For a copy from or to these bytes: nobody else comes to library memory meanwhile.
    #[inline]
    fn turn(&self, first: *const u8, length: usize, wish: Wish) -> Option<Turn<'_>> {
        match self {
            Self::User => None,
            Self::Library(own) => Some(own.turn(Claim::new(first, length, wish))),
        }
    }

    /// The same for a copy that is part of each short message: what is done for library memory is a call, lest the
    /// compiler make one of all that uses this.
    #[inline(always)]
    fn copy(&self, first: *const u8, length: usize, wish: Wish, copy: impl FnOnce()) {
        #[inline(never)]
        fn in_turn(own: &OwnMemory, claim: Claim, copy: impl FnOnce()) {
            let _turn = own.turn(claim);
            copy();
        }
        match self {
            Self::User => copy(),
            Self::Library(own) => in_turn(own, Claim::new(first, length, wish), copy),
        }
    }
}

/// That the program does with memory what MPI asks of it, also where the library has mapped that memory for it: for
/// windows and MPI_Alloc_mem. What maps it asks for this.
#[derive(Clone, Copy, Debug)]
pub struct Promised(());

impl Promised {
    /// # Safety
    /// For all memory that this is given for holds what [`WriteMemory::new`] asks, and values of it are used only as
    /// long as what has mapped it is kept.
    pub const unsafe fn by_program() -> Self {
        Self(())
    }
}

/// Calls a function of the program with memory that this thread was lent. It may have MPI change that, too: a reduction
/// of the program may call MPI_Reduce_local.
///
/// # Safety
/// Until this returns nobody but the program uses what [`WriteMemory::with_mut`] and its sisters have lent to this
/// thread.
pub unsafe fn lend_to_program<R>(call: impl FnOnce() -> R) -> R {
    lent::to_program(call)
}

/// Memory that an operation may read.
#[derive(Clone, Debug)]
pub struct ReadMemory {
    origin: *const u8,
    low: isize,
    high: isize,
    owner: Owner,
}

/// Memory that an operation may write (and read: reductions).
#[derive(Clone, Debug)]
pub struct WriteMemory {
    origin: *mut u8,
    low: isize,
    high: isize,
    owner: Owner,
}

// SAFETY: the constructor's promise covers every thread of the process; library memory is safe in all threads.
unsafe impl Send for ReadMemory {}
// SAFETY: as for `ReadMemory`.
unsafe impl Send for WriteMemory {}
// SAFETY: reading through shared references is what the promise allows; library memory is reached through its door.
unsafe impl Sync for ReadMemory {}
// SAFETY: writing needs `&mut self` or a clone, for which the promise or the door is responsible.
unsafe impl Sync for WriteMemory {}

impl ReadMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self {
        origin: std::ptr::null(),
        low: 0,
        high: 0,
        owner: Owner::User,
    };

    /// # Safety
    /// `origin + low .. origin + high` must be readable and unwritten until the operation is complete, also by those
    /// who have the value or one made of it.
    pub const unsafe fn new(origin: *const u8, low: isize, high: isize) -> Self {
        Self {
            origin,
            low,
            high,
            owner: Owner::User,
        }
    }

    /// Address of the buffer, for transports that hand it to the kernel or to another process.
    #[inline]
    pub fn address(&self) -> usize {
        self.origin as usize
    }

    /// The bytes `low .. high` that may be touched, relative to the origin.
    pub fn window(&self) -> (isize, isize) {
        (self.low, self.high)
    }

    /// The same memory seen from an origin `by` bytes further: what was at `by` is at 0.
    pub fn shifted(&self, by: isize) -> Self {
        let (low, high) = shifted(self.low, self.high, by);
        Self {
            origin: self.origin.wrapping_offset(by),
            low,
            high,
            owner: self.owner.clone(),
        }
    }

    /// `length` bytes from `at` on, as memory of their own. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn part(&self, at: isize, length: usize) -> Self {
        check(self.low, self.high, at, length);
        Self {
            origin: self.origin.wrapping_offset(at),
            low: 0,
            high: length as isize,
            owner: self.owner.clone(),
        }
    }

    /// Lends the bytes `at .. at + length` relative to the origin. Panics outside the window, and where somebody
    /// changes one of the bytes: these are bugs of ours.
    // Where the memory was made a moment ago, nothing is left of the questions that are asked here.
    #[inline(always)]
    pub fn with<R>(&self, at: isize, length: usize, look: impl FnOnce(&[u8]) -> R) -> R {
        if length > 0 {
            check(self.low, self.high, at, length);
        }
        let first = self.origin.wrapping_offset(at);
        let _lent = match &self.owner {
            Owner::Library(own) if length > 0 => Some(own.lend(Claim::new(first, length, Wish::Read))),
            _ => None,
        };
        let bytes = if length > 0 {
            // SAFETY: inside the window. User memory: it is readable and unwritten by the promise. Library memory:
            // nobody writes a byte until `look` returns.
            unsafe { std::slice::from_raw_parts(first, length) }
        } else {
            &[]
        };
        // The only call: compilers put it in place.
        look(bytes)
    }

    /// Copies the bytes from `at` on, as many as `out` has. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn read(&self, at: isize, out: &mut [u8]) {
        if out.is_empty() {
            return;
        }
        check(self.low, self.high, at, out.len());
        let first = self.origin.wrapping_offset(at);
        self.owner.copy(first, out.len(), Wish::Read, || {
            // SAFETY: inside the window, which is readable; the bytes may lie there already.
            unsafe { copy::any(first, out.as_mut_ptr(), out.len()) }
        });
    }

    /// See [`Owner::turn`]: for so many bytes from there on, relative to the origin.
    #[inline]
    fn turn(&self, at: isize, length: usize, wish: Wish) -> Option<Turn<'_>> {
        self.owner.turn(self.origin.wrapping_offset(at), length, wish)
    }

    /// Copies `count` runs of `length` bytes, the first at `at` and each `stride` further, to `out`, which they fill
    /// exactly. Panics outside the window.
    pub(crate) fn gather(&self, at: isize, stride: isize, count: usize, length: usize, out: &mut [u8]) {
        assert_eq!(
            count.checked_mul(length),
            Some(out.len()),
            "runs that do not fill the buffer"
        );
        let span = check_strided(self.low, self.high, at, stride, count, length);
        let first = self.origin.wrapping_offset(at);
        let _turn = self.turn(span.0, span.1, Wish::Read);
        // SAFETY: all runs are inside the window, and `out` is as long as they are together.
        unsafe { copy::strided(Pack, first.cast_mut(), stride, count, length, out.as_mut_ptr()) }
    }

    /// Copies the runs `which` of rows at `at` to `out`, which they fill exactly. Panics outside the window.
    pub(crate) fn gather_rows(&self, at: isize, rows: &Rows, which: Range<usize>, out: &mut [u8]) {
        let span = check_rows(self.low, self.high, at, 0, 1, rows);
        let first = rows.start(which.start);
        assert_eq!(
            rows.start(which.end) - first,
            out.len() as u64,
            "runs that do not fill the buffer"
        );
        let from = self.origin.wrapping_offset(at).cast_mut();
        let _turn = self.turn(span.0, span.1, Wish::Read);
        // SAFETY: all rows are inside the window, and `out` is as long as those of `which` together.
        unsafe { copy::rows(Pack, from, rows, which, out.as_mut_ptr()) }
    }

    /// Copies `count` times all rows, `stride` apart, to `out`, which they fill exactly. Panics outside the window.
    pub(crate) fn gather_columns(&self, at: isize, stride: isize, count: usize, rows: &Rows, out: &mut [u8]) {
        let size = rows.start(rows.offsets.len()) as usize;
        let span = check_rows(self.low, self.high, at, stride, count, rows);
        assert_eq!(
            count.checked_mul(size),
            Some(out.len()),
            "runs that do not fill the buffer"
        );
        let from = self.origin.wrapping_offset(at).cast_mut();
        let _turn = self.turn(span.0, span.1, Wish::Read);
        // SAFETY: all rows of all repetitions are inside the window, and `out` is as long as they are together.
        unsafe { copy::columns(Pack, from, stride, count, rows, out.as_mut_ptr()) }
    }
}

impl WriteMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self {
        origin: std::ptr::null_mut(),
        low: 0,
        high: 0,
        owner: Owner::User,
    };

    /// # Safety
    /// `origin + low .. origin + high` must be writable and untouched by others until the operation is complete. Those
    /// who have the value or one made of it touch no byte while another changes it: threads take turns, and no byte
    /// that [`ReadMemory::with`] lends is written meanwhile.
    pub const unsafe fn new(origin: *mut u8, low: isize, high: isize) -> Self {
        Self {
            origin,
            low,
            high,
            owner: Owner::User,
        }
    }

    /// Address of the buffer.
    #[inline]
    pub fn address(&self) -> usize {
        self.origin as usize
    }

    /// The bytes `low .. high` that may be touched, relative to the origin.
    pub fn window(&self) -> (isize, isize) {
        (self.low, self.high)
    }

    /// The same memory seen from an origin `by` bytes further: what was at `by` is at 0.
    pub fn shifted(&self, by: isize) -> Self {
        let (low, high) = shifted(self.low, self.high, by);
        Self {
            origin: self.origin.wrapping_offset(by),
            low,
            high,
            owner: self.owner.clone(),
        }
    }

    /// `length` bytes from `at` on, as memory of their own. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn part(&self, at: isize, length: usize) -> Self {
        check(self.low, self.high, at, length);
        Self {
            origin: self.origin.wrapping_offset(at),
            low: 0,
            high: length as isize,
            owner: self.owner.clone(),
        }
    }

    /// This memory and other memory as one, seen from here; `None`: the other one begins elsewhere than in it or where
    /// it ends, or one of them is not the program's.
    pub fn joined(&self, other: &Self) -> Option<Self> {
        let both = matches!((&self.owner, &other.owner), (Owner::User, Owner::User));
        let by = (other.origin.addr() as isize).wrapping_sub(self.origin.addr() as isize);
        let (low, high) = (by.checked_add(other.low)?, by.checked_add(other.high)?);
        // What may be touched of either may be touched of both: the constructor's promises hold for each byte.
        (both && self.low <= low && low <= self.high).then(|| Self {
            high: high.max(self.high),
            ..self.clone()
        })
    }

    /// The same memory for reading.
    #[inline]
    pub fn reading(&self) -> ReadMemory {
        ReadMemory {
            origin: self.origin,
            low: self.low,
            high: self.high,
            owner: self.owner.clone(),
        }
    }

    /// See [`Owner::turn`]: for so many bytes from there on, relative to the origin.
    #[inline]
    fn turn(&self, at: isize, length: usize, wish: Wish) -> Option<Turn<'_>> {
        self.owner.turn(self.origin.wrapping_offset(at), length, wish)
    }

    /// Replaces the bytes from `at` on. Panics outside the window: that is a bug of ours.
    #[inline]
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub fn write(&mut self, at: isize, data: &[u8]) {
        if data.is_empty() {
            return;
        }
        check(self.low, self.high, at, data.len());
        let target = self.origin.wrapping_offset(at);
        self.owner.copy(target, data.len(), Wish::Change, || {
            // SAFETY: inside the window of the target; the data may lie there already.
            unsafe { copy::any(data.as_ptr(), target, data.len()) }
        });
    }

    /// Lends the bytes `at .. at + length` relative to the origin. Panics outside the window, and where somebody has
    /// one of the bytes already: these are bugs of ours.
    #[inline]
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub fn with_mut<R>(&mut self, at: isize, length: usize, change: impl FnOnce(&mut [u8]) -> R) -> R {
        if length == 0 {
            return change(&mut []);
        }
        check(self.low, self.high, at, length);
        let first = self.origin.wrapping_offset(at);
        let _lent = match &self.owner {
            Owner::User => (Some(Lent::new(first.addr(), length)), None),
            Owner::Library(own) => (None, Some(own.lend(Claim::new(first, length, Wish::Change)))),
        };
        // SAFETY: inside the window. User memory: this thread has no other `&mut` to any of the bytes, threads take
        // turns by the promise. Library memory: nobody else has a byte until `change` returns.
        change(unsafe { std::slice::from_raw_parts_mut(first, length) })
    }

    /// Lends the first `length` bytes behind the other memory's origin for reading, and those behind this one's for
    /// changing. If they overlap, the former are a copy. Panics as [`WriteMemory::with_mut`].
    #[inline]
    pub fn combine(&mut self, length: usize, operand: &ReadMemory, change: impl FnOnce(&[u8], &mut [u8])) {
        if operand.address().abs_diff(self.address()) < length {
            let copy = operand.with(0, length, <[u8]>::to_vec);
            return self.with_mut(0, length, |target| change(&copy, target));
        }
        operand.with(0, length, |operand| {
            self.with_mut(0, length, |target| change(operand, target))
        });
    }

    /// Replaces the bytes from `at` on, which nobody is about to read: where the processor can do that, they do not
    /// pass through its caches, which saves reading what is replaced, and leaves there what was. Panics outside the
    /// window.
    pub fn write_past_caches(&mut self, at: isize, data: &[u8]) {
        self.with_mut(at, data.len(), |to| copy::past_caches(data, to));
    }

    /// Copies `length` bytes at `from` of `source` to `at`; the two may overlap. Panics outside the windows.
    #[inline]
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub fn copy(&mut self, at: isize, source: &ReadMemory, from: isize, length: usize) {
        if length == 0 {
            return;
        }
        check(source.low, source.high, from, length);
        check(self.low, self.high, at, length);
        let (first, target) = (source.origin.wrapping_offset(from), self.origin.wrapping_offset(at));
        if let (Owner::User, Owner::User) = (&source.owner, &self.owner) {
            // SAFETY: both ranges are inside windows; they may overlap.
            unsafe { copy::any(first, target, length) }
        } else {
            self.copy_in_turns(target, first, source, length);
        }
    }

    /// The same between these addresses, which are inside, where one side is the library's.
    #[inline(never)]
    fn copy_in_turns(&self, target: *mut u8, first: *const u8, source: &ReadMemory, length: usize) {
        let _turns = match (&source.owner, &self.owner) {
            (Owner::Library(given), Owner::Library(taken)) => {
                let (first, second) = given.both(
                    Claim::new(first, length, Wish::Read),
                    taken,
                    Claim::new(target, length, Wish::Change),
                );
                (Some(first), second)
            }
            _ => (
                source.owner.turn(first, length, Wish::Read),
                self.owner.turn(target, length, Wish::Change),
            ),
        };
        // SAFETY: both ranges are inside windows; `copy` allows them to overlap.
        unsafe { std::ptr::copy(first, target, length) }
    }

    /// Copies `data` to `count` runs of `length` bytes, the first at `at` and each `stride` further. Panics outside the
    /// window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter(&mut self, at: isize, stride: isize, count: usize, length: usize, data: &[u8]) {
        assert_eq!(
            count.checked_mul(length),
            Some(data.len()),
            "data that do not fill the runs"
        );
        let span = check_strided(self.low, self.high, at, stride, count, length);
        let first = self.origin.wrapping_offset(at);
        let _turn = self.turn(span.0, span.1, Wish::Change);
        // SAFETY: all runs are inside the window, and `data` is as long as they are together.
        unsafe { copy::strided(Unpack, first, stride, count, length, data.as_ptr().cast_mut()) }
    }

    /// Copies `data` to the runs `which` of rows at `at`. Panics outside the window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter_rows(&mut self, at: isize, rows: &Rows, which: Range<usize>, data: &[u8]) {
        let span = check_rows(self.low, self.high, at, 0, 1, rows);
        let first = rows.start(which.start);
        assert_eq!(
            rows.start(which.end) - first,
            data.len() as u64,
            "data that do not fill the runs"
        );
        let to = self.origin.wrapping_offset(at);
        let _turn = self.turn(span.0, span.1, Wish::Change);
        // SAFETY: all rows are inside the window, and `data` is as long as those of `which` together.
        unsafe { copy::rows(Unpack, to, rows, which, data.as_ptr().cast_mut()) }
    }

    /// Copies `data` to `count` times all rows, `stride` apart. Panics outside the window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter_columns(&mut self, at: isize, stride: isize, count: usize, rows: &Rows, data: &[u8]) {
        let size = rows.start(rows.offsets.len()) as usize;
        let span = check_rows(self.low, self.high, at, stride, count, rows);
        assert_eq!(
            count.checked_mul(size),
            Some(data.len()),
            "data that do not fill the runs"
        );
        let to = self.origin.wrapping_offset(at);
        let _turn = self.turn(span.0, span.1, Wish::Change);
        // SAFETY: all rows of all repetitions are inside the window, and `data` is as long as they are together.
        unsafe { copy::columns(Unpack, to, stride, count, rows, data.as_ptr().cast_mut()) }
    }
}

fn shifted(low: isize, high: isize, by: isize) -> (isize, isize) {
    // A window whose ends do not fit cannot have come from an address space.
    (low.saturating_sub(by), high.saturating_sub(by))
}

#[inline]
fn check(low: isize, high: isize, at: isize, length: usize) {
    let inside = at >= low && at <= high && length <= at.abs_diff(high);
    assert!(
        inside,
        "access to {length} bytes at {at} outside the user's buffer {low} .. {high}"
    );
}

/// All runs are inside if the first and the last are.
/// Gives where the lowest begins, and the bytes from there to the end of the highest.
fn check_strided(low: isize, high: isize, at: isize, stride: isize, count: usize, length: usize) -> (isize, usize) {
    if count == 0 {
        return (at, 0);
    }
    check(low, high, at, length);
    let span = isize::try_from(count - 1).ok().and_then(|n| n.checked_mul(stride));
    let last = span.and_then(|span| at.checked_add(span));
    assert!(last.is_some(), "runs outside the address space");
    let last = last.unwrap_or(at);
    check(low, high, last, length);
    (at.min(last), at.abs_diff(last) + length)
}

/// All rows of all repetitions are inside if the span of the first and the last repetition is. Gives the same as
/// [`check_strided`].
fn check_rows(low: isize, high: isize, at: isize, stride: isize, count: usize, rows: &Rows) -> (isize, usize) {
    let (first, end) = (rows.span.0 as isize, rows.span.1 as isize);
    let start = at.checked_add(first);
    assert!(start.is_some(), "rows outside the address space");
    check_strided(low, high, start.unwrap_or(at), stride, count, end.abs_diff(first))
}
