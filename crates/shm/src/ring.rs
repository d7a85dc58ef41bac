// SPDX-License-Identifier: Apache-2.0
//! The ring between one writer and one reader.
//!
//! The ring's data is a sequence of 64-byte lines. A record begins on a line and is contiguous:
//!
//! ```text
//!  byte 0                8                          32
//!      +-----------------+--------------------------+---------------------------- - -
//!      | word            | rest of the frame header | payload ...          (padding)
//!      +-----------------+--------------------------+---------------------------- - -
//! ```
//!
//! The *word* is the first eight bytes of the frame header; they are never all zero because a frame has a
//! kind. Zero means "not published". So up to 32 bytes of payload travel in the cache line that the
//! reader is waiting for. A record that does not fit before the end of the ring begins at its start,
//! and the word [`SKIP`] is published where it would have begun.
//!
//! Rules (the numbers are used in the safety arguments):
//!
//! * R1. The writer owns the bytes from *written* to *consumed + capacity*, the reader those from *consumed*
//!   to *written*. (Positions count bytes ever written; a byte's place is its position modulo the capacity.)
//! * R2. Before the writer publishes a word it has zeroed the word at which the following record will begin, and it
//!   keeps one line free for that word. So the reader, having taken a record, finds zero or a published word.
//! * R3. The writer writes a record's bytes first and publishes its word last, with release order. A skipped end
//!   is published after the record at the start is complete, word included.
//! * R4. The reader reads a record's bytes only after it has read the word, with acquire order, as not zero.
//! * R5. The reader gives bytes back by storing *consumed* with release order, after its last read of
//!   them. It does so when a quarter of the ring has gathered, because the writer seldom looks.
//! * R6. The writer takes bytes back by loading *consumed* with acquire order.
//!
//! A refused writer sets *wants* and looks at *consumed* again; the reader looks at *wants* after it has stored
//! *consumed*. Both have a sequentially consistent fence in between, so at least one of them sees the other.
//! A record needs at most half of the ring (with a skipped end) and less than a quarter is ever held back, so
//! a reader that has taken everything always leaves enough room for it.

use crate::sync::{AtomicU32, AtomicU64, Ordering, fence, publish};

/// Bytes of a cache line; records begin on one.
pub(crate) const LINE: usize = 64;

/// Bytes of a frame header at the beginning of a record.
pub(crate) const HEADER: usize = 32;
/// Words of it.
pub(crate) const HEADER_WORDS: usize = HEADER / 8;

/// The word that says: the next record is at the start of the ring. No frame has this kind.
const SKIP: u64 = 0xff;

/// How far ahead of the writer words are zeroed in one go.
const AHEAD: u64 = 8 * LINE as u64;

/// What the two sides of a ring share, apart from the data.
#[repr(C, align(64))]
pub(crate) struct Control {
    /// Bytes given back by the reader.
    pub(crate) consumed: AtomicU64,
    /// Apart from `consumed`: written by the other side.
    _line: [u64; 7],
    /// 1 when the writer was refused and wants to be told about room.
    pub(crate) wants: AtomicU32,
    _rest: [u32; 15],
}

#[cfg(any(loom, test))]
impl Control {
    fn new() -> Self {
        Self {
            consumed: AtomicU64::new(0),
            _line: [0; 7],
            wants: AtomicU32::new(0),
            _rest: [0; 15],
        }
    }
}

/// The memory of a ring. Offsets are in bytes from the start of the data; `at` is a multiple of [`LINE`].
pub(crate) trait Memory {
    /// Bytes of data, a multiple of [`LINE`].
    fn capacity(&self) -> usize;
    /// Counters of the ring.
    fn control(&self) -> &Control;
    /// The word of the line at `at`.
    ///
    /// # Safety
    /// `at` is below the capacity.
    unsafe fn word(&self, at: usize) -> &AtomicU64;
    /// Makes sure that there is memory behind the data from `from`, up to where there is some, to `end`; tells up to
    /// where there is some now. Error: a number of the operating system.
    fn back(&self, from: usize, end: usize) -> Result<usize, i32>;
    /// Writes bytes 8.. of a record: the rest of the header, and the payload of `length` bytes by calling `fill`.
    ///
    /// # Safety
    /// The record `at .. at + HEADER + length` lies inside the data and belongs to the writer (R1), and the caller is
    /// it.
    unsafe fn write(&self, at: usize, header: &[u64; HEADER_WORDS], length: usize, fill: impl FnOnce(&mut [u8]));
    /// Calls `f` with the `length` bytes of a record, the word included.
    ///
    /// # Safety
    /// `at .. at + length` lies inside the data and belongs to the reader (R1, R4), and the caller is it.
    unsafe fn read<R>(&self, at: usize, length: usize, f: impl FnOnce(&[u8]) -> R) -> R;
}

