// SPDX-License-Identifier: Apache-2.0
//! What a process knows of the slabs in which groups meet.

use std::cell::OnceCell;

use isthmus_transport::slabs::{CellSize, Round, Slab};
use rustix::io::Errno;

use crate::desk::{LONG_ROUNDS, MIDDLE_ROUNDS, Turns};
use crate::segment::Segment;
use crate::slabs::{Cells, SLABS, SlabHeader};
use crate::view::{Layout, SlabView};

/// Long cells whose memory is remembered.
const REMEMBERED: usize = 4 * LONG_ROUNDS;

const _: () = assert!(MIDDLE_ROUNDS <= 32 && SLABS <= 64);

/// What this process knows of the slabs.
pub(crate) struct Slabs {
    /// Slabs where this process is among those that sleep.
    watched: Vec<usize>,
    /// Per slab and size, how far rounds are.
    turns: Vec<[Turns; CellSize::COUNT]>,
    /// Slabs whose header is known to have memory, which it keeps: a bit for each.
    headers: u64,
    /// Per slab, what is known of middle cells.
    middle: [MiddleCells; SLABS],
    /// Long cells that are known to have memory; only some of them, the last used.
    long: Vec<LongCell>,
}

/// Which middle cells of a slab are known to have memory, which they keep: a bit for each round.
#[derive(Clone, Copy, Debug, Default)]
struct MiddleCells {
    /// For which groups they lie there: members, and which of them this process is.
    group: (u32, u32),
    /// Those of the first member.
    first: u32,
    /// Those of this one.
    own: u32,
    /// All others.
    others: u32,
}

/// A long cell that has memory, which it keeps.
struct LongCell {
    slab: u32,
    /// Of the group for which it lies there.
    members: u32,
    /// Which of the rounds that take turns.
    round: usize,
    cell: u32,
    /// Bytes from its start.
    bytes: usize,
}

/// Per slab, what is where in it: as its group uses it.
pub(crate) struct Layouts([OnceCell<Layout>; SLABS]);

impl Default for Layouts {
    fn default() -> Self {
        Self(std::array::from_fn(|_| OnceCell::new()))
    }
}

impl Layouts {
    /// The memory of a slab of the segment. By reference: a copy would cost more than all else here.
    #[inline]
    pub(crate) fn view<'s>(&'s self, segment: &'s Segment, slab: &Slab) -> SlabView<'s> {
        let layout = self.0[slab.number as usize].get_or_init(|| Layout::of(segment, slab));
        assert!(layout.is_for(slab.members), "a slab of another group");
        SlabView::new(segment, layout)
    }

    /// A new group has this slab.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(layout) = self.0.get_mut(number as usize) {
            layout.take();
        }
    }
}

impl Default for Slabs {
    fn default() -> Self {
        Self {
            watched: Vec::new(),
            turns: Vec::new(),
            headers: 0,
            middle: [MiddleCells::default(); SLABS],
            long: Vec::new(),
        }
    }
}

impl Slabs {
    /// How far the rounds of a size are.
    #[inline]
    pub(crate) fn turns(&mut self, slab: &Slab, size: CellSize) -> &mut Turns {
        let index = slab.number as usize;
        if self.turns.len() <= index {
            self.turns.resize(index + 1, [Turns::default(); CellSize::COUNT]);
        }
        &mut self.turns[index][size as usize]
    }

    /// A new group has this slab: what has memory in it has.
    pub(crate) fn forget(&mut self, number: u32) {
        if let Some(turns) = self.turns.get_mut(number as usize) {
            *turns = [Turns::default(); CellSize::COUNT];
        }
    }

    /// Makes sure that the header of a slab has memory. Whoever looks for a free one among many that are in use does
    /// not ask the system for each of them.
    pub(crate) fn back_header(&mut self, segment: &Segment, number: usize) -> Result<(), Errno> {
        if self.headers >> number & 1 == 0 {
            segment.back_slab(number, 0, size_of::<SlabHeader>())?;
            self.headers |= 1 << number;
        }
        Ok(())
    }

