// SPDX-License-Identifier: Apache-2.0
//! Copies of runs between memory, where they lie apart, and the packed stream, where they follow each other.
//!
//! Each loop is compiled once for each way ([`Pack`], [`Unpack`]) and each way to copy a run of a known length
//! ([`Copier`]), so that nothing is decided inside a loop.

use std::ops::Range;

use crate::layout::{FEW, Lengths, Rows};

/// Repetitions are done in groups whose memory stays in the first cache while one column after the other is copied.
const GROUP: usize = 16 * 1024;

/// Copies bytes that may overlap. Short messages are words: two moves are less than a call.
///
/// # Safety
/// `length` bytes are readable at `from` and writable at `to`.
#[inline(always)]
pub(super) unsafe fn any(from: *const u8, to: *mut u8, length: usize) {
    const WORD: usize = size_of::<u64>();
    if (WORD..=2 * WORD).contains(&length) {
        let last = length - WORD;
        // SAFETY: both words lie inside, by the caller's promise; both are read before one is written.
        let first_word = unsafe { from.cast::<u64>().read_unaligned() };
        // SAFETY: as above.
        let last_word = unsafe { from.wrapping_add(last).cast::<u64>().read_unaligned() };
        // SAFETY: as above.
        unsafe { to.cast::<u64>().write_unaligned(first_word) };
        // SAFETY: as above.
        unsafe { to.wrapping_add(last).cast::<u64>().write_unaligned(last_word) };
    } else {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy(from, to, length) }
    }
}

/// Which side is read.
pub(super) trait Direction: Copy {
    /// Copies one run.
    ///
    /// # Safety
    /// The side that is read must be readable and the other one writable for the copier's length; they must not
    /// overlap.
    unsafe fn copy(self, copier: impl Copier, memory: *mut u8, stream: *mut u8);
}

/// From memory to the stream; never writes through `memory`.
#[derive(Clone, Copy)]
pub(super) struct Pack;

/// From the stream to memory; never writes through `stream`.
#[derive(Clone, Copy)]
pub(super) struct Unpack;

impl Direction for Pack {
    #[inline(always)]
    unsafe fn copy(self, copier: impl Copier, memory: *mut u8, stream: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { copier.copy(memory, stream) }
    }
}

impl Direction for Unpack {
    #[inline(always)]
    unsafe fn copy(self, copier: impl Copier, memory: *mut u8, stream: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { copier.copy(stream, memory) }
    }
}

/// Copies runs of one length.
pub(super) trait Copier: Copy {
    /// The length, if the compiler knows it.
    const LENGTH: Option<usize> = None;

    /// Copies one run.
    ///
    /// # Safety
    /// Both sides must have that many bytes and must not overlap.
    unsafe fn copy(self, from: *const u8, to: *mut u8);
}

/// Runs of `N` bytes.
#[derive(Clone, Copy)]
struct Exact<const N: usize>;

/// Runs of `N` to `2 * N` bytes: the first N and the last N, which may overlap. Holds where the last ones begin.
#[derive(Clone, Copy)]
struct Ends<const N: usize>(usize);

/// Runs of any length.
#[derive(Clone, Copy)]
struct Any(usize);

impl<const N: usize> Copier for Exact<N> {
    const LENGTH: Option<usize> = Some(N);

    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
    }
}

impl<const N: usize> Copier for Ends<N> {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: there are at least N bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, to, N) }
        // SAFETY: the last N bytes begin there.
        unsafe { std::ptr::copy_nonoverlapping(from.wrapping_add(self.0), to.wrapping_add(self.0), N) }
    }
}

impl Copier for Any {
    #[inline(always)]
    unsafe fn copy(self, from: *const u8, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { std::ptr::copy_nonoverlapping(from, to, self.0) }
    }
}

/// A loop over runs of one length.
trait Loop {
    /// Copies all of them.
    ///
    /// # Safety
    /// The copier's length must be that of the loop, whose maker promised the memory.
    unsafe fn each<C: Copier>(self, copier: C);
}

/// Lengths that are common or short get copies of a size the compiler knows.
///
/// # Safety
/// `length` must be that of the loop.
#[inline(always)]
unsafe fn dispatch(work: impl Loop, length: usize) {
    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "only one of the calls happens")]
    // SAFETY: each copier copies exactly `length` bytes; the ranges are those that `Ends` asks for.
    unsafe {
        match length {
            0 => {}
            1 => work.each(Exact::<1>),
            2 => work.each(Exact::<2>),
            3 => work.each(Ends::<2>(1)),
            4 => work.each(Exact::<4>),
            5..8 => work.each(Ends::<4>(length - 4)),
            8 => work.each(Exact::<8>),
            9..16 => work.each(Ends::<8>(length - 8)),
            16 => work.each(Exact::<16>),
            17..32 => work.each(Ends::<16>(length - 16)),
            32 => work.each(Exact::<32>),
            33..64 => work.each(Ends::<32>(length - 32)),
            64 => work.each(Exact::<64>),
            65..=128 => work.each(Ends::<64>(length - 64)),
            _ => work.each(Any(length)),
        }
    }
}

