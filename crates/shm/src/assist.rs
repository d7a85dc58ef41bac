// SPDX-License-Identifier: Apache-2.0
//! A long message copied by both of its ends: the receiver reads the sender's memory, and the sender, if it polls meanwhile, writes into the
//! receiver's. Two cores copy up to twice as fast as one.
//!
//! The message is cut into *pieces* ([`piece`]). The receiver takes them from the front, the sender from the end, until they meet. A sender that does
//! not come, because it computes or sleeps, takes none; so asking it is right for any message.
//!
//! What they share is in the block of the receiver, which copies one message at a time:
//!
//! ```text
//!  claims   generation (32 bits) | next piece at the front (16) | end of what is left (16)      both change it, by compare and exchange
//!  done     failed (1) | pieces that the sender has written of this generation (16)              the sender stores it
//! ```
//! The receiver opens a generation when nobody has a piece of the one before, and ends it only when all pieces that the sender has taken are
//! written. So a sender that comes late finds another generation, or nothing left, and who holds a piece knows that both memories are still
//! there: the receiver has not said yet that it has the message. Only such a sender stores *done*.

use crate::sync::{AtomicU64, Ordering};

/// Shortest message, bytes, of which the sender copies a part: below, the word to it and a second call cost more than they save.
pub(crate) const SHORTEST: u64 = 32 << 10;
/// Pieces are not shorter unless they are halves: a call costs as much as a copy of 16 KiB.
const SHORT: u64 = 128 << 10;
/// Nor longer, so that who comes late finds something to do, and who polls for other things waits for no more than this.
const LONG: u64 = 512 << 10;
/// Pieces end at such multiples, counted from the message's beginning.
const GRAIN: u64 = 4096;

/// Bytes of a piece of a message, the last one excepted; the same on both sides.
pub(crate) fn piece(length: u64) -> u64 {
    let half = length.div_ceil(2).min(SHORT);
    let long = (length / 4).clamp(half, LONG);
    // Of the longest messages no more than a number of 16 bits says.
    long.max(length / 32_768).next_multiple_of(GRAIN)
}

/// How many pieces a message has.
pub(crate) fn pieces(length: u64) -> u16 {
    length.div_ceil(piece(length)) as u16
}

/// Where piece `number` begins, and its bytes.
pub(crate) fn part(length: u64, number: u16) -> (u64, u64) {
    let piece = piece(length);
    let at = u64::from(number).saturating_mul(piece).min(length);
    (at, piece.min(length - at))
}

/// What the two ends of a copy share.
#[repr(C, align(128))]
pub(crate) struct Desk {
    claims: AtomicU64,
    _line: [u64; 7],
    done: AtomicU64,
}

const FAILED: u64 = 1 << 16;

/// What the sender has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// Pieces that it has written.
    pub(crate) pieces: u16,
    /// It could not write the piece that it took last, and takes no more.
    pub(crate) failed: bool,
}

