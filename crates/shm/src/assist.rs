// SPDX-License-Identifier: Apache-2.0
//! A long message copied by both of its ends: the receiver reads the sender's memory, and the sender, if it polls
//! meanwhile, writes into the receiver's. Two cores copy up to twice as fast as one.
//!
//! The message is cut into *pieces* ([`piece`]). The receiver takes them from the front, the sender from the end, until
//! they meet. A sender that does not come, because it computes or sleeps, takes none; so asking it is right for any
//! message.
//!
//! What they share is in the block of the receiver, which copies one message at a time:
//!
//! ```text
//!  claims   generation (32 bits) | next piece at the front (16) | end of what is left (16)
//!           both change it, by compare and exchange
//!  done     failed (1) | pieces that the sender has written of this generation (16)
//!           the sender stores it
//! ```
//! The receiver opens a generation when nobody has a piece of the one before, and ends it only when all pieces that the
//! sender has taken are written. So a sender that comes late finds another generation, or nothing left, and who holds a
//! piece knows that both memories are still there: the receiver has not said yet that it has the message. Only such a
//! sender stores *done*.
//!
//! Any process of the job can have overwritten these words, so neither end believes them: each remembers what it knows
//! itself (the receiver in [`Opened`], the sender in [`HelpWanted`]), takes no more pieces than there are, and finds
//! out when a word is one that nobody writes.

#[cfg(not(loom))]
mod fuzz;

use crate::sync::{AtomicU64, Ordering};

#[cfg(not(loom))]
pub use fuzz::fuzz_desk;

/// Shortest message, bytes, of which the sender copies a part: below, the word to it and a second call cost more than
/// they save.
pub(crate) const SHORTEST: u64 = 32 << 10;
/// Pieces are not shorter unless they are halves: a call costs as much as a copy of 16 KiB.
const SHORT: u64 = 128 << 10;
/// Nor longer, so that who comes late finds something to do, and who polls for other things waits for no more than
/// this.
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

/// A message that the receiver has opened, as it knows it itself.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Its generation.
    pub(crate) copy: u32,
    pub(crate) length: u64,
    /// The next piece at the front.
    next: u16,
}

/// Why there is no piece for the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPiece {
    /// All are taken, so many by the sender.
    Taken(u16),
    /// The desk says what neither end writes.
    Corrupt,
}

/// Why a receiver does not have its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing<E> {
    /// A piece could not be copied.
    Failed(E),
    /// The sender has ended with a piece that it had taken.
    Gone,
    /// The desk says what neither end writes.
    Corrupt,
}

/// A message of ours that its receiver wants us to copy together, as the receiver has put it.
#[derive(Debug)]
pub(crate) struct HelpWanted {
    /// Slot of the receiver.
    pub(crate) slot: usize,
    /// Generation of the receiver's desk.
    pub(crate) copy: u32,
    /// Address here.
    pub(crate) source: u64,
    /// Address at the receiver.
    pub(crate) target: u64,
    pub(crate) length: u64,
    /// Pieces that we have written.
    pub(crate) pieces: u16,
}

impl Desk {
    #[cfg(any(loom, test))]
    fn new() -> Self {
        Self::with(0, 0)
    }

    /// Of these words.
    fn with(claims: u64, done: u64) -> Self {
        Self {
            claims: AtomicU64::new(claims),
            _line: [0; 7],
            done: AtomicU64::new(done),
        }
    }

    /// Receiver, when all pieces of the last generation are written: the next one.
    pub(crate) fn open(&self, length: u64) -> Opened {
        let generation = ((self.claims.load(Ordering::Relaxed) >> 32) as u32).wrapping_add(1) & 0x7fff_ffff;
        self.done.store(0, Ordering::Relaxed);
        let claims = u64::from(generation) << 32 | u64::from(pieces(length));
        self.claims.store(claims, Ordering::Release);
        Opened {
            copy: generation,
            length,
            next: 0,
        }
    }

