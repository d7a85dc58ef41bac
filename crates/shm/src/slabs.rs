// SPDX-License-Identifier: Apache-2.0
//! Memory in the segment in which groups meet: where things are in it.
//!
//! ```text
//!  offset                       content of a slab
//!  0           4096 bytes       members that use it | what of it was used | who sleeps
//!  4096                         of each member 384 bytes: how far it has left rounds,
//!                                                        which of its middle and long cells are there
//!                               what each member took its last steps for, 512 bytes each
//!                               cells of rounds of words, one each
//!                               cells of short rounds: round 0 member 0, round 0 member 1, ...
//!  (next multiple of 4096)      cells of middle rounds
//!  (next multiple of 4096)      cells of long rounds
//! ```
//! A cell is 8 bytes that say how many bytes its member gives (the highest bit: it is marked), 8 bytes (of a short
//! cell: of which round it is there), and what it gives. Of a cell of a word both are in one word of 8 bytes. All
//! before the middle cells has memory from the beginning (slab 0) or from when the slab is taken; memory behind a
//! middle or long cell is allocated when it is first used.

use isthmus_transport::slabs::{CellSize, Used};

use crate::desk::{LONG_ROUNDS, Left, MIDDLE_ROUNDS, Sleepers};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Most slabs of a segment. Slab 0 is that of all processes of the node together.
pub(crate) const SLABS: usize = 64;
/// Short rounds under way: at most 64 (`Turns`).
pub(crate) const SHORT_ROUNDS: usize = 64;
/// Rounds of words under way: at most 64 (`Turns`).
pub(crate) const WORD_ROUNDS: usize = 64;
/// Bytes of a cell of a word. With four in a line of 64 bytes a root that broadcasts in a loop between processors that
/// share no cache takes 0.11 us for each, with 128 bytes, as short cells have, 0.20 us: what takes the time is that
/// lines go back and forth.
pub(crate) const WORD_CELL: usize = 16;
/// What stands before the word.
pub(crate) const WORD_HEADER: usize = 8;
/// Bytes of a short cell.
pub(crate) const SHORT_CELL: usize = 128;
/// Steps of a member that are noted. One that waits for nobody (the root of broadcasts) is as many steps ahead as there
/// are rounds in all lanes, and its note of a step must last as long as another member may be there.
pub(crate) const NOTES: usize = 256;
/// What stands before what a member gives.
pub(crate) const CELL_HEADER: usize = 16;
const PAGE: usize = 4096;

/// Bit s: slab s is somebody's. One look says that none is free: each slab begins in a page of its own.
#[repr(transparent)]
pub(crate) struct InUse(AtomicU64);

impl InUse {
    /// One of so many slabs that nobody has is this process's from now on. Slab 0 is always everybody's.
    pub(crate) fn take(&self, slabs: usize) -> Option<usize> {
        loop {
            let number = (self.0.load(Ordering::Relaxed) | 1).trailing_ones() as usize;
            if number >= slabs {
                return None;
            }
            if self.0.fetch_or(1 << number, Ordering::Acquire) >> number & 1 == 0 {
                return Some(number);
            }
        }
    }

    /// Nobody has it any more.
    pub(crate) fn free(&self, number: usize) {
        self.0.fetch_and(!(1 << number), Ordering::Release);
    }
}

/// Users of a slab that is being made ready.
const BEING_TAKEN: u32 = u32::MAX;

/// The beginning of a slab.
#[repr(C)]
pub(crate) struct SlabHeader {
    /// Members that use it; 0: free.
    users: AtomicU32,
    /// Members of the group that it was last made ready for.
    ready_for: AtomicU32,
    /// Bytes at its start that have memory, in pages.
    backed: AtomicU32,
    /// What the group has used since, at most: steps, and rounds of each size.
    used: [AtomicU32; 1 + CellSize::COUNT],
    pub(crate) sleepers: Sleepers,
}

/// What is to be made ready for a new group: so many notes, cells of words and short rounds; of longer rounds, whether
/// there were any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stale {
    pub(crate) notes: u64,
    pub(crate) words: u64,
    pub(crate) short: u64,
    pub(crate) middle: bool,
    pub(crate) long: bool,
}