/// Runs at equal distances on both sides.
struct Runs<W> {
    way: W,
    memory: *mut u8,
    stride: isize,
    stream: *mut u8,
    step: isize,
    count: usize,
}

impl<W: Direction> Loop for Runs<W> {
    #[inline(always)]
    unsafe fn each<C: Copier>(self, copier: C) {
        for i in 0..self.count as isize {
            let memory = self.memory.wrapping_offset(i * self.stride);
            let stream = self.stream.wrapping_offset(i * self.step);
            // SAFETY: the maker's promise.
            unsafe { self.way.copy(copier, memory, stream) }
        }
    }
}

/// Runs at offsets, again and again.
struct Listed<'a, W> {
    way: W,
    memory: *mut u8,
    offsets: &'a [i64],
    stride: isize,
    count: usize,
    stream: *mut u8,
    length: usize,
}

impl<W: Direction> Loop for Listed<'_, W> {
    #[inline(always)]
    unsafe fn each<C: Copier>(self, copier: C) {
        let length = const { C::LENGTH }.unwrap_or(self.length);
        let (mut memory, mut stream) = (self.memory, self.stream);
        for _ in 0..self.count {
            let (fours, rest) = self.offsets.split_at(self.offsets.len() & !3);
            for four in fours.chunks_exact(4) {
                for (i, &offset) in four.iter().enumerate() {
                    let (memory, stream) = (memory.wrapping_offset(offset as isize), stream.wrapping_add(i * length));
                    // SAFETY: the maker's promise.
                    unsafe { self.way.copy(copier, memory, stream) }
                }
                stream = stream.wrapping_add(4 * length);
            }
            for &offset in rest {
                // SAFETY: the maker's promise.
                unsafe { self.way.copy(copier, memory.wrapping_offset(offset as isize), stream) }
                stream = stream.wrapping_add(length);
            }
            memory = memory.wrapping_offset(self.stride);
        }
    }
}

/// Runs at equal distances, again and again.
struct Grid<W> {
    way: W,
    memory: *mut u8,
    /// Distance between runs and number of runs.
    inner: (isize, usize),
    /// Distance between repetitions and number of repetitions.
    outer: (isize, usize),
    stream: *mut u8,
    length: usize,
}

impl<W: Direction> Loop for Grid<W> {
    #[inline(always)]
    unsafe fn each<C: Copier>(self, copier: C) {
        let length = const { C::LENGTH }.unwrap_or(self.length);
        let (step, runs) = self.inner;
        let (mut row, mut stream) = (self.memory, self.stream);
        for _ in 0..self.outer.1 {
            let mut memory = row;
            for _ in 0..runs / 4 {
                for i in 0..4 {
                    let (memory, stream) = (
                        memory.wrapping_offset(i * step),
                        stream.wrapping_add(i as usize * length),
                    );
                    // SAFETY: the maker's promise.
                    unsafe { self.way.copy(copier, memory, stream) }
                }
                memory = memory.wrapping_offset(4 * step);
                stream = stream.wrapping_add(4 * length);
            }
            for _ in 0..runs % 4 {
                // SAFETY: the maker's promise.
                unsafe { self.way.copy(copier, memory, stream) }
                memory = memory.wrapping_offset(step);
                stream = stream.wrapping_add(length);
            }
            row = row.wrapping_offset(self.outer.0);
        }
    }
}

/// One run, most probably a short one.
struct Single<W> {
    way: W,
    memory: *mut u8,
    stream: *mut u8,
}

impl<W: Direction> Loop for Single<W> {
    #[inline(always)]
    unsafe fn each<C: Copier>(self, copier: C) {
        // SAFETY: the maker's promise.
        unsafe { self.way.copy(copier, self.memory, self.stream) }
    }
}

/// `count` runs of `length` bytes, the first at `memory`, each `stride` further.
///
/// # Safety
/// All runs must lie in memory of the caller's, the stream must be as long as they are together, and they must not
/// overlap it.
pub(super) unsafe fn strided<W: Direction>(
    way: W,
    memory: *mut u8,
    stride: isize,
    count: usize,
    length: usize,
    stream: *mut u8,
) {
    let runs = Runs {
        way,
        memory,
        stride,
        stream,
        step: length as isize,
        count,
    };
    // SAFETY: the caller's promise.
    unsafe { dispatch(runs, length) }
}

