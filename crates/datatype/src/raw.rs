// SPDX-License-Identifier: Apache-2.0
//! User memory as values: the one place of this room with unsafe code.
//!
//! A value is made by an unsafe constructor, in the room that meets C, which promises what MPI asks of
//! the user: the memory stays valid, and is not written (for [`ReadMemory`]) or not touched at all (for
//! [`WriteMemory`]) by others, until the operation that got the value has completed. The methods are
//! safe because of that promise; all of them check ranges.
//!
//! `origin` is the address that MPI calls the buffer; data may lie before it (negative displacements),
//! so a value carries the window `[low, high)` relative to it that the datatype and count can touch.

use std::ops::Range;

use crate::layout::{Lengths, Rows};

/// Memory that an operation may read.
#[derive(Clone, Copy, Debug)]
pub struct ReadMemory {
    origin: *const u8,
    low: isize,
    high: isize,
}

/// Memory that an operation may write (and read: reductions).
#[derive(Clone, Copy, Debug)]
pub struct WriteMemory {
    origin: *mut u8,
    low: isize,
    high: isize,
}

// SAFETY: the constructor's promise covers every thread of the process; the values are plain addresses.
unsafe impl Send for ReadMemory {}
// SAFETY: as for `ReadMemory`.
unsafe impl Send for WriteMemory {}
// SAFETY: reading through shared references is what the promise allows.
unsafe impl Sync for ReadMemory {}
// SAFETY: writing needs `&mut self` or a copy that the promise makes unique to the operation.
unsafe impl Sync for WriteMemory {}

/// Zeroed memory of the library's own, for intermediate results; aligned to 16 bytes as C's `malloc` does.
///
/// The values that [`Scratch::memory`] gives must not be used after the `Scratch` is gone: whoever owns it keeps it until every
/// operation on that memory has completed. It is the same promise that the constructors of the other values ask of their
/// caller; it is written here because the owner (the engine) has no unsafe code of its own.
#[derive(Debug)]
pub struct Scratch {
    origin: *mut u8,
    low: isize,
    high: isize,
    /// Owns what `origin` points into; never touched through this.
    _bytes: Vec<u128>,
}

// SAFETY: the memory belongs to the value; the addresses into it are used as the documentation demands.
unsafe impl Send for Scratch {}

impl Scratch {
    /// The bytes `low .. high` around an origin, which is aligned to 16 bytes.
    pub fn new(low: isize, high: isize) -> Self {
        assert!(low <= high, "scratch memory of negative size");
        let pad = low.rem_euclid(16);
        let bytes = pad as usize + high.abs_diff(low);
        let mut owner = vec![0_u128; bytes.div_ceil(16)];
        let origin = owner.as_mut_ptr().cast::<u8>().wrapping_offset(pad - low);
        Self {
            origin,
            low,
            high,
            _bytes: owner,
        }
    }

    /// The memory, to read and write.
    pub fn memory(&self) -> WriteMemory {
        WriteMemory {
            origin: self.origin,
            low: self.low,
            high: self.high,
        }
    }
}

