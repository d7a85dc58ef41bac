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
use isthmus_transport::meeting::{Lane, Meeting, Place, Round};

use crate::EngineError;
use crate::base::mistake::no_memory;
use crate::groups::Meet;
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
pub(crate) fn tells(core: &Core, what: What, place: &Place) -> bool {
    let shares = || {
        let mut neighbours = core.transports.iter().filter_map(|transport| transport.neighbours());
        neighbours.any(|others| others > 0)
    };
    what == What::Barrier && place.me == 0 && shares()
}

/// Whether what a barrier waits for here has come.
pub(crate) fn may_end(meet: &mut Meet, meeting: &mut dyn Meeting) -> bool {
    if !meet.cut.told || meet.middle == meet.given {
        return false;
    }
    let barrier = Barrier::of(meet);
    let [(number, seen), _] = &mut meet.seen;
    if *number != barrier.round.number {
        (*number, *seen) = (barrier.round.number, 0);
    }
    barrier.has_come(meeting, &meet.place, seen)
}

impl Barrier {
    /// By the numbers of its first rounds.
    #[inline]
    pub(crate) fn new(first: &[u64; Lane::COUNT], tells: bool) -> Self {
        let [round, word] = [Lane::Short, Lane::Word].map(|lane| Round {
            lane,
            number: first[lane as usize],
        });
        Self { round, word, tells }
    }

    /// One that goes on.
    pub(crate) fn of(meet: &Meet) -> Self {
        Self::new(&meet.first, meet.past)
    }

    /// Whether this member tells the end.
    #[inline]
    pub(crate) fn is_told_here(&self) -> bool {
        self.tells
    }

    /// The first member comes, and says that it tells the end. False: it must come again.
    pub(crate) fn arrive(&self, meeting: &mut dyn Meeting, place: &Place) -> Result<bool, EngineError> {
        if !meeting.is_free(place, self.round) {
            return Ok(false);
        }
        meeting.give(place, self.round, place.me, 0).map_err(no_memory)?;
        meeting.mark(place, self.round, place.me);
        meeting.arrive(place, self.round, place.me..place.me + 1);
        Ok(true)
    }

    /// Whether what this member waits for has come. `seen`: members whose cells are known to be there.
    pub(crate) fn has_come(&self, meeting: &mut dyn Meeting, place: &Place, seen: &mut u32) -> bool {
        let first_came = |meeting: &dyn Meeting| meeting.have_arrived(place, self.round, 0..1) == 1;
        if place.me > 0 && first_came(meeting) && meeting.is_marked(place, self.round, 0) {
            return meeting.have_arrived(place, self.word, 0..1) == 1;
        }
        *seen += meeting.have_arrived(place, self.round, *seen..place.members);
        *seen == place.members && (!self.tells || meeting.is_free(place, self.word))
    }

    /// After that: leaves the round of words, and the first member tells the others. False: this process must leave
    /// rounds long before it first.
    pub(crate) fn end(&self, meeting: &mut dyn Meeting, place: &Place) -> bool {
        match self.tells {
            true => meeting.give_at_once(place, self.word, 0, None, 0, true),
            false => meeting.leave_some(place, self.word, 1) == 1,
        }
    }
}