/// The runs `which` of rows at `memory`.
///
/// # Safety
/// As for [`strided`].
pub(super) unsafe fn rows<W: Direction>(way: W, memory: *mut u8, rows: &Rows, which: Range<usize>, stream: *mut u8) {
    match &rows.lengths {
        Lengths::Equal(length) => {
            let length = *length as usize;
            let listed = Listed {
                way,
                memory,
                offsets: &rows.offsets[which],
                stride: 0,
                count: 1,
                stream,
                length,
            };
            // SAFETY: the caller's promise.
            unsafe { dispatch(listed, length) }
        }
        Lengths::Various(starts) => {
            let first = starts[which.start];
            for (&offset, bounds) in rows.offsets[which.clone()].iter().zip(starts[which.start..].windows(2)) {
                let single = Single {
                    way,
                    memory: memory.wrapping_offset(offset as isize),
                    stream: stream.wrapping_add((bounds[0] - first) as usize),
                };
                // SAFETY: the caller's promise.
                unsafe { dispatch(single, (bounds[1] - bounds[0]) as usize) }
            }
        }
    }
}

/// `count` times all rows, `stride` apart.
///
/// # Safety
/// As for [`strided`].
pub(super) unsafe fn columns<W: Direction>(
    way: W,
    memory: *mut u8,
    stride: isize,
    count: usize,
    rows: &Rows,
    stream: *mut u8,
) {
    let size = rows.start(rows.offsets.len()) as usize;
    if let Lengths::Equal(length) = rows.lengths {
        let length = length as usize;
        if let Some(step) = rows.step {
            let grid = Grid {
                way,
                memory: memory.wrapping_offset(rows.offsets[0] as isize),
                inner: (step as isize, rows.offsets.len()),
                outer: (stride, count),
                stream,
                length,
            };
            // SAFETY: the caller's promise.
            return unsafe { dispatch(grid, length) };
        }
        let listed = Listed {
            way,
            memory,
            offsets: &rows.offsets,
            stride,
            count,
            stream,
            length,
        };
        // SAFETY: the caller's promise.
        return unsafe { dispatch(listed, length) };
    }
    if rows.offsets.len() as u64 > FEW {
        for i in 0..count {
            let memory = memory.wrapping_offset(i as isize * stride);
            // SAFETY: the caller's promise.
            unsafe { self::rows(way, memory, rows, 0..rows.offsets.len(), stream.wrapping_add(i * size)) }
        }
        return;
    }
    let group = (GROUP / stride.unsigned_abs().max(1)).max(4);
    for first in (0..count).step_by(group) {
        let memory = memory.wrapping_offset(first as isize * stride);
        let stream = stream.wrapping_add(first * size);
        for (i, &offset) in rows.offsets.iter().enumerate() {
            let (start, end) = (rows.start(i) as usize, rows.start(i + 1) as usize);
            let column = Runs {
                way,
                memory: memory.wrapping_offset(offset as isize),
                stride,
                stream: stream.wrapping_add(start),
                step: size as isize,
                count: group.min(count - first),
            };
            // SAFETY: the caller's promise.
            unsafe { dispatch(column, end - start) }
        }
    }
}

/// Bytes of a cache line.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Copies to memory, not to caches.
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) fn past_caches(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    const VECTOR: usize = size_of::<__m128i>();
    assert_eq!(from.len(), to.len(), "data of another length than their place");
    let head = to.as_ptr().align_offset(LINE);
    if from.len() < head.saturating_add(4 * LINE) {
        return to.copy_from_slice(from);
    }
    let (first, to) = to.split_at_mut(head);
    let (first_from, from) = from.split_at(head);
    first.copy_from_slice(first_from);
    let (mut lines, mut sources) = (to.chunks_exact_mut(LINE), from.chunks_exact(LINE));
    for (line, source) in (&mut lines).zip(&mut sources) {
        for at in (0..LINE).step_by(VECTOR) {
            // SAFETY: `source` has a line of bytes, and a load need not be aligned.
            let vector = unsafe { _mm_loadu_si128(source.as_ptr().wrapping_add(at).cast()) };
            // SAFETY: `line` is a line of bytes that begins on one.
            unsafe { _mm_stream_si128(line.as_mut_ptr().wrapping_add(at).cast(), vector) };
        }
    }
    lines.into_remainder().copy_from_slice(sources.remainder());
    // Such stores are in no order with others; whoever hears that the data are there must find them.
    // SAFETY: every processor of this architecture has it.
    unsafe { _mm_sfence() };
}

/// Copies: other processors do as well with an ordinary copy.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
pub(super) fn past_caches(from: &[u8], to: &mut [u8]) {
    to.copy_from_slice(from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "interpreted, it is an ordinary copy")]
    fn what_is_written_past_caches_is_there() {
        let source: Vec<u8> = (0..2000_u32).map(|i| (i * 7 % 251) as u8).collect();
        for length in [0, 1, 63, 64, 255, 256, 257, 320, 1000, 1900] {
            for at in [0, 1, 15, 16, 63, 64] {
                let mut target = vec![9; 2000];
                past_caches(&source[3..3 + length], &mut target[at..at + length]);
                assert_eq!(target[at..at + length], source[3..3 + length]);
                assert!(target[..at].iter().chain(&target[at + length..]).all(|&byte| byte == 9));
            }
        }
    }
}