impl ReadMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self {
        origin: std::ptr::null(),
        low: 0,
        high: 0,
    };

    /// # Safety
    /// `origin + low .. origin + high` must be readable and unwritten until the operation is complete.
    pub const unsafe fn new(origin: *const u8, low: isize, high: isize) -> Self {
        Self { origin, low, high }
    }

    /// Address of the buffer, for transports that hand it to the kernel or to another process.
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
        }
    }

    /// `length` bytes from `at` on, as memory of their own. Panics outside the window: that is a bug of ours.
    pub fn part(&self, at: isize, length: usize) -> Self {
        check(self.low, self.high, at, length);
        Self {
            origin: self.origin.wrapping_offset(at),
            low: 0,
            high: length as isize,
        }
    }

    /// The bytes `at .. at + length` relative to the origin. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn slice(&self, at: isize, length: usize) -> &[u8] {
        if length == 0 {
            return &[];
        }
        check(self.low, self.high, at, length);
        // SAFETY: inside the window, which the constructor's caller promised readable.
        let first = unsafe { self.origin.offset(at) };
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts(first, length) }
    }

    /// Copies `count` runs of `length` bytes, the first at `at` and each `stride` further, to `out`, which they fill exactly.
    /// Panics outside the window.
    pub(crate) fn gather(&self, at: isize, stride: isize, count: usize, length: usize, out: &mut [u8]) {
        assert_eq!(
            count.checked_mul(length),
            Some(out.len()),
            "runs that do not fill the buffer"
        );
        check_strided(self.low, self.high, at, stride, count, length);
        let first = self.origin.wrapping_offset(at);
        // SAFETY: all runs are inside the window, and `out` is as long as they are together.
        unsafe { copy_runs(first, stride, out.as_mut_ptr(), length as isize, count, length) }
    }

    /// Copies the runs `which` of rows at `at` to `out`, which they fill exactly. Panics outside the window.
    pub(crate) fn gather_rows(&self, at: isize, rows: &Rows, which: Range<usize>, out: &mut [u8]) {
        check_rows(self.low, self.high, at, 0, 1, rows);
        let first = rows.start(which.start);
        assert_eq!(
            rows.start(which.end) - first,
            out.len() as u64,
            "runs that do not fill the buffer"
        );
        let (from, to) = (self.origin.wrapping_offset(at), out.as_mut_ptr());
        // SAFETY: all rows are inside the window, and `out` is as long as those of `which` together.
        unsafe {
            copy_rows(rows, which, |offset, i| {
                (from.wrapping_offset(offset), to.wrapping_add(i))
            })
        }
    }

    /// Copies `count` times all rows, `stride` apart, to `out`, which they fill exactly. Panics outside the window.
    pub(crate) fn gather_columns(&self, at: isize, stride: isize, count: usize, rows: &Rows, out: &mut [u8]) {
        let size = rows.start(rows.offsets.len()) as usize;
        check_rows(self.low, self.high, at, stride, count, rows);
        assert_eq!(
            count.checked_mul(size),
            Some(out.len()),
            "runs that do not fill the buffer"
        );
        let (from, to) = (self.origin.wrapping_offset(at), out.as_mut_ptr());
        each_column(rows, stride, count, |first, n, offset, start, length| {
            let from = from.wrapping_offset(first as isize * stride + offset);
            let to = to.wrapping_add(first * size + start);
            // SAFETY: all rows of all repetitions are inside the window, and `out` is as long as they are together.
            unsafe { copy_runs(from, stride, to, size as isize, n, length) }
        });
    }
}

impl WriteMemory {
    /// Memory of length 0.
    pub const EMPTY: Self = Self {
        origin: std::ptr::null_mut(),
        low: 0,
        high: 0,
    };

    /// # Safety
    /// `origin + low .. origin + high` must be writable and untouched by others until the operation is complete.
    pub const unsafe fn new(origin: *mut u8, low: isize, high: isize) -> Self {
        Self { origin, low, high }
    }

