// SPDX-License-Identifier: Apache-2.0
//! Steps together whose blocks are so long that members may copy them straight out of each other's memory, once, where
//! cells take two copies, side by side. Which is quicker depends on what caches the cores share and on how many members
//! a core has, so one of them, the *decider* (the root, else the first), tries it out ([`isthmus_protocol::ways`]) and
//! tells the others, in a short round of offers; in another one they say what became of it.
//!
//! ```text
//!  offers      who gives, and the decider          cell: see `offers.rs`
//!  outcomes    who takes, when it has its blocks   cell: one byte, 1 if it could not copy them
//! ```
//! When the outcomes are known the memory is its owner's again: whoever gave waits for those who took of it. Not every
//! system lets processes copy from each other, nor from every kind of memory: where one could not, the step goes
//! through cells after all. The numbers of the long rounds for that were taken when the step began. If nobody needs
//! them, all leave them.
//!
//! In a gather the root offers memory for the result, and the others write their blocks there, all at once, while the
//! root copies its own. The root alone waits, for all outcomes; only blocks that could not be written go through cells.
//! That memory is the user's: what the library has in between, in operations over several machines, is filled through
//! cells, since nobody has promised to leave it alone until the others have written ([`isthmus_transport::slabs`]).

use isthmus_protocol::ways::{Delivery, Turn};
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Round, SharedSlabs, Slab};

use crate::EngineError;
use crate::base::binding::Sides;
use crate::groups::offers::{self, has_offered};
use crate::groups::tuning::{self, Sample, Tuning};
use crate::groups::{CellCollective, Phase, Pulling, copied_reductions};

/// Bytes that a member copies before it looks at anything else. (A look at which others get the core in between costs
/// 16 members on two cores as much as a block of 16 KiB.)
const AT_ONCE: u64 = 1 << 20;

/// Members among which, and all blocks of one of them, in bytes, up to which cells are worth a try: a piece for each of
/// many members is short, and long blocks leave the caches. (Alltoall through cells / copied, 4 members, us: cores that
/// share a cache, 64 KiB 38 / 56, 1 MiB 1140 / 1240; others, 64 KiB 170 / 59, 1 MiB 3300 / 870; 8 members, 64 KiB: 180
/// / 250, and 760 / 260.)
const FEW: u32 = 8;
const CELLS: u64 = 1 << 20;

/// What the decider wants in a step whose blocks have so many bytes and go through so many rounds of cells; and what it
/// is timed for.
pub(crate) fn turn(
    tuning: &mut Tuning,
    what: What,
    members: u32,
    (block, pieces): (u64, u64),
    sides: &Sides,
    blocking: bool,
) -> (Turn, Option<Sample>) {
    let untimed = |way| (Turn { way, timed: false }, None);
    let all = block.saturating_mul(u64::from(members));
    let (is_long, is_overlap) = (all > CELLS, offers::is_in_place(&sides.give, &sides.take));
    let (turn, sample) = match what {
        _ if !offers::in_one_piece(sides) => untimed(Delivery::Stream),
        _ if is_overlap && offers::replaces_what_is_given(what) => untimed(Delivery::Stream),
        What::Gather if !offers::may_be_written(&sides.take) => untimed(Delivery::Stream),
        What::Alltoall if members > FEW || is_long => untimed(Delivery::Pull),
        What::Scatter | What::Gather | What::Allgather | What::ReduceScatterBlock | What::Reduce if is_long => {
            untimed(Delivery::Pull)
        }
        // What takes as long as the program computes says nothing about ways, and its root waits for nobody meanwhile.
        _ if !blocking => tuning.usual_way(block),
        What::Bcast | What::Scatter => tuning.way_in_bursts(block, tuning::burst(pieces)),
        _ => tuning.way(block),
    };
    // A root that takes from all is the last at the end.
    let timed = turn.timed && !matches!(what, What::Gather | What::Reduce);
    (Turn { timed, ..turn }, sample)
}

/// Who decides how blocks go and how results are stored: the root, which all wait for or which has the result, else the
/// first.
pub(crate) fn decider(what: What, root: u32) -> u32 {
    match what {
        What::Bcast | What::Scatter | What::Gather | What::Reduce => root,
        _ => 0,
    }
}

impl Pulling {
    /// `offers`: the first short round; `turn`: what the decider, if that is this member, wants.
    pub(crate) fn new(what: What, slab: &Slab, root: u32, offers: Round, turn: Option<Turn>) -> Self {
        let Slab { members, me, .. } = *slab;
        // Everybody begins with another one.
        let every = |from: u32| (from..members).rev().map(|step| (me + step) % members).collect();
        let missing = match what {
            What::Bcast if me == root => Vec::new(),
            What::Scatter if me == root => vec![me],
            What::Bcast | What::Scatter => vec![root],
            What::Reduce if me != root => Vec::new(),
            What::Gather if me == root => vec![me],
            What::Gather => vec![root],
            What::Reduce | What::ReduceScatterBlock => every(1),
            _ => every(0),
        };
        let heard = match what {
            What::Reduce => root..root + 1,
            _ => 0..members,
        };
        Self {
            offers,
            decider: decider(what, root),
            turn,
            offered: matches!(what, What::Bcast | What::Scatter | What::Gather) && me != root,
            missing,
            reduced: 0,
            shared: false,
            failed: false,
            said: false,
            known: heard.start,
            heard: heard.end,
            others_failed: Vec::new(),
        }
    }