impl Stale {
    /// Everything.
    pub(crate) const ALL: Self = Self {
        notes: NOTES as u64,
        words: WORD_ROUNDS as u64,
        short: SHORT_ROUNDS as u64,
        middle: true,
        long: true,
    };
}

const _: () = assert!(WORD_ROUNDS + SHORT_ROUNDS + MIDDLE_ROUNDS + LONG_ROUNDS < NOTES);
const _: () = assert!(
    size_of::<SlabHeader>() <= PAGE
        && SHORT_ROUNDS <= 64
        && MIDDLE_ROUNDS <= 64
        && WORD_ROUNDS <= 64
        && LONG_ROUNDS <= 64
);

impl SlabHeader {
    /// Takes the slab if it is free.
    pub(crate) fn take(&self) -> bool {
        if self.users.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let taken = self
            .users
            .compare_exchange(0, BEING_TAKEN, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// After `take`: what must be made ready for a group of so many members, where it has been used.
    pub(crate) fn stale(&self, members: u32) -> Stale {
        if self.ready_for.load(Ordering::Relaxed) != members {
            return Stale::ALL;
        }
        let used = |at: usize| u64::from(self.used[at].load(Ordering::Relaxed));
        let rounds = |size: CellSize| used(1 + size as usize);
        Stale {
            notes: used(0).min(Stale::ALL.notes),
            words: rounds(CellSize::Word).min(Stale::ALL.words),
            short: rounds(CellSize::Short).min(Stale::ALL.short),
            middle: rounds(CellSize::Middle) > 0,
            long: rounds(CellSize::Long) > 0,
        }
    }

    /// After `take`: whether so many bytes at its start are known to have memory, which it keeps.
    pub(crate) fn is_backed(&self, bytes: usize) -> bool {
        self.backed.load(Ordering::Relaxed) as usize * PAGE >= bytes
    }

    /// After `take`: they have.
    pub(crate) fn was_backed(&self, bytes: usize) {
        self.backed.store((bytes / PAGE) as u32, Ordering::Relaxed);
    }

    /// After `take`, when all else is as for a new group: it has so many members.
    pub(crate) fn open(&self, members: u32) {
        self.sleepers.reset();
        self.ready_for.store(members, Ordering::Relaxed);
        self.used.iter().for_each(|used| used.store(0, Ordering::Relaxed));
        self.users.store(members, Ordering::Release);
    }

    /// After `take`: nobody uses it after all.
    pub(crate) fn close(&self) {
        self.users.store(0, Ordering::Release);
    }

    /// A member uses it no longer, of which it has used so much. True: it is free.
    pub(crate) fn give_back(&self, used: &Used) -> bool {
        let all = std::iter::once(used.steps).chain(used.rounds);
        for (word, used) in self.used.iter().zip(all) {
            let used = used.min(u64::from(u32::MAX)) as u32;
            if word.load(Ordering::Relaxed) < used {
                word.fetch_max(used, Ordering::Relaxed);
            }
        }
        self.users.fetch_sub(1, Ordering::Release) == 1
    }
}

/// Sizes and places that follow from the number of members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    members: usize,
    /// Bytes of a cell with what stands before its data.
    middle: usize,
    long: usize,
    /// Where the notes begin, and cells of each size.
    notes: usize,
    words: usize,
    short: usize,
    middle_start: usize,
    long_start: usize,
}

impl Cells {
    pub(crate) fn of(members: usize) -> Self {
        // More than powers of two: such messages fit, and cells do not all fall on the same lines of caches. The middle
        // cells of a slab have about 2 MiB at most; among many members they hold no more than short ones, and are not
        // used.
        let (middle, long) = match members {
            0..=16 => (4 << 10, 64 << 10),
            17..=64 => (1 << 10, 16 << 10),
            _ => (0, 4 << 10),
        };
        let (middle, long) = (middle + SHORT_CELL, long + PAGE);
        let notes = Self::LEFT_AT + members * size_of::<Left>();
        let words = notes + members * NOTES * size_of::<u64>();
        let short = words + members * WORD_ROUNDS * WORD_CELL;
        let middle_start = (short + SHORT_ROUNDS * members * SHORT_CELL).next_multiple_of(PAGE);
        Self {
            members,
            middle,
            long,
            notes,
            words,
            short,
            middle_start,
            long_start: (middle_start + MIDDLE_ROUNDS * members * middle).next_multiple_of(PAGE),
        }
    }