    /// Address of the buffer.
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
        }
    }

    /// `length` bytes from `at` on, as memory of their own. Panics outside the window: that is a bug of ours.
    pub fn part(&self, at: isize, length: usize) -> Self {
        check(self.low, self.high, at, length);
        Self {
            origin: self.origin.wrapping_offset(at),
            low: 0,
            high: length as isize,
        }
    }

    /// The same memory for reading.
    pub fn reading(&self) -> ReadMemory {
        ReadMemory {
            origin: self.origin,
            low: self.low,
            high: self.high,
        }
    }

    /// The bytes `at .. at + length` relative to the origin. Panics outside the window: that is a bug of ours.
    #[inline]
    pub fn slice(&mut self, at: isize, length: usize) -> &mut [u8] {
        if length == 0 {
            return &mut [];
        }
        check(self.low, self.high, at, length);
        // SAFETY: inside the window, which the constructor's caller promised to this operation alone.
        let first = unsafe { self.origin.offset(at) };
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(first, length) }
    }

    /// Copies `length` bytes at `from` of `source` to `at`; the two may overlap. Panics outside the windows.
    pub fn copy(&mut self, at: isize, source: &ReadMemory, from: isize, length: usize) {
        if length == 0 {
            return;
        }
        check(source.low, source.high, from, length);
        check(self.low, self.high, at, length);
        // SAFETY: inside the window of the source.
        let first = unsafe { source.origin.offset(from) };
        // SAFETY: inside the window of the target.
        let target = unsafe { self.origin.offset(at) };
        // SAFETY: both ranges are inside windows; `copy` allows them to overlap.
        unsafe { std::ptr::copy(first, target, length) }
    }

    /// Copies `data` to `count` runs of `length` bytes, the first at `at` and each `stride` further. Panics outside the window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter(&mut self, at: isize, stride: isize, count: usize, length: usize, data: &[u8]) {
        assert_eq!(
            count.checked_mul(length),
            Some(data.len()),
            "data that do not fill the runs"
        );
        check_strided(self.low, self.high, at, stride, count, length);
        let first = self.origin.wrapping_offset(at);
        // SAFETY: all runs are inside the window, and `data` is as long as they are together.
        unsafe { copy_runs(data.as_ptr(), length as isize, first, stride, count, length) }
    }

    /// Copies `data` to the runs `which` of rows at `at`. Panics outside the window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter_rows(&mut self, at: isize, rows: &Rows, which: Range<usize>, data: &[u8]) {
        check_rows(self.low, self.high, at, 0, 1, rows);
        let first = rows.start(which.start);
        assert_eq!(
            rows.start(which.end) - first,
            data.len() as u64,
            "data that do not fill the runs"
        );
        let (from, to) = (data.as_ptr(), self.origin.wrapping_offset(at));
        // SAFETY: all rows are inside the window, and `data` is as long as those of `which` together.
        unsafe {
            copy_rows(rows, which, |offset, i| {
                (from.wrapping_add(i), to.wrapping_offset(offset))
            })
        }
    }

    /// Copies `data` to `count` times all rows, `stride` apart. Panics outside the window.
    #[expect(clippy::needless_pass_by_ref_mut, reason = "it writes, through an address")]
    pub(crate) fn scatter_columns(&mut self, at: isize, stride: isize, count: usize, rows: &Rows, data: &[u8]) {
        let size = rows.start(rows.offsets.len()) as usize;
        check_rows(self.low, self.high, at, stride, count, rows);
        assert_eq!(
            count.checked_mul(size),
            Some(data.len()),
            "data that do not fill the runs"
        );
        let (from, to) = (data.as_ptr(), self.origin.wrapping_offset(at));
        each_column(rows, stride, count, |first, n, offset, start, length| {
            let from = from.wrapping_add(first * size + start);
            let to = to.wrapping_offset(first as isize * stride + offset);
            // SAFETY: all rows of all repetitions are inside the window, and `data` is as long as they are together.
            unsafe { copy_runs(from, size as isize, to, stride, n, length) }
        });
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
fn check_strided(low: isize, high: isize, at: isize, stride: isize, count: usize, length: usize) {
    if count == 0 {
        return;
    }
    check(low, high, at, length);
    let span = isize::try_from(count - 1).ok().and_then(|n| n.checked_mul(stride));
    let last = span.and_then(|span| at.checked_add(span));
    assert!(last.is_some(), "runs outside the address space");
    check(low, high, last.unwrap_or(at), length);
}

/// All rows of all repetitions are inside if the span of the first and the last repetition is.
fn check_rows(low: isize, high: isize, at: isize, stride: isize, count: usize, rows: &Rows) {
    let (first, end) = (rows.span.0 as isize, rows.span.1 as isize);
    let start = at.checked_add(first);
    assert!(start.is_some(), "rows outside the address space");
    check_strided(low, high, start.unwrap_or(at), stride, count, end.abs_diff(first));
}

/// Repetitions are done in groups whose memory stays in the first cache while one column after the other is copied.
const GROUP: usize = 16 * 1024;

/// Gives (first repetition, number of repetitions, offset in memory, start in the stream, length) of pieces that are
/// copied with one loop.
fn each_column(rows: &Rows, stride: isize, count: usize, mut copy: impl FnMut(usize, usize, isize, usize, usize)) {
    let group = (GROUP / stride.unsigned_abs().max(1)).max(4);
    for first in (0..count).step_by(group) {
        let n = group.min(count - first);
        for (i, &offset) in rows.offsets.iter().enumerate() {
            let (start, end) = (rows.start(i) as usize, rows.start(i + 1) as usize);
            copy(first, n, offset as isize, start, end - start);
        }
    }
}

/// Copies `count` runs of `length` bytes; consecutive runs are `from_step` and `to_step` bytes apart.
///
/// # Safety
/// All runs must be readable and writable, and no run may overlap one of the other side.
unsafe fn copy_runs(from: *const u8, from_step: isize, to: *mut u8, to_step: isize, count: usize, length: usize) {
    let place = |i: isize| (from.wrapping_offset(i * from_step), to.wrapping_offset(i * to_step));
    // SAFETY: the caller's promise.
    unsafe { copy_each((0..count as isize).map(place), length) }
}

/// Copies the runs `which` of rows; `place` makes the two addresses from the offset in memory and the one in the stream,
/// counted from the first run of `which`.
///
/// # Safety
/// All these runs must be readable and writable, and no run may overlap one of the other side.
unsafe fn copy_rows(rows: &Rows, which: Range<usize>, place: impl Fn(isize, usize) -> (*const u8, *mut u8)) {
    let offsets = &rows.offsets[which.clone()];
    match &rows.lengths {
        Lengths::Equal(length) => {
            let length = *length as usize;
            let places = offsets
                .iter()
                .enumerate()
                .map(|(i, &offset)| place(offset as isize, i * length));
            // SAFETY: the caller's promise.
            unsafe { copy_each(places, length) }
        }
        Lengths::Various(starts) => {
            let first = starts[which.start];
            for (&offset, bounds) in offsets.iter().zip(starts[which.start..].windows(2)) {
                let (from, to) = place(offset as isize, (bounds[0] - first) as usize);
                // SAFETY: the caller's promise.
                unsafe { copy_short(from, to, (bounds[1] - bounds[0]) as usize) }
            }
        }
    }
}

/// One run, most probably a short one.
///
/// # Safety
/// As for [`copy_runs`].
#[inline]
unsafe fn copy_short(from: *const u8, to: *mut u8, length: usize) {
    let one = std::iter::once((from, to));
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "only one of the calls happens")]
    // SAFETY: the caller's promise; lengths are in the ranges that `copy_ends` asks for.
    unsafe {
        match length {
            4..=8 => copy_ends::<4>(one, length),
            9..=16 => copy_ends::<8>(one, length),
            17..=32 => copy_ends::<16>(one, length),
            33..=64 => copy_ends::<32>(one, length),
            _ => copy_long(one, length),
        }
    }
}