    /// Receiver: the next piece from the front, or how many the sender has taken when none is left.
    pub(crate) fn front(&self, opened: &mut Opened) -> Result<u16, NoPiece> {
        let (next, all) = (opened.next, pieces(opened.length));
        let begun = u64::from(opened.copy) << 16 | u64::from(next);
        let right = |claims: u64| claims >> 16 == begun && (next..=all).contains(&(claims as u16));
        let left = |claims: u64| (right(claims) && next < claims as u16).then(|| claims + (1 << 16));
        match self.claims.fetch_update(Ordering::AcqRel, Ordering::Acquire, left) {
            Ok(_) => {
                opened.next += 1;
                Ok(next)
            }
            Err(claims) if right(claims) => Err(NoPiece::Taken(all - claims as u16)),
            Err(_) => Err(NoPiece::Corrupt),
        }
    }

    /// Receiver: copies from the front with `fetch` (where in the message, how many bytes), then waits for the pieces
    /// of the sender, as long as that is `alive`. False: the sender could not write a piece of it.
    pub(crate) fn receive<E>(
        &self,
        mut opened: Opened,
        mut fetch: impl FnMut(u64, u64) -> Result<(), E>,
        alive: impl FnMut() -> bool,
    ) -> Result<bool, Missing<E>> {
        let length = opened.length;
        let mut copy = |number| {
            let (at, bytes) = part(length, number);
            fetch(at, bytes).map_err(Missing::Failed)
        };
        let mut copied = Ok(());
        // After a failure, too, the pieces are taken: then the sender cannot take them any more.
        let taken = loop {
            match self.front(&mut opened) {
                Ok(number) => copied = copied.and_then(|()| copy(number)),
                Err(NoPiece::Taken(taken)) => break taken,
                Err(NoPiece::Corrupt) => return Err(Missing::Corrupt),
            }
        };
        let done = self.await_pieces(taken, alive)?;
        if done.failed {
            // It takes pieces from the end; the one that it could not write is the last that it took.
            copied = copied.and_then(|()| copy(pieces(length) - taken));
        }
        copied.map(|()| !done.failed)
    }