/// Why a record was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    /// No room; *wants* is set.
    Full,
    /// The operating system has no memory for the ring: its error number.
    NoMemory(i32),
}

/// A record that cannot have been written by a [`Writer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Corrupt;

/// Longest payload of a record in a ring with that many bytes of data.
pub(crate) const fn longest_payload(capacity: usize) -> usize {
    // The largest power of two such that two records and the word after them fit into three quarters.
    let quarter = capacity.next_power_of_two() / 4;
    if 2 * (quarter + LINE) + LINE <= capacity / 4 * 3 {
        quarter
    } else {
        quarter / 2
    }
}

const fn round_up(bytes: usize) -> usize {
    (bytes + LINE - 1) & !(LINE - 1)
}

/// Writes a payload. Short ones are words: two moves are less than a call.
#[inline(always)]
pub(crate) fn put(to: &mut [u8], payload: &[u8]) {
    const WORD: usize = size_of::<u64>();
    let is_short = (WORD..=2 * WORD).contains(&payload.len()) && to.len() == payload.len();
    let words = payload.first_chunk::<WORD>().zip(payload.last_chunk::<WORD>());
    let Some((first, last)) = words.filter(|_| is_short) else {
        return to.copy_from_slice(payload);
    };
    if let Some(start) = to.first_chunk_mut() {
        *start = *first;
    }
    if let Some(end) = to.last_chunk_mut() {
        *end = *last;
    }
}

/// The writing side, private to the process that writes.
pub(crate) struct Writer<M> {
    memory: M,
    /// Place of the next record.
    at: usize,
    /// Position of the next record.
    written: u64,
    /// The ring is ours up to this position, as far as we know.
    limit: u64,
    /// Words of all lines from the next record up to this position are zero.
    clean: u64,
    /// There is memory behind the data up to here.
    backed: usize,
}

impl<M: Memory> Writer<M> {
    /// The writer of a ring that was never used (all zero).
    pub(crate) fn new(memory: M) -> Self {
        let capacity = memory.capacity() as u64;
        Self {
            memory,
            at: 0,
            written: 0,
            limit: capacity,
            clean: capacity,
            backed: 0,
        }
    }

    /// Writes and publishes one record with a payload of `length` bytes, which `fill` writes, or nothing. The header
    /// must not begin with eight zero bytes.
    #[inline]
    pub(crate) fn push(
        &mut self,
        header: &[u64; HEADER_WORDS],
        length: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<(), PushError> {
        let need = round_up(HEADER + length);
        let to_end = self.memory.capacity() - self.at;
        let skipped = if need > to_end { to_end } else { 0 };
        let next = self.written + (skipped + need) as u64;
        if self.limit < next + LINE as u64 && !self.make_room(next + LINE as u64) {
            return Err(PushError::Full);
        }
        let start = if skipped > 0 { 0 } else { self.at };
        // The reader looks at the word after the record, too.
        if (start + need + LINE).min(self.memory.capacity()) > self.backed {
            self.back(start + need)?;
        }
        if self.clean <= next {
            self.zero_word(next);
            self.clean = next + LINE as u64;
        }
        // SAFETY: R1: `start .. start + need` ends at `next`, which is below the limit.
        unsafe { self.memory.write(start, header, length, fill) };
        // SAFETY: a place in the ring.
        let here = unsafe { self.memory.word(self.at) };
        if skipped > 0 {
            // SAFETY: every ring has a first line.
            let first = unsafe { self.memory.word(0) };
            first.store(header[0], Ordering::Relaxed);
            publish(here, SKIP);
        } else {
            publish(here, header[0]);
        }
        self.at = if start + need == self.memory.capacity() {
            0
        } else {
            start + need
        };
        self.written = next;
        Ok(())
    }

    /// Zeroes words ahead of the writer, after a record was published: then the next one finds its lines ready.
    #[inline]
    pub(crate) fn prepare(&mut self) {
        if self.clean < self.written + 2 * LINE as u64 && self.limit >= self.clean + AHEAD && self.has_memory_ahead() {
            for line in 0..AHEAD / LINE as u64 {
                self.zero_word(self.clean + line * LINE as u64);
            }
            self.clean += AHEAD;
        }
    }

    /// Whether there is memory behind what [`Writer::prepare`] zeroes.
    fn has_memory_ahead(&self) -> bool {
        let end = self.at as u64 + (self.clean - self.written) + AHEAD;
        self.backed == self.memory.capacity() || end <= self.backed as u64
    }

    /// Would a payload of that many bytes be taken now? If not, *wants* is set.
    pub(crate) fn has_room(&mut self, payload: usize) -> bool {
        let need = round_up(HEADER + payload);
        let to_end = self.memory.capacity() - self.at;
        let skipped = if need > to_end { to_end } else { 0 };
        let end = self.written + (skipped + need + LINE) as u64;
        self.limit >= end || self.make_room(end)
    }

    #[cold]
    fn make_room(&mut self, end: u64) -> bool {
        self.take_back();
        if self.limit >= end {
            return true;
        }
        self.memory.control().wants.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.take_back();
        self.limit >= end
    }

    fn take_back(&mut self) {
        let consumed = self.memory.control().consumed.load(Ordering::Acquire);
        // A reader cannot have taken more than was written; a wrong counter must not let us write outside our part.
        if consumed <= self.written {
            self.limit = self.limit.max(consumed + self.memory.capacity() as u64);
        }
    }

    #[cold]
    fn back(&mut self, end: usize) -> Result<(), PushError> {
        // Doubling keeps the number of calls small.
        let wanted = (end + LINE).max(2 * self.backed).min(self.memory.capacity());
        self.backed = self.memory.back(self.backed, wanted).map_err(PushError::NoMemory)?;
        Ok(())
    }

    fn zero_word(&self, position: u64) {
        let ahead = (position - self.written) as usize;
        let capacity = self.memory.capacity();
        let at = if self.at + ahead >= capacity {
            self.at + ahead - capacity
        } else {
            self.at + ahead
        };
        // SAFETY: both are at most a ring, so what is ahead of the end is in it from the start.
        let word = unsafe { self.memory.word(at) };
        word.store(0, Ordering::Relaxed);
    }
}

/// The reading side, private to the process that reads.
pub(crate) struct Reader<M> {
    memory: M,
    /// Place of the next record.
    at: usize,
    /// Bytes taken.
    consumed: u64,
    /// Bytes given back.
    returned: u64,
}

impl<M: Memory> Reader<M> {
    /// The reader of a ring that was never read.
    pub(crate) fn new(memory: M) -> Self {
        Self {
            memory,
            at: 0,
            consumed: 0,
            returned: 0,
        }
    }