/// Copies runs of `length` bytes between places.
///
/// # Safety
/// As for [`copy_runs`].
#[inline]
unsafe fn copy_each(places: impl Iterator<Item = (*const u8, *mut u8)>, length: usize) {
    // Lengths that are common or short get copies of a size the compiler knows.
    // SAFETY: the caller's promise; each function copies exactly `length` bytes per run.
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "only one of the calls happens")]
    unsafe {
        match length {
            0 => {}
            1 => copy_exact::<1>(places),
            2 => copy_exact::<2>(places),
            3 => copy_ends::<2>(places, length),
            4 => copy_exact::<4>(places),
            5..8 => copy_ends::<4>(places, length),
            8 => copy_exact::<8>(places),
            9..16 => copy_ends::<8>(places, length),
            16 => copy_exact::<16>(places),
            17..32 => copy_ends::<16>(places, length),
            32 => copy_exact::<32>(places),
            33..64 => copy_ends::<32>(places, length),
            64 => copy_exact::<64>(places),
            _ => copy_long(places, length),
        }
    }
}

/// Runs of `N` bytes.
///
/// # Safety
/// Each place must have `N` bytes on both sides.
#[inline]
unsafe fn copy_exact<const N: usize>(places: impl Iterator<Item = (*const u8, *mut u8)>) {
    for (from, to) in places {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
    }
}