impl Desk {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self {
            claims: AtomicU64::new(0),
            _line: [0; 7],
            done: AtomicU64::new(0),
        }
    }

    /// Receiver, when all pieces of the last generation are written: the next one.
    pub(crate) fn open(&self, length: u64) -> u32 {
        let generation = ((self.claims.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1) & 0x7fff_ffff;
        self.done.store(0, Ordering::Relaxed);
        let claims = u64::from(generation) << 32 | u64::from(pieces(length));
        self.claims.store(claims, Ordering::Release);
        generation
    }

    /// Receiver: the next piece from the front, or how many the sender has taken when none is left.
    pub(crate) fn front(&self, length: u64) -> Result<u16, u16> {
        let left = |claims: u64| ((claims >> 16 & 0xffff) < (claims & 0xffff)).then_some(claims + (1 << 16));
        match self.claims.fetch_update(Ordering::AcqRel, Ordering::Acquire, left) {
            Ok(claims) => Ok((claims >> 16) as u16),
            Err(claims) => Err(pieces(length) - claims as u16),
        }
    }

    /// Sender: the next piece from the end of what is left of a generation.
    pub(crate) fn back(&self, generation: u32) -> Option<u16> {
        let left = |claims: u64| {
            let some = (claims >> 32) as u32 == generation && (claims >> 16 & 0xffff) < (claims & 0xffff);
            some.then(|| claims - 1)
        };
        let claims = self.claims.fetch_update(Ordering::AcqRel, Ordering::Acquire, left);
        claims.ok().map(|claims| (claims as u16) - 1)
    }

    /// Sender, which holds a piece: so many are written; `failed`: and this one could not be.
    pub(crate) fn note(&self, pieces: u16, failed: bool) {
        let failed = if failed { FAILED } else { 0 };
        self.done.store(failed | u64::from(pieces), Ordering::Release);
    }

    /// Receiver: what the sender has done of the generation that was opened last.
    pub(crate) fn done(&self) -> Done {
        let word = self.done.load(Ordering::Acquire);
        Done {
            pieces: word as u16,
            failed: word & FAILED != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))]
    #[test]
    fn pieces_cover_a_message_once() {
        for length in [
            SHORTEST,
            SHORTEST + 1,
            65_536,
            100_000,
            256 << 10,
            (1 << 20) + 7,
            4 << 20,
            (64 << 20) - 1,
            100 << 30,
        ] {
            assert!((2..=0xffff).contains(&length.div_ceil(piece(length))), "{length}");
            let mut end = 0;
            for number in 0..pieces(length) {
                let (at, bytes) = part(length, number);
                assert!(at == end && bytes > 0);
                end = at + bytes;
            }
            assert_eq!(end, length);
        }
        assert_eq!(
            (piece(65_536), piece(256 << 10), piece(1 << 20)),
            (32 << 10, 128 << 10, 256 << 10)
        );
    }

    #[cfg(not(loom))]
    #[test]
    fn both_take_until_they_meet_and_who_is_late_takes_nothing() {
        let desk = Desk::new();
        let length = 1 << 20;
        let first = desk.open(length);
        assert_eq!(
            (desk.front(length), desk.back(first), desk.front(length)),
            (Ok(0), Some(3), Ok(1))
        );
        desk.note(1, false);
        assert_eq!(desk.back(first), Some(2));
        assert_eq!((desk.back(first), desk.front(length)), (None, Err(2)));
        let done = |pieces, failed| Done { pieces, failed };
        assert_eq!(desk.done(), done(1, false));
        desk.note(1, true);
        assert_eq!(desk.done(), done(1, true));
        let second = desk.open(length);
        assert_eq!((desk.done(), desk.back(first)), (done(0, false), None));
        assert_eq!(desk.back(second), Some(3));
    }

    #[cfg(loom)]
    mod models {
        use loom::cell::UnsafeCell;
        use loom::thread;
        use std::sync::Arc;

        use super::*;

        /// Two messages in a row of three pieces each, and the memory of each piece.
        struct Copy {
            desk: Desk,
            pieces: [[UnsafeCell<u64>; 3]; 2],
        }

        const LENGTH: u64 = 3 * SHORT;

        #[expect(unsafe_code, reason = "the model checker watches over these accesses")]
        fn write(cell: &UnsafeCell<u64>, value: u64) {
            // SAFETY: the checker reports accesses at the same time.
            cell.with_mut(|at| unsafe { *at += value });
        }

        #[expect(unsafe_code, reason = "the model checker watches over these accesses")]
        fn read(cell: &UnsafeCell<u64>) -> u64 {
            // SAFETY: the checker reports accesses at the same time.
            cell.with(|at| unsafe { *at })
        }

        #[test]
        fn every_piece_is_copied_once_and_seen() {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(3);
            model.check(|| {
                let copy = Arc::new(Copy {
                    desk: Desk::new(),
                    pieces: std::array::from_fn(|_| std::array::from_fn(|_| UnsafeCell::new(0))),
                });
                assert_eq!(pieces(LENGTH), 3);
                // The sender has been asked for both messages; for the first one maybe too late.
                let sender = thread::spawn({
                    let copy = Arc::clone(&copy);
                    move || {
                        for message in 0..2 {
                            let mut count = 0;
                            while let Some(number) = copy.desk.back(message as u32 + 1) {
                                write(&copy.pieces[message][number as usize], 1);
                                count += 1;
                                copy.desk.note(count, false);
                            }
                        }
                    }
                });
                for message in 0..2 {
                    assert_eq!(copy.desk.open(LENGTH), message as u32 + 1);
                    let taken = loop {
                        match copy.desk.front(LENGTH) {
                            Ok(number) => write(&copy.pieces[message][number as usize], 1),
                            Err(taken) => break taken,
                        }
                    };
                    while copy.desk.done().pieces < taken {
                        thread::yield_now();
                    }
                    for piece in &copy.pieces[message] {
                        assert_eq!(read(piece), 1);
                    }
                }
                sender.join().unwrap();
            });
        }
    }
}
