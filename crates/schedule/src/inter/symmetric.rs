// SPDX-License-Identifier: Apache-2.0
//! **Collectives between groups whose results all members get: each group brings its data together at one member, these
//! two, the nearest pair, exchange, and each hands out what the other group has given.**
//!
//! | | |
//! |---|---|
//! | messages | allreduce, reduce_scatter: inside each group those of reduce and of bcast or scatter, and 2; allgather: those of gather in each group with the other's member, and of bcast |
//! | trips | groups at different sites: 1 wide-area trip each way, at the same time |
//! | bytes | allreduce n each way; reduce_scatter all blocks each way; allgather every block once each way |
//! | restrictions | stages are not pipelined with each other |
//! | paper | – |

use super::rooted::{Rooted, behind_root, within};
use super::sides::{Sides, nearest, whole};
use crate::Network;
use crate::compose::{Composite, Members, SubPlan};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, CountsPhase, Operation, plan};
use std::ops::Range;
use std::sync::Arc;

/// One process's view of the two members, one of each group, that exchange what their groups bring.
pub(super) struct NearestPair<'a> {
    network: &'a Arc<Network>,
    sides: &'a Sides,
    me: Rank,
    /// Member of the own group, and of the other one.
    ours: Rank,
    theirs: Rank,
}

impl<'a> NearestPair<'a> {
    pub(super) fn new(network: &'a Arc<Network>, sides: &'a Sides, me: Rank) -> Self {
        let (ours, theirs) = nearest(network, sides);
        Self {
            network,
            sides,
            me,
            ours,
            theirs,
        }
    }

    pub(super) fn is_in_it(&self) -> bool {
        self.me == self.ours
    }

    /// An operation inside the own group, rooted at its member of the pair.
    pub(super) fn inside(&self, call: &Call, number: u16, send: Slice, recv: Slice) -> SubPlan {
        let group = &self.sides.local;
        let members: Vec<Rank> = group.clone().collect();
        let call = Call {
            root: self.ours - group.start,
            in_place: false,
            ..call.clone()
        };
        SubPlan {
            number,
            plan: plan(&call, &self.network.among(&members), self.me - group.start),
            members: Members::From(group.start),
            send,
            recv,
        }
    }

    /// Sends `given` to the other group's member and receives into `got`, which has `length` units.
    pub(super) fn exchange(&self, given: Slice, got: Slice, length: u64) -> SubPlan {
        let slot = Piece::whole(0).slot(Kind::Exchange);
        let mut script = Script::default();
        let at = |buffer, length| Slice {
            buffer,
            offset: 0,
            length,
        };
        script.send(self.theirs, at(Buffer::Send, given.length), slot);
        script.receive(self.theirs, at(Buffer::Recv, length), slot);
        SubPlan {
            number: 1,
            plan: Box::new(script),
            members: Members::All,
            send: given,
            recv: got,
        }
    }

    /// Gathering of the own group's blocks at the other group's member, and of the other's at the own.
    fn gathering(&self, call: &Call) -> (Rooted, Call) {
        let group = &self.sides.local;
        let inner = Call {
            operation: Operation::Gatherv,
            blocks: behind_root(&call.blocks, group.end - group.start),
            in_place: false,
            ..call.clone()
        };
        (Rooted::new(self.network, self.theirs, group, self.me), inner)
    }

    fn gathering_theirs(&self, call: &Call) -> (Rooted, Call) {
        let group = &self.sides.remote;
        let inner = Call {
            operation: Operation::Gatherv,
            blocks: behind_root(&call.receive_blocks, group.end - group.start),
            in_place: false,
            ..call.clone()
        };
        (Rooted::new(self.network, self.ours, group, self.me), inner)
    }

    /// Number of the part that gathers a group's blocks: the same in both groups.
    fn number(group: &Range<Rank>) -> u16 {
        u16::from(group.start > 0)
    }
}

pub(super) fn allreduce(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let pair = NearestPair::new(network, sides, me);
    let mut composite = Composite::default();
    let sum = if pair.is_in_it() {
        composite.memory(call.blocks.size(0))
    } else {
        Slice::NOTHING
    };
    composite.stage([within(call, network, &sides.local, pair.ours, me, sum)]);
    if pair.is_in_it() {
        composite.stage([pair.exchange(sum, whole(Buffer::Recv), sum.length)]);
    }
    let bcast = Call {
        operation: Operation::Bcast,
        ..call.clone()
    };
    composite.stage([pair.inside(&bcast, 2, whole(Buffer::Send), whole(Buffer::Recv))]);
    Box::new(composite)
}

pub(super) fn reduce_scatter(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let pair = NearestPair::new(network, sides, me);
    let total = call.blocks.offset(sides.local.end - sides.local.start);
    let mut composite = Composite::default();
    let (mut sum, mut theirs) = (Slice::NOTHING, Slice::NOTHING);
    if pair.is_in_it() {
        (sum, theirs) = (composite.memory(total), composite.memory(total));
    }
    let reduce = Call {
        blocks: Blocks::Equal(total),
        ..call.clone()
    };
    composite.stage([within(&reduce, network, &sides.local, pair.ours, me, sum)]);
    if pair.is_in_it() {
        composite.stage([pair.exchange(sum, theirs, total)]);
    }
    let operation = match call.blocks {
        Blocks::Equal(_) => Operation::Scatter,
        _ => Operation::Scatterv,
    };
    let scatter = Call {
        operation,
        ..call.clone()
    };
    composite.stage([pair.inside(&scatter, 2, theirs, whole(Buffer::Recv))]);
    Box::new(composite)
}

pub(super) fn allgather(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let pair = NearestPair::new(network, sides, me);
    let mut composite = Composite::default();
    let (ours, inner) = pair.gathering(call);
    let mut parts = vec![ours.part(ours.plan(&inner), NearestPair::number(&sides.local))];
    if pair.is_in_it() {
        let (theirs, inner) = pair.gathering_theirs(call);
        parts.push(theirs.part(theirs.plan(&inner), NearestPair::number(&sides.remote)));
    }
    composite.stage(parts);
    let total = call.receive_blocks.offset(sides.remote.end - sides.remote.start);
    let bcast = Call {
        operation: Operation::Bcast,
        blocks: Blocks::Equal(total),
        ..call.clone()
    };
    composite.stage([pair.inside(&bcast, 2, whole(Buffer::Send), whole(Buffer::Recv))]);
    Box::new(composite)
}

/// Counts of the own group's blocks on their way to the other group's member.
pub(super) fn counts(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Option<CountsPhase> {
    let (ours, inner) = NearestPair::new(network, sides, me).gathering(call);
    ours.counts(&inner)
}