/// Runs of `N` to `2 * N` bytes: the first N and the last N, which may overlap.
///
/// # Safety
/// Each place must have `length` bytes on both sides, `N <= length <= 2 * N`.
#[inline]
unsafe fn copy_ends<const N: usize>(places: impl Iterator<Item = (*const u8, *mut u8)>, length: usize) {
    let rest = length - N;
    for (from, to) in places {
        // SAFETY: there are at least N bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
        // SAFETY: the last N bytes begin at `rest`.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(rest), to.wrapping_add(rest), N) }
    }
}

/// Runs of any length.
///
/// # Safety
/// Each place must have `length` bytes on both sides.
#[inline]
unsafe fn copy_long(places: impl Iterator<Item = (*const u8, *mut u8)>, length: usize) {
    for (from, to) in places {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, length) }
    }
}

/// Arithmetic on the 80-bit `long double` of x86-64, for which Rust has no type. Values are the 10 bytes of the
/// format at the beginning of 16; the rest of results is 0.
#[cfg(target_arch = "x86_64")]
pub(crate) mod x87 {
    use std::arch::asm;

    macro_rules! operation {
        ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
            $(#[$doc])*
            pub(crate) fn $name(left: &[u8; 16], right: &[u8; 16]) -> [u8; 16] {
                let mut result = [0; 16];
                // SAFETY: reads 10 bytes of each operand and writes 10 of the result, all of 16 bytes; the
                // stack of the unit is empty before and after.
                unsafe {
                    asm!(
                        "fld tbyte ptr [{l}]", "fld tbyte ptr [{r}]", $instruction, "fstp tbyte ptr [{o}]",
                        l = in(reg) left, r = in(reg) right, o = in(reg) &mut result,
                        out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                        out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                        options(nostack),
                    );
                }
                result
            }
        };
    }

    operation!(
        /// left + right
        add, "faddp st(1), st"
    );
    operation!(
        /// left - right
        subtract, "fsubp st(1), st"
    );
    operation!(
        /// left * right
        multiply, "fmulp st(1), st"
    );

    /// left < right; false if one is not a number.
    pub(crate) fn less(left: &[u8; 16], right: &[u8; 16]) -> bool {
        let above: u8;
        // SAFETY: reads 10 bytes of each operand of 16 bytes; the stack of the unit is empty before and after.
        unsafe {
            asm!(
                "fld tbyte ptr [{l}]", "fld tbyte ptr [{r}]", "fucomip st, st(1)", "fstp st(0)", "seta {a}",
                l = in(reg) left, r = in(reg) right, a = out(reg_byte) above,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        above != 0
    }
}

/// Memory that the library itself owns and lends to an operation of its own (agreement on contexts and the like).
///
/// Whoever makes one keeps it until the operation that got [`OwnMemory::lend`] is complete.
#[derive(Debug)]
pub struct OwnMemory(Box<[std::cell::UnsafeCell<u8>]>);

impl OwnMemory {
    /// Memory with this content.
    pub fn new(content: &[u8]) -> Self {
        Self(content.iter().map(|&b| std::cell::UnsafeCell::new(b)).collect())
    }

    /// The memory for an operation.
    pub fn lend(&self) -> WriteMemory {
        WriteMemory {
            origin: self.0.as_ptr() as *mut u8,
            low: 0,
            high: self.0.len() as isize,
        }
    }

    /// The content after the operation.
    pub fn content(&self) -> &[u8] {
        // SAFETY: the cells are bytes in one allocation; the operation that wrote them is complete.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast(), self.0.len()) }
    }
}