    /// Is a record there?
    #[inline]
    pub(crate) fn ready(&self) -> bool {
        // SAFETY: a place in the ring.
        let word = unsafe { self.memory.word(self.at) };
        word.load(Ordering::Acquire) != 0
    }

    /// Takes one record if there is one. `payload_bytes` tells from the header how long the payload is.
    #[inline]
    pub(crate) fn pop<H>(
        &mut self,
        decode: impl FnOnce(&[u8; HEADER]) -> Option<(H, u64)>,
        deliver: impl FnOnce(&H, &[u8]),
    ) -> Result<bool, Corrupt> {
        // SAFETY: a place in the ring.
        let mut word = unsafe { self.memory.word(self.at) }.load(Ordering::Acquire);
        if word == 0 {
            return Ok(false);
        }
        let capacity = self.memory.capacity();
        if word == SKIP {
            self.consumed += (capacity - self.at) as u64;
            self.at = 0;
            // SAFETY: every ring has a first line.
            word = unsafe { self.memory.word(0) }.load(Ordering::Acquire);
        }
        if word == 0 || word == SKIP {
            return Err(Corrupt);
        }
        let at = self.at;
        // SAFETY: R4: the word was read as published; a header never crosses the end because records begin
        // on lines and the capacity is a multiple of a line.
        let decoded = unsafe {
            self.memory
                .read(at, HEADER, |bytes| bytes.first_chunk().and_then(decode))
        };
        let (header, length) = decoded.ok_or(Corrupt)?;
        if length > (capacity - at - HEADER) as u64 {
            return Err(Corrupt);
        }
        let bytes = HEADER + length as usize;
        // SAFETY: R4, and the length was checked against the end of the ring.
        unsafe {
            self.memory
                .read(at, bytes, |record| deliver(&header, &record[HEADER..]))
        };
        let end = at + round_up(bytes);
        self.at = if end == capacity { 0 } else { end };
        self.consumed += (end - at) as u64;
        Ok(true)
    }

    /// Gives back what was taken, if it has become worth it. True if the writer wants to be told.
    #[inline]
    pub(crate) fn give_back(&mut self) -> bool {
        if (self.consumed - self.returned) as usize * 4 < self.memory.capacity() {
            return false;
        }
        let control = self.memory.control();
        control.consumed.store(self.consumed, Ordering::Release);
        self.returned = self.consumed;
        fence(Ordering::SeqCst);
        control.wants.load(Ordering::Relaxed) != 0 && control.wants.swap(0, Ordering::Relaxed) != 0
    }
}

#[cfg(test)]
mod tests;
