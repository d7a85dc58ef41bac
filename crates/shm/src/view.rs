// SPDX-License-Identifier: Apache-2.0
//! A slab as its members use it: whose words and cells are where, and how far they are.

use isthmus_datatype::raw::ReadMemory;
use isthmus_transport::slabs::{CellSize, Given, Round, Slab};

use crate::desk::{Arrived, LONG_ROUNDS, Left, MIDDLE_ROUNDS, sign};
use crate::ring::LINE;
use crate::segment::{Segment, SlabStart};
use crate::slabs::{CELL_HEADER, Cells, SHORT_CELL, SHORT_ROUNDS, Stale, WORD_CELL, WORD_HEADER, WORD_ROUNDS};
use crate::sync::{AtomicU64, Ordering, fetch_to_write};

/// Lines that [`SlabView::fetch`] asks for at most: about as many as a core has under way at once.
const MOST_LINES: usize = 16;

/// Where a slab is, and what is where in it: found out once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    start: SlabStart,
    cells: Cells,
}

impl Layout {
    pub(crate) fn of(segment: &Segment, slab: &Slab) -> Self {
        Self {
            start: segment.slab_start(slab.number as usize),
            cells: Cells::of(slab.members as usize),
        }
    }

    /// Whether it is that of a group of so many members.
    #[inline]
    pub(crate) fn is_for(&self, members: u32) -> bool {
        self.cells.members() == members as usize
    }
}

/// The memory of a slab, divided among its members.
#[derive(Clone, Copy)]
pub(crate) struct SlabView<'s> {
    segment: &'s Segment,
    layout: &'s Layout,
}

impl<'s> SlabView<'s> {
    /// `layout`: of a slab of this segment.
    #[inline]
    pub(crate) fn new(segment: &'s Segment, layout: &'s Layout) -> Self {
        Self { segment, layout }
    }

    fn members(&self) -> usize {
        self.layout.cells.members()
    }

    /// As for a new group, whose members have neither noted nor given anything, where this was used.
    pub(crate) fn reset(&self, stale: &Stale) {
        let members = self.members() as u32;
        self.left().iter().for_each(|left| left.reset(stale.middle, stale.long));
        for member in 0..members {
            (0..stale.notes).for_each(|step| self.note(member, step).store(0, Ordering::Relaxed));
        }
        for number in 0..stale.short {
            let size = CellSize::Short;
            let round = unstamped(size, number);
            (0..members).for_each(|cell| self.arrived(round, cell).0.reset());
        }
        for number in 0..stale.words {
            let size = CellSize::Word;
            let round = unstamped(size, number);
            (0..members).for_each(|cell| self.arrived(round, cell).0.reset());
        }
    }

    /// How far the members have left rounds.
    #[inline]
    pub(crate) fn left(&self) -> &'s [Left] {
        let members = self.members();
        let words = self.memory(Cells::LEFT_AT, members * size_of::<Left>());
        // SAFETY: inside the mapping, aligned to a page, only touched as atomics.
        unsafe { std::slice::from_raw_parts(words.cast::<Left>(), members) }
    }

    /// Of which round a cell is there, and the sign of this one.
    #[inline(always)]
    pub(crate) fn arrived(&self, round: Round, cell: u32) -> (&'s Arrived, u64) {
        let rounds = rounds(round.size);
        let arrived = match round.size {
            CellSize::Word | CellSize::Short => self.arrived_at(round.size, self.cell(round, cell).0),
            CellSize::Middle => &self.left()[cell as usize].middle[(round.number % rounds) as usize],
            CellSize::Long => &self.left()[cell as usize].long[(round.number % rounds) as usize],
        };
        (arrived, sign(round))
    }

    /// Of which round the cell of a word or the short one that begins here is there.
    #[inline]
    pub(crate) fn arrived_at(&self, size: CellSize, at: usize) -> &'s Arrived {
        let at = if size == CellSize::Word { at } else { at + 8 };
        let word = self.memory(at, size_of::<Arrived>());
        // SAFETY: inside the mapping, which outlives the transport; aligned to 8, as cells are to 16 or more; only
        // touched as an atomic.
        unsafe { &*word.cast::<Arrived>() }
    }

    /// Where in the slab a cell begins, and how many bytes it and those behind it have.
    #[inline]
    pub(crate) fn cell(&self, round: Round, cell: u32) -> (usize, usize) {
        let cells = &self.layout.cells;
        let (index, rest) = (cell as usize, cells.members() - cell as usize);
        match round.size {
            CellSize::Word => {
                let at = cells.word_at((round.number % WORD_ROUNDS as u64) as usize, index);
                (at, WORD_CELL)
            }
            CellSize::Short => {
                let at = cells.short_at((round.number % SHORT_ROUNDS as u64) as usize, index);
                (at, rest * SHORT_CELL)
            }
            CellSize::Middle => {
                let at = cells.middle_at((round.number % MIDDLE_ROUNDS as u64) as usize, index);
                (at, rest * (cells.middle_bytes() + CELL_HEADER))
            }
            CellSize::Long => {
                let at = cells.long_at((round.number % LONG_ROUNDS as u64) as usize, index);
                (at, rest * (cells.long_bytes() + CELL_HEADER))
            }
        }
    }

    /// Bytes from the cell of a member to that of the next one in the same round.
    #[inline]
    pub(crate) fn apart(&self, size: CellSize) -> usize {
        match size {
            CellSize::Word => WORD_ROUNDS * WORD_CELL,
            CellSize::Short => SHORT_CELL,
            CellSize::Middle => self.layout.cells.middle_bytes() + CELL_HEADER,
            CellSize::Long => self.layout.cells.long_bytes() + CELL_HEADER,
        }
    }

    /// Asks for the cache lines of so many bytes of a cell that begins here, to write them soon; the first of many,
    /// lest what it does meanwhile wait for them.
    #[inline]
    pub(crate) fn fetch(&self, at: usize, bytes: usize) {
        let memory = self.memory(at, LINE);
        fetch_to_write(memory);
        let (mut line, bytes) = (LINE, bytes.min(MOST_LINES * LINE));
        while line < bytes {
            fetch_to_write(memory.wrapping_add(line));
            line += LINE;
        }
    }

    /// Where a member notes what it takes a step for.
    #[inline]
    pub(crate) fn note(&self, member: u32, step: u64) -> &'s AtomicU64 {
        let at = self.layout.cells.note_at(member as usize, step);
        let word = self.memory(at, size_of::<u64>());
        // SAFETY: inside the mapping, aligned to 8, only touched as an atomic.
        unsafe { &*word.cast::<AtomicU64>() }
    }

    /// The word in which a member says how many bytes it gives, in the cell that begins here.
    #[inline]
    pub(crate) fn length(&self, at: usize) -> &'s AtomicU64 {
        let word = self.memory(at, CELL_HEADER);
        // SAFETY: inside the mapping, aligned to 128, only touched as an atomic.
        unsafe { &*word.cast::<AtomicU64>() }
    }

    /// What a member who has arrived has given, up to so many bytes, and how many it said that it gives.
    #[inline]
    pub(crate) fn given(&self, round: Round, cell: u32, bytes: usize) -> (Given<'s>, u64) {
        let (at, room) = self.cell(round, cell);
        let header = header(round.size);
        let bytes = bytes.min(room - header);
        let memory = self.memory(at, header + bytes);
        let said = match round.size {
            CellSize::Word => self.arrived_at(round.size, at).said() as u64,
            _ => self.length(at).load(Ordering::Relaxed) & !MARK,
        };
        // SAFETY: inside the mapping, which is there as long as the transport is borrowed; nobody writes the cell until
        // this member has left the round (rule 6).
        let memory = unsafe { ReadMemory::new(memory.wrapping_add(header), 0, bytes as isize) };
        (Given::new(memory), said)
    }

    /// Bytes of the slab.
    #[inline]
    pub(crate) fn memory(&self, at: usize, bytes: usize) -> *mut u8 {
        self.segment.in_slab(self.layout.start, at, bytes)
    }
}