    /// Both members compute a part of a reduction: each reads what the other gives, and hears of its outcome.
    fn shares(&mut self, slab: &Slab) {
        self.shared = true;
        self.missing = vec![1 - slab.me];
        (self.known, self.heard) = (0, slab.members);
    }

    pub(super) fn offers(&self) -> Round {
        self.offers
    }

    pub(super) fn outcomes(&self) -> Round {
        Round {
            number: self.offers.number + 1,
            ..self.offers
        }
    }

    /// Looks at the outcomes of others; true if there were any.
    fn hear(&mut self, slabs: &dyn SharedSlabs, slab: &Slab) -> bool {
        let before = self.known;
        self.known += slabs.have_arrived(slab, self.outcomes(), before..self.heard);
        for member in before..self.known {
            let (outcome, said) = slabs.given(slab, self.outcomes(), member, 1);
            if said != 1 || outcome.with(0, 1, |failed| failed[0] != 0) {
                self.others_failed.push(member);
            }
        }
        self.known > before
    }
}

/// The root, which decides it, shares a reduction with the only other member.
pub(super) fn share(meet: &mut CellCollective) {
    let slab = *meet.slab();
    let may = meet.what == What::Reduce
        && slab.members == 2
        && copied_reductions::can_be_shared(meet)
        && offers::may_be_written(&meet.take);
    if let Phase::Deciding(pulling) = &mut meet.phase {
        if may && pulling.turn.is_some_and(|turn| turn.way == Delivery::Pull) {
            pulling.shares(&slab);
        }
    }
}

pub(crate) fn can_decide(meet: &mut CellCollective, slabs: &mut dyn SharedSlabs) -> bool {
    let Phase::Deciding(pulling) = &meet.phase else {
        return false;
    };
    if !pulling.offered {
        return slabs.is_free(meet.slab(), pulling.offers());
    }
    match (pulling.turn, pulling.missing.last()) {
        (None, _) => has_offered(meet, pulling.decider, pulling, slabs),
        (
            Some(Turn {
                way: Delivery::Pull, ..
            }),
            Some(&member),
        ) => has_offered(meet, member, pulling, slabs),
        // Combining goes on whoever else is where.
        (
            Some(Turn {
                way: Delivery::Pull, ..
            }),
            None,
        ) if !pulling.failed && pulling.reduced < copied_reductions::bytes(meet, pulling) => true,
        _ if pulling.said => {
            let (round, next) = (pulling.outcomes(), pulling.known);
            slabs.have_arrived(meet.slab(), round, next..next + 1) == 1
        }
        (
            Some(Turn {
                way: Delivery::Stream, ..
            }),
            _,
        ) if !meet.is_through_cells() => meet.can_use_cells(slabs),
        _ => slabs.is_free(meet.slab(), pulling.outcomes()),
    }
}

/// Does what can be done without waiting. What the step is then, and true if anything was done.
pub(crate) fn decide(
    meet: &mut CellCollective,
    mut pulling: Pulling,
    slabs: &mut dyn SharedSlabs,
) -> Result<(Phase, bool), EngineError> {
    let slab = *meet.slab();
    let mut any = false;
    if !pulling.offered && slabs.is_free(&slab, pulling.offers()) {
        offers::offer(meet, &pulling, slabs)?;
        (pulling.offered, any) = (true, true);
    }
    if pulling.turn.is_none() && has_offered(meet, pulling.decider, &pulling, slabs) {
        let (turn, is_shared) = offers::wanted(meet, &pulling, slabs);
        pulling.turn = Some(turn);
        if is_shared && meet.what == What::Reduce && slab.members == 2 {
            pulling.shares(&slab);
        }
        any = true;
    }
    let Some(turn) = pulling.turn.filter(|_| pulling.offered) else {
        return Ok((Phase::Deciding(pulling), any));
    };
    if turn.way == Delivery::Stream && !turn.timed {
        slabs.leave(&slab, pulling.offers());
        slabs.leave(&slab, pulling.outcomes());
        return Ok((Phase::Cells, true));
    }
    let done = match turn.way {
        Delivery::Pull => {
            any |= copy_some(meet, &mut pulling, slabs)?;
            pulling.missing.is_empty()
                && (pulling.failed || pulling.reduced == copied_reductions::bytes(meet, &pulling))
        }
        Delivery::Stream => {
            any |= meet.through_cells(slabs)?;
            meet.is_through_cells()
        }
    };
    let tells = !is_silent(meet, &pulling);
    if done && !pulling.said && (!tells || slabs.is_free(&slab, pulling.outcomes())) {
        if tells {
            offers::tell(&slab, &pulling, slabs)?;
        }
        slabs.leave(&slab, pulling.offers());
        (pulling.said, any) = (true, true);
    }
    if !pulling.said {
        return Ok((Phase::Deciding(pulling), any));
    }
    if !waits(meet, &pulling, turn) {
        pulling.known = pulling.heard;
        pulling.others_failed = pulling.failed.then_some(slab.me).into_iter().collect();
    }
    any |= pulling.hear(slabs, &slab);
    if pulling.known < pulling.heard {
        return Ok((Phase::Deciding(pulling), any));
    }
    slabs.leave(&slab, pulling.outcomes());
    meet.failed = !pulling.others_failed.is_empty();
    let phase = match turn.way {
        // Over.
        Delivery::Stream => Phase::Cells,
        Delivery::Pull if meet.failed => Phase::Cells,
        Delivery::Pull => Phase::Leaving(0),
    };
    meet.late = pulling.others_failed;
    Ok((phase, true))
}

