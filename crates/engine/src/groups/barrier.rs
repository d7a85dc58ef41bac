// SPDX-License-Identifier: Apache-2.0
//! Barriers in which the first member comes last.
//!
//! Everybody who sees that all have come may go on. Where processes share processors, that is often the last one to
//! come alone: the others have to be run again, and it waits for them in the next operation, whose root is mostly the
//! first member. So there the first member gives its cell when all others' are there. They wait for that one, so it
//! tells them that all have come, and whoever goes on after it finds what it has given meanwhile.
//!
//! Only that member decides it, and nobody else needs to know.

use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Round, SharedSlabs, Slab};

use crate::groups::CellCollective;
use crate::p2p::Core;

/// Whether this member comes last to an operation.
#[inline]
pub(crate) fn comes_last(core: &Core, what: What, slab: &Slab) -> bool {
    what == What::Barrier && slab.me == 0 && shares_processors(core)
}

/// Whether there are more processes of the job than processors for them.
pub(super) fn shares_processors(core: &Core) -> bool {
    let mut neighbours = core.transports.iter().filter_map(|transport| transport.neighbours());
    neighbours.any(|others| others > 0)
}

/// Whether all others have come to one that goes on.
pub(super) fn may_come(meet: &mut CellCollective, slabs: &dyn SharedSlabs, round: Round) -> bool {
    if meet.what != What::Barrier || !meet.past {
        return true;
    }
    let [(number, seen), _] = &mut meet.seen;
    if *number != round.number {
        (*number, *seen) = (round.number, 1);
    }
    *seen += slabs.have_arrived(&meet.slab, round, *seen..meet.slab.members);
    *seen == meet.slab.members
}