/// In the word that says how many bytes a member gives: its cell is marked.
pub(crate) const MARK: u64 = 1 << 63;

/// How many rounds take turns in memory.
#[inline]
pub(crate) fn rounds(size: CellSize) -> u64 {
    match size {
        CellSize::Word => WORD_ROUNDS as u64,
        CellSize::Short => SHORT_ROUNDS as u64,
        CellSize::Middle => MIDDLE_ROUNDS as u64,
        CellSize::Long => LONG_ROUNDS as u64,
    }
}

/// Where only its memory matters.
fn unstamped(size: CellSize, number: u64) -> Round {
    let stamp = 0;
    Round { size, number, stamp }
}

/// Bytes of what stands before what a member gives.
#[inline]
pub(crate) fn header(size: CellSize) -> usize {
    match size {
        CellSize::Word => WORD_HEADER,
        _ => CELL_HEADER,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::geometry::Geometry;
    use crate::slabs::NOTES;

    #[test]
    fn every_cell_of_every_round_has_words_of_its_own() {
        let at = tempfile::tempdir().expect("a directory");
        let geometry = Geometry::new(3).expect("few processes");
        let segment = Segment::open(&at.path().join("segment"), "view", 0, geometry).expect("opened");
        let slab = Slab {
            number: 0,
            members: 3,
            me: 1,
        };
        let layout = Layout::of(&segment, &slab);
        let view = SlabView::new(&segment, &layout);
        let sizes = [CellSize::Word, CellSize::Short, CellSize::Middle, CellSize::Long];
        let cells = |_| 0..slab.members;
        let every = || {
            let rounds = sizes
                .iter()
                .flat_map(|&size| (0..rounds(size)).map(move |number| unstamped(size, number)));
            rounds.flat_map(|round| cells(round.size).map(move |cell| (round, cell)))
        };
        let follows = |(round, cell): (Round, u32)| {
            let of = |cell| view.cell(round, cell).0;
            of(cell) == of(0) + cell as usize * view.apart(round.size)
        };
        assert!(every().all(follows));
        view.reset(&Stale::ALL);
        let words: HashSet<usize> = every()
            .map(|(r, c)| std::ptr::from_ref(view.arrived(r, c).0).addr())
            .collect();
        let notes = (0..slab.members).flat_map(|member| (0..NOTES as u64).map(move |step| (member, step)));
        let notes: HashSet<usize> = notes.map(|(m, s)| std::ptr::from_ref(view.note(m, s)).addr()).collect();
        assert_eq!(words.len(), every().count());
        assert_eq!(notes.len(), slab.members as usize * NOTES);
        assert!(words.is_disjoint(&notes));

        // Something comes in every cell, and a new group knows nothing of it.
        every().for_each(|(round, cell)| view.arrived(round, cell).0.one(sign(round)));
        view.note(2, 7).store(1, Ordering::Relaxed);
        assert!(every().all(|(round, cell)| view.arrived(round, cell).0.is_there(sign(round))));
        view.reset(&Stale::ALL);
        assert!(every().all(|(round, cell)| !view.arrived(round, cell).0.is_there(sign(round))));
        assert_eq!(view.note(2, 7).load(Ordering::Relaxed), 0);
    }
}