    /// Makes sure that a middle cell has memory. (All cells of a slab would be up to 2 MiB, and a root that broadcasts
    /// needs the first of each round.)
    #[inline]
    pub(crate) fn back_middle(&mut self, segment: &Segment, slab: &Slab, round: Round, cell: u32) -> Result<(), Errno> {
        let at = (round.number % MIDDLE_ROUNDS as u64) as usize;
        let (known, group) = (&mut self.middle[slab.number as usize], (slab.members, slab.me));
        if known.group != group {
            *known = MiddleCells {
                group,
                ..MiddleCells::default()
            };
        }
        let (bits, from, count) = match cell {
            0 => (&mut known.first, 0, 1),
            _ if cell == slab.me => (&mut known.own, cell as usize, 1),
            _ => (&mut known.others, 0, slab.members as usize),
        };
        if *bits >> at & 1 != 0 {
            return Ok(());
        }
        let cells = Cells::of(slab.members as usize);
        let (start, end) = (cells.middle_at(at, from), cells.middle_at(at, from + count));
        segment.back_slab(slab.number as usize, start, end - start)?;
        *bits |= 1 << at;
        Ok(())
    }

    /// Makes sure that the first bytes of a long cell have memory.
    pub(crate) fn back_long(
        &mut self,
        segment: &Segment,
        slab: &Slab,
        round: Round,
        cell: u32,
        bytes: usize,
    ) -> Result<(), Errno> {
        let (number, members) = (slab.number, slab.members);
        let round = (round.number % LONG_ROUNDS as u64) as usize;
        let is_it =
            |long: &LongCell| (long.slab, long.members, long.round, long.cell) == (number, members, round, cell);
        let known = self.long.iter().position(is_it);
        if known.is_some_and(|i| self.long[i].bytes >= bytes) {
            return Ok(());
        }
        let at = Cells::of(members as usize).long_at(round, cell as usize);
        segment.back_slab(number as usize, at, bytes)?;
        match known {
            Some(i) => self.long[i].bytes = bytes,
            None => {
                self.long.truncate(REMEMBERED - 1);
                self.long.insert(
                    0,
                    LongCell {
                        slab: number,
                        members,
                        round,
                        cell,
                        bytes,
                    },
                );
            }
        }
        Ok(())
    }

    /// The process in `slot`, which is this one, is to be woken by what happens in a slab.
    pub(crate) fn watch(&mut self, segment: &Segment, slot: usize, number: usize) {
        if !self.watched.contains(&number) {
            self.watched.push(number);
            segment.slab(number).sleepers.add(slot);
        }
    }

    /// Awake again: it sleeps nowhere.
    pub(crate) fn unwatch(&mut self, segment: &Segment, slot: usize) {
        while let Some(number) = self.watched.pop() {
            segment.slab(number).sleepers.remove(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::geometry::Geometry;

    #[test]
    fn a_process_sleeps_in_a_slab_once_and_nowhere_when_it_is_awake() {
        let at = tempfile::tempdir().expect("a directory");
        let geometry = Geometry::new(2).expect("few processes");
        let segment = Segment::open(&at.path().join("segment"), "known", 0, geometry).expect("opened");
        let asleep = || {
            let mut slots = Vec::new();
            segment.slab(0).sleepers.each(2, |slot| slots.push(slot));
            slots
        };
        let mut slabs = Slabs::default();
        slabs.watch(&segment, 1, 0);
        slabs.watch(&segment, 1, 0);
        assert_eq!((asleep(), slabs.watched.len()), (vec![1], 1));
        slabs.unwatch(&segment, 1);
        assert_eq!((asleep(), slabs.watched.len()), (vec![], 0));
    }

    #[test]
    fn of_a_slab_what_has_memory_is_known_for_groups_of_one_size() {
        let at = tempfile::tempdir().expect("a directory");
        let geometry = Geometry::new(3).expect("few processes");
        let segment = Segment::open(&at.path().join("segment"), "known", 0, geometry).expect("opened");
        let slab = |number, members| Slab { number, members, me: 1 };
        let mut slabs = Slabs::default();
        let back = |slabs: &mut Slabs, slab: Slab, number| {
            let round = |size| Round { size, number, stamp: 0 };
            slabs
                .back_middle(&segment, &slab, round(CellSize::Middle), 1)
                .expect("memory");
            slabs
                .back_long(&segment, &slab, round(CellSize::Long), 0, 100)
                .expect("memory");
            slabs.turns(&slab, CellSize::Short);
        };
        back(&mut slabs, slab(3, 2), 0);
        back(&mut slabs, slab(4, 2), 0);
        slabs.forget(3);
        slabs.forget(4);
        // The next group of the first is as large, that of the second is not: its cells lie elsewhere.
        back(&mut slabs, slab(3, 2), 1);
        back(&mut slabs, slab(4, 3), 1);
        assert_eq!([slabs.middle[3].own, slabs.middle[4].own], [0b11, 0b10]);
        let of = |members| slabs.long.iter().filter(|long| long.members == members).count();
        assert_eq!([of(2), of(3)], [3, 1]);
    }
}