    /// Of how many members.
    #[inline]
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// Bytes of what a member can give in a short round.
    pub(crate) const SHORT_BYTES: usize = SHORT_CELL - CELL_HEADER;

    /// Bytes of what a member can give in a middle round.
    #[inline]
    pub(crate) fn middle_bytes(&self) -> usize {
        self.middle - CELL_HEADER
    }

    /// Bytes of what a member can give in a long round.
    #[inline]
    pub(crate) fn long_bytes(&self) -> usize {
        self.long - CELL_HEADER
    }

    /// Where in the slab it is said how far members have left rounds.
    pub(crate) const LEFT_AT: usize = PAGE;

    /// Where in the slab a member notes a step.
    #[inline]
    pub(crate) fn note_at(&self, member: usize, step: u64) -> usize {
        self.notes + (member * NOTES + (step % NOTES as u64) as usize) * size_of::<u64>()
    }

    /// Where in the slab a cell of a word begins.
    #[inline]
    pub(crate) fn word_at(&self, round: usize, cell: usize) -> usize {
        self.words + (cell * WORD_ROUNDS + round) * WORD_CELL
    }

    /// Where in the slab a short cell begins.
    #[inline]
    pub(crate) fn short_at(&self, round: usize, cell: usize) -> usize {
        self.short + (round * self.members + cell) * SHORT_CELL
    }

    /// Where in the slab a middle cell begins.
    #[inline]
    pub(crate) fn middle_at(&self, round: usize, cell: usize) -> usize {
        self.middle_start + (round * self.members + cell) * self.middle
    }

    /// Where in the slab a long cell begins.
    #[inline]
    pub(crate) fn long_at(&self, round: usize, cell: usize) -> usize {
        self.long_start + (round * self.members + cell) * self.long
    }

    /// Bytes at the start of a slab that have memory from the beginning; behind them the middle cells begin.
    pub(crate) fn middle_start(&self) -> usize {
        self.middle_start
    }

    /// Bytes that a slab must have for all groups of up to so many members.
    pub(crate) fn most_bytes(members: usize) -> usize {
        let sizes = [16, 64, members].map(|n| Self::of(n.min(members)).slab_bytes());
        sizes.into_iter().max().unwrap_or(0)
    }

    /// Bytes of the whole slab.
    pub(crate) fn slab_bytes(&self) -> usize {
        self.long_at(LONG_ROUNDS, 0).next_multiple_of(PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_slab_follow_each_other() {
        for members in [1, 2, 3, 16, 17, 64, 65, 1024] {
            let cells = Cells::of(members);
            assert!(cells.note_at(0, 0) >= size_of::<SlabHeader>());
            assert!(cells.note_at(members - 1, NOTES as u64 - 1) < cells.word_at(0, 0));
            assert!(cells.word_at(0, 0) % WORD_CELL == 0);
            assert!(cells.word_at(WORD_ROUNDS - 1, members - 1) + WORD_CELL <= cells.short_at(0, 0));
            assert_eq!(cells.short_at(0, 0) % SHORT_CELL, 0);
            assert!(cells.short_at(SHORT_ROUNDS - 1, members - 1) + SHORT_CELL <= cells.middle_at(0, 0));
            let last = cells.middle_at(MIDDLE_ROUNDS - 1, members - 1) + CELL_HEADER + cells.middle_bytes();
            assert!(last <= cells.long_at(0, 0));
            assert!(members > 64 || last - cells.middle_at(0, 0) < 5 << 19);
            assert_eq!(cells.middle_at(1, 1) % SHORT_CELL, 0);
            assert!(cells.long_at(LONG_ROUNDS - 1, members - 1) + cells.long_bytes() < cells.slab_bytes());
            assert_eq!(cells.long_at(0, 1) % PAGE, 0);
        }
    }

    #[test]
    fn a_small_group_fits_where_a_large_one_does() {
        for most in [1, 2, 16, 17, 64, 65, 100, 1024] {
            let bytes = Cells::most_bytes(most);
            assert!((1..=most).all(|n| Cells::of(n).slab_bytes() <= bytes), "{most}");
        }
        assert!(Cells::most_bytes(1024) <= 80 << 20);
    }
}