/// Whether this member takes nothing, so that nobody waits for its outcome.
fn is_silent(meet: &CellCollective, pulling: &Pulling) -> bool {
    meet.what == What::Reduce && meet.slab().me != meet.root && !pulling.shared
}

/// Whether it waits for the outcomes of others: they have taken of what it gives, or it times the step.
fn waits(meet: &CellCollective, pulling: &Pulling, turn: Turn) -> bool {
    let is_root = meet.slab().me == meet.root;
    match meet.what {
        What::Bcast | What::Scatter | What::Gather => is_root,
        What::Reduce => !is_root || pulling.shared,
        _ => turn.way == Delivery::Pull || meet.slab().me == decider(meet.what, meet.root),
    }
}

/// Copies the next blocks, if they have been offered. True if there were any.
fn copy_some(
    meet: &mut CellCollective,
    pulling: &mut Pulling,
    slabs: &mut dyn SharedSlabs,
) -> Result<bool, EngineError> {
    if meet.what.reduces() {
        return copied_reductions::advance(meet, pulling, slabs, AT_ONCE);
    }
    let mut copied = 0;
    while let Some(&member) = pulling.missing.last().filter(|_| copied < AT_ONCE) {
        if !has_offered(meet, member, pulling, slabs) {
            break;
        }
        pulling.missing.pop();
        let is_done = match meet.what == What::Gather && member != meet.slab().me {
            true => offers::write_to(meet, member, pulling, slabs),
            false => offers::copy_from(meet, member, pulling, slabs)?,
        };
        if !is_done {
            pulling.failed = true;
            pulling.missing.clear();
        }
        copied += meet.block;
    }
    Ok(copied > 0)
}

/// Leaves long rounds that nobody needed, from round `done` of them on. How many are left now.
pub(crate) fn leave_rest(meet: &CellCollective, slabs: &mut dyn SharedSlabs, done: u64) -> u64 {
    done + slabs.leave_some(meet.slab(), meet.long_round(done), meet.cut.long_rounds() - done)
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::raw::OwnMemory;
    use isthmus_datatype::{Basic, Datatype};

    use super::*;
    use crate::{Block, BoundBuffer};

    #[test]
    fn only_operations_that_are_waited_for_are_timed() {
        let block = 64 << 10;
        for what in [What::Allgather, What::Bcast, What::ReduceScatterBlock, What::Scatter] {
            let (mut tuning, sides) = (Tuning::default(), Sides::default());
            let mut lessons = |blocking: bool| {
                let each = (0..40).filter(|_| turn(&mut tuning, what, 2, (block, 1), &sides, blocking).1.is_some());
                each.count()
            };
            assert_eq!(lessons(false), 0, "{what:?}");
            assert!(lessons(true) > 0, "{what:?}");
        }
    }

    #[test]
    fn others_do_not_write_to_memory_of_the_library() {
        let (block, byte) = (1 << 20, Datatype::of(Basic::Byte));
        let taking = |take| Sides {
            take: Some((take, 0)),
            ..Sides::default()
        };
        let way = |sides: &Sides| {
            let (turn, _) = turn(&mut Tuning::default(), What::Gather, 4, (block, 1), sides, true);
            turn.way
        };
        let own = OwnMemory::new(0, 4 << 20);
        let own = Block::own(&own, &byte, 4 << 20).expect("a description");
        assert_eq!(way(&taking(BoundBuffer::one(own))), Delivery::Stream);
        // The user's, and a member that takes nothing.
        assert_eq!(way(&taking(BoundBuffer::none())), Delivery::Pull);
        assert_eq!(way(&Sides::default()), Delivery::Pull);
    }
}
