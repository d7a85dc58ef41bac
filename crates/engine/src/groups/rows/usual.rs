// SPDX-License-Identifier: Apache-2.0
//! What most operations of blocks that may differ in length are: each block that a member gives or takes is so short
//! that it has a short cell for itself, and lies in one piece where the arguments of the call say. Whatever is not as
//! usual is left to [`Rows::advance`], which goes on where this stops.

use isthmus_datatype::raw::ReadMemory;
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Part, SharedSlabs, Slab};

use super::Rows;
use super::slots::Slots;
use crate::EngineError;
use crate::groups::data::{Data, Side};

impl Slots {
    /// Whether blocks of up to so many bytes each have a short cell for themselves.
    #[inline]
    fn are_alone(&self, longest: u64) -> bool {
        self.count() == 1 && longest <= self.short_block() as u64
    }
}

impl<D: Data> Rows<D> {
    /// Whether it is one; then what it gives is in one short round.
    #[inline]
    pub(super) fn is_usual(&self) -> bool {
        self.data.longest().is_some_and(|longest| self.slots.are_alone(longest))
    }

    /// Does what is usual, looking for the others as often as `pause` allows. False: that has said no.
    #[inline]
    pub(crate) fn begin(
        &mut self,
        slabs: &mut dyn SharedSlabs,
        slab: &Slab,
        pause: &mut impl FnMut() -> bool,
    ) -> Result<bool, EngineError> {
        if !self.is_usual() || self.gives[0] && !self.give_all(slabs, slab) {
            return Ok(true);
        }
        let keeps_own = self.step.what == What::Allgatherv && !self.step.in_place;
        if std::mem::take(&mut self.keeps) || keeps_own {
            self.copy_own(slab);
        }
        let (first, end) = self.givers(slab);
        self.next = first;
        while self.next < end {
            let length = self.taken(slab, self.next);
            if length > 0 && !(keeps_own && self.next == slab.me) {
                let said = loop {
                    match self.take_next(slabs, slab, length)? {
                        Some(said) => break said,
                        None if pause() => {}
                        None => return Ok(false),
                    }
                };
                if said != length {
                    // It is elsewhere, or as long as it must not be.
                    return Ok(true);
                }
            } else {
                self.unaware |= self.step.is_apart() && self.next != slab.me;
            }
            self.next += 1;
        }
        self.next = slab.members;
        self.leave(slabs, slab);
        Ok(true)
    }

    /// Takes the next member's block, if that has come and has this length. How long it is; `None`: it has not come.
    #[inline]
    fn take_next(&self, slabs: &dyn SharedSlabs, slab: &Slab, length: u64) -> Result<Option<u64>, EngineError> {
        let (round, bytes, (cell, _)) = (self.rounds[0], length as usize, self.cell(slab, self.next));
        let block = if self.step.what == What::Scatterv {
            slab.me
        } else {
            self.next
        };
        if self.data.computes().is_none() {
            if let Some(mut place) = self.data.place(block, length) {
                let part = Part {
                    from: 0,
                    length: bytes,
                    into: &mut place,
                    at: 0,
                };
                return Ok(slabs.take_at_once(slab, round, cell, bytes, part));
            }
        }
        if slabs.have_arrived(slab, round, cell..cell + 1) == 0 {
            return Ok(None);
        }
        let (memory, said) = slabs.given(slab, round, cell, self.slots.short());
        if said == length {
            self.take(slab, &memory.part(0, bytes), length)?;
        }
        Ok(Some(said))
    }

    /// Members of which it takes something.
    #[inline]
    fn givers(&self, slab: &Slab) -> (u32, u32) {
        let root = self.step.root;
        match self.step.what {
            What::Gatherv if slab.me != root => (slab.members, slab.members),
            What::Scatterv if slab.me == root => (slab.members, slab.members),
            What::Scatterv => (root, root + 1),
            _ => (0, slab.members),
        }
    }

    /// Gives all that it gives, if that is possible now.
    #[inline]
    fn give_all(&mut self, slabs: &mut dyn SharedSlabs, slab: &Slab) -> bool {
        let round = self.rounds[0];
        let whole = |side, block| {
            let length = self.data.length(side, block);
            let memory = self.data.whole(side, block, length)?;
            Some((memory, length as usize))
        };
        match self.step.what {
            What::Scatterv => {
                // As the arguments say: in one piece.
                let mut block = |to| whole(Side::Send, to).map_or(ReadMemory::EMPTY, |(memory, _)| memory);
                if !slabs.give_each_at_once(slab, round, &mut block) {
                    return false;
                }
                self.left[0] = true;
            }
            what => {
                let to = match what {
                    // Of two members.
                    What::Alltoallv | What::Alltoallw => slab.members - 1 - slab.me,
                    _ => 0,
                };
                let (side, block) = self.source(slab, to);
                let Some((memory, bytes)) = whole(side, block) else {
                    return false;
                };
                let leaves = what == What::Gatherv;
                if !slabs.give_at_once(slab, round, slab.me, Some(&memory), bytes, leaves) {
                    return false;
                }
                self.left[0] = leaves;
            }
        }
        self.gives[0] = false;
        true
    }
}
