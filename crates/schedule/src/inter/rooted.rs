// SPDX-License-Identifier: Apache-2.0
//! **Rooted collectives between groups: the plan of the operation for the root and the other group as one.**
//!
//! | | |
//! |---|---|
//! | messages | those of the operation in a group of the root and the other group; reduce: those inside the other group, to the member nearest to the root, and one |
//! | trips | as messages |
//! | bytes | the root has an empty block of its own; reduce: n per message |
//! | restrictions | reduce: not in pieces from the other group's member to the root |
//! | paper | – |

use super::sides::{Sides, whole};
use crate::Network;
use crate::compose::{Composite, Members, SubPlan};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, CountsPhase, Operation, counts_phase, plan};
use std::ops::Range;
use std::sync::Arc;

/// A root and a group that it is not in: rank 0 and the ranks from 1 on.
pub(super) struct Rooted {
    pub(super) members: Arc<[Rank]>,
    network: Arc<Network>,
    me: Rank,
}

impl Rooted {
    pub(super) fn new(network: &Network, root: Rank, group: &Range<Rank>, me: Rank) -> Self {
        let members: Arc<[Rank]> = std::iter::once(root).chain(group.clone()).collect();
        Self {
            network: network.among(&members),
            members,
            me: if me == root { 0 } else { me - group.start + 1 },
        }
    }

    pub(super) fn plan(&self, call: &Call) -> Box<dyn Plan> {
        plan(
            &Call {
                root: 0,
                ..call.clone()
            },
            &self.network,
            self.me,
        )
    }

    pub(super) fn counts(&self, call: &Call) -> Option<CountsPhase> {
        let phase = counts_phase(
            &Call {
                root: 0,
                ..call.clone()
            },
            &self.network,
            self.me,
        )?;
        let mut composite = Composite::default();
        composite.stage([self.part(phase.plan, 0)]);
        Some(CountsPhase {
            plan: Box::new(composite),
            send: phase.send,
            receive: phase.receive,
            own: phase.own,
        })
    }

    pub(super) fn part(&self, plan: Box<dyn Plan>, number: u16) -> SubPlan {
        SubPlan {
            number,
            plan,
            members: Members::Listed(Arc::clone(&self.members)),
            send: whole(Buffer::Send),
            recv: whole(Buffer::Recv),
        }
    }
}

/// Blocks of a group, with an empty one for the root before them.
pub(super) fn behind_root(blocks: &Blocks, group: u32) -> Blocks {
    match blocks {
        Blocks::Equal(_) | Blocks::Known(_) => {
            Blocks::known(std::iter::once(0).chain((0..group).map(|r| blocks.size(r))))
        }
        Blocks::Own(_) | Blocks::Subtree(_) => blocks.clone(),
    }
}

/// The root, and the group that it is not in.
fn sides_of(call: &Call, sides: &Sides) -> (Rank, Range<Rank>) {
    let group = if sides.local.contains(&call.root) {
        &sides.remote
    } else {
        &sides.local
    };
    (call.root, group.clone())
}

/// The call in the group of root and others: blocks of one size too are unequal to the root's.
fn call_among(call: &Call, group: &Range<Rank>) -> Call {
    let blocks = behind_root(&call.blocks, group.end - group.start);
    match call.operation {
        Operation::Gather => Call {
            operation: Operation::Gatherv,
            blocks,
            ..call.clone()
        },
        Operation::Scatter => Call {
            operation: Operation::Scatterv,
            blocks,
            ..call.clone()
        },
        Operation::Gatherv | Operation::Scatterv => Call { blocks, ..call.clone() },
        _ => call.clone(),
    }
}

pub(super) fn one_part(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let (root, group) = sides_of(call, sides);
    let rooted = Rooted::new(network, root, &group, me);
    let mut composite = Composite::default();
    composite.stage([rooted.part(rooted.plan(&call_among(call, &group)), 0)]);
    Box::new(composite)
}

pub(super) fn counts(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Option<CountsPhase> {
    let (root, group) = sides_of(call, sides);
    Rooted::new(network, root, &group, me).counts(&call_among(call, &group))
}

/// The other group reduces to its member nearest to the root, which sends the result.
pub(super) fn reduce(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let (root, group) = sides_of(call, sides);
    let sides = Sides {
        local: root..root + 1,
        remote: group.clone(),
    };
    let (_, nearest) = super::sides::nearest(network, &sides);
    let units = call.blocks.size(0);
    let slot = Piece::whole(0).slot(Kind::Up);
    let mut composite = Composite::default();
    let mut last = Script::default();
    if me == root {
        last.receive(nearest, result(units), slot);
        composite.stage([direct(last, whole(Buffer::Recv))]);
        return Box::new(composite);
    }
    let sum = if me == nearest {
        composite.memory(units)
    } else {
        Slice::NOTHING
    };
    composite.stage([within(call, network, &group, nearest, me, sum)]);
    if me == nearest {
        last.send(root, result(units), slot);
        composite.stage([direct(last, sum)]);
    }
    Box::new(composite)
}

fn result(length: u64) -> Slice {
    Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    }
}

/// Messages between members of both groups, about `recv`.
fn direct(script: Script, recv: Slice) -> SubPlan {
    SubPlan {
        number: 1,
        plan: Box::new(script),
        members: Members::All,
        send: whole(Buffer::Send),
        recv,
    }
}

/// Reduction inside one group to a member, into `sum` there.
pub(super) fn within(call: &Call, network: &Network, group: &Range<Rank>, root: Rank, me: Rank, sum: Slice) -> SubPlan {
    let members: Vec<Rank> = group.clone().collect();
    let inner = Call {
        operation: Operation::Reduce,
        root: root - group.start,
        in_place: false,
        ..call.clone()
    };
    SubPlan {
        number: 0,
        plan: plan(&inner, &network.among(&members), me - group.start),
        members: Members::From(group.start),
        send: whole(Buffer::Send),
        recv: sum,
    }
}