    /// Waits until the sender has written the pieces that it has taken, or has failed.
    fn await_pieces<E>(&self, taken: u16, mut alive: impl FnMut() -> bool) -> Result<Done, Missing<E>> {
        loop {
            // First: what somebody wrote before the end is there after it.
            let alive = alive();
            let done = self.done();
            match u32::from(done.pieces) + u32::from(done.failed) {
                ended if ended == u32::from(taken) => return Ok(done),
                ended if ended > u32::from(taken) || done.failed => return Err(Missing::Corrupt),
                _ if alive => {}
                _ => return Err(Missing::Gone),
            }
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

    /// Sender: takes a piece and writes it with `write` (address here, address at the receiver, bytes), which says
    /// whether it could. True if there may be more to do. The addresses are what the receiver has said, and may be any;
    /// no more bytes than the message has are written.
    pub(crate) fn give(&self, asked: &mut HelpWanted, write: impl FnOnce(u64, u64, u64) -> bool) -> bool {
        let Some(number) = self.back(asked.copy) else {
            return false;
        };
        let (at, bytes) = part(asked.length, number);
        let ends = (asked.source.checked_add(at), asked.target.checked_add(at));
        let written = match ends {
            (Some(source), Some(target)) if bytes > 0 => write(source, target, bytes),
            _ => false,
        };
        // A desk that is opened again and again without another generation has more pieces than a message.
        asked.pieces = asked.pieces.saturating_add(u16::from(written));
        self.note(asked.pieces, !written);
        written
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
        let mut opened = desk.open(length);
        let first = opened.copy;
        assert_eq!(
            (desk.front(&mut opened), desk.back(first), desk.front(&mut opened)),
            (Ok(0), Some(3), Ok(1))
        );
        desk.note(1, false);
        assert_eq!(desk.back(first), Some(2));
        assert_eq!(
            (desk.back(first), desk.front(&mut opened)),
            (None, Err(NoPiece::Taken(2)))
        );
        let done = |pieces, failed| Done { pieces, failed };
        assert_eq!(desk.done(), done(1, false));
        desk.note(1, true);
        assert_eq!(desk.done(), done(1, true));
        let second = desk.open(length).copy;
        assert_eq!((desk.done(), desk.back(first)), (done(0, false), None));
        assert_eq!(desk.back(second), Some(3));
    }

    /// A message of four pieces, of which the sender has taken one, and these words.
    #[cfg(not(loom))]
    fn received(claims: impl FnOnce(u64) -> u64, done: u64) -> Result<bool, Missing<()>> {
        let desk = Desk::new();
        let opened = desk.open(1 << 20);
        assert_eq!(desk.back(opened.copy), Some(3));
        desk.claims
            .store(claims(desk.claims.load(Ordering::Relaxed)), Ordering::Relaxed);
        desk.done.store(done, Ordering::Relaxed);
        let mut looks = 0;
        desk.receive(
            opened,
            |_, _| Ok(()),
            || {
                looks += 1;
                looks < 10
            },
        )
    }

    #[cfg(not(loom))]
    #[test]
    fn words_that_nobody_writes_are_found_out() {
        let as_it_is = |claims| claims;
        assert_eq!(received(as_it_is, 1), Ok(true));
        assert_eq!(received(as_it_is, FAILED), Ok(false));
        assert_eq!(received(as_it_is, 0), Err(Missing::Gone));
        // More pieces at the end than there are: the difference would be below zero.
        assert_eq!(received(|claims| claims | 0xffff, 0), Err(Missing::Corrupt));
        // One of the receiver's own has been taken already, or is to be taken again; another generation; nothing.
        assert_eq!(received(|claims| claims + (1 << 16), 1), Err(Missing::Corrupt));
        assert_eq!(received(|claims| claims + (1 << 32), 1), Err(Missing::Corrupt));
        assert_eq!(received(|_| 0, 0), Err(Missing::Corrupt));
        assert_eq!(received(|_| u64::MAX, 0), Err(Missing::Corrupt));
        // More pieces are written than were taken, or none could be.
        assert_eq!(received(as_it_is, 2), Err(Missing::Corrupt));
        assert_eq!(received(as_it_is, FAILED | 1), Err(Missing::Corrupt));
        assert_eq!(received(|claims| claims + 1, FAILED), Err(Missing::Corrupt));
    }

    #[cfg(not(loom))]
    #[test]
    fn no_request_makes_a_sender_write_more_than_it_says() {
        let desk = Desk::new();
        let mut asked = HelpWanted {
            slot: 0,
            copy: desk.open(1 << 20).copy,
            source: 100,
            target: 200,
            length: 0,
            pieces: u16::MAX,
        };
        assert!(!desk.give(&mut asked, |_, _, _| panic!("a message without bytes")));
        // Piece 2 of a message of one and a half pieces.
        asked.length = 50_000;
        assert!(!desk.give(&mut asked, |_, _, _| panic!("beyond the message")));
        (asked.length, asked.source) = (1 << 20, u64::MAX);
        assert!(!desk.give(&mut asked, |_, _, _| panic!("beyond the memory")));
        (asked.length, asked.source) = (1 << 20, 100);
        let write = |source, target, bytes| {
            assert_eq!((source, target, bytes), (100, 200, 256 << 10));
            true
        };
        assert!(desk.give(&mut asked, write));
        assert_eq!((asked.pieces, desk.done().pieces), (u16::MAX, u16::MAX));
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
                let number = |at: u64| (at / piece(LENGTH)) as usize;
                // The sender has been asked for both messages; for the first one maybe too late.
                let sender = thread::spawn({
                    let copy = Arc::clone(&copy);
                    move || {
                        for message in 0..2 {
                            let mut asked = HelpWanted {
                                slot: 0,
                                copy: message as u32 + 1,
                                source: 0,
                                target: 0,
                                length: LENGTH,
                                pieces: 0,
                            };
                            let give = |at, _, _| {
                                write(&copy.pieces[message][number(at)], 1);
                                true
                            };
                            while copy.desk.give(&mut asked, give) {}
                        }
                    }
                });
                for message in 0..2 {
                    let opened = copy.desk.open(LENGTH);
                    assert_eq!(opened.copy, message as u32 + 1);
                    let fetch = |at, _| {
                        write(&copy.pieces[message][number(at)], 1);
                        Ok::<(), ()>(())
                    };
                    let awaiting = || {
                        thread::yield_now();
                        true
                    };
                    assert_eq!(copy.desk.receive(opened, fetch, awaiting), Ok(true));
                    for piece in &copy.pieces[message] {
                        assert_eq!(read(piece), 1);
                    }
                }
                sender.join().unwrap();
            });
        }
    }
}
