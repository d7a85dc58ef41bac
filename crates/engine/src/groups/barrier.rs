// SPDX-License-Identifier: Apache-2.0
//! Barriers whose end the first member tells.
//!
//! Everybody who sees that all have come may go on. Where processes share processors, that is often the last one to
//! come alone: the others have to be run again, and it waits for them in the next operation, whose root is mostly the
//! first member. So there the first member waits for all, and tells the others in a round of words. Whoever goes on
//! after it finds what it has given meanwhile.
//!
//! That is one transfer of a cache line more, so the first member decides it, and says so by the mark of its cell. The
//! round of words is taken in any case.

use isthmus_schedule::Operation as What;
use isthmus_transport::meeting::{CellSize, Meeting, Round, Slab};

use crate::EngineError;
use crate::base::mistake::no_memory;
use crate::groups::CellCollective;
use crate::p2p::Core;

/// A barrier as one of its members sees it.
#[derive(Clone, Copy)]
pub(crate) struct Barrier {
    /// In which everybody arrives.
    round: Round,
    /// In which the first member tells that all have come.
    word: Round,
    /// Whether it does; only that member knows before its cell is there.
    tells: bool,
}

/// Whether this member tells the end of an operation.
#[inline]
pub(crate) fn tells(core: &Core, what: What, slab: &Slab) -> bool {
    let shares = || {
        let mut neighbours = core.transports.iter().filter_map(|transport| transport.neighbours());
        neighbours.any(|others| others > 0)
    };
    what == What::Barrier && slab.me == 0 && shares()
}

/// Whether what a barrier waits for here has come.
pub(crate) fn may_end(meet: &mut CellCollective, meeting: &mut dyn Meeting) -> bool {
    if !meet.cut.told || meet.middle == meet.given {
        return false;
    }
    let barrier = Barrier::of(meet);
    let [(number, seen), _] = &mut meet.seen;
    if *number != barrier.round.number {
        (*number, *seen) = (barrier.round.number, 0);
    }
    barrier.has_come(meeting, &meet.slab, seen)
}

impl Barrier {
    /// By the numbers of its first rounds.
    #[inline]
    pub(crate) fn new(first: &[u64; CellSize::COUNT], tells: bool) -> Self {
        let [round, word] = [CellSize::Short, CellSize::Word].map(|size| Round {
            size,
            number: first[size as usize],
        });
        Self { round, word, tells }
    }

    /// One that goes on.
    pub(crate) fn of(meet: &CellCollective) -> Self {
        Self::new(&meet.first, meet.past)
    }

    /// Whether this member tells the end.
    #[inline]
    pub(crate) fn is_told_here(&self) -> bool {
        self.tells
    }

    /// The first member comes, and says that it tells the end. False: it must come again.
    pub(crate) fn arrive(&self, meeting: &mut dyn Meeting, slab: &Slab) -> Result<bool, EngineError> {
        if !meeting.is_free(slab, self.round) {
            return Ok(false);
        }
        meeting.give(slab, self.round, slab.me, 0).map_err(no_memory)?;
        meeting.mark(slab, self.round, slab.me);
        meeting.arrive(slab, self.round, slab.me..slab.me + 1);
        Ok(true)
    }

    /// Whether what this member waits for has come. `seen`: members whose cells are known to be there.
    pub(crate) fn has_come(&self, meeting: &mut dyn Meeting, slab: &Slab, seen: &mut u32) -> bool {
        let first_came = |meeting: &dyn Meeting| meeting.have_arrived(slab, self.round, 0..1) == 1;
        if slab.me > 0 && first_came(meeting) && meeting.is_marked(slab, self.round, 0) {
            return meeting.have_arrived(slab, self.word, 0..1) == 1;
        }
        *seen += meeting.have_arrived(slab, self.round, *seen..slab.members);
        *seen == slab.members && (!self.tells || meeting.is_free(slab, self.word))
    }

    /// After that: leaves the round of words, and the first member tells the others. False: this process must leave
    /// rounds long before it first.
    pub(crate) fn end(&self, meeting: &mut dyn Meeting, slab: &Slab) -> bool {
        match self.tells {
            true => meeting.give_at_once(slab, self.word, 0, None, 0, true),
            false => meeting.leave_some(slab, self.word, 1) == 1,
        }
    }
}
