// SPDX-License-Identifier: Apache-2.0
//! **Alltoall between groups at different sites: each group's blocks are gathered at one member, who sorts them by
//! destination; these two exchange, and each scatters what has come.**
//!
//! | | |
//! |---|---|
//! | messages | 2 over the link between the groups; inside each group those of gather and scatter |
//! | trips | 1 over the link |
//! | bytes | every block once over the link |
//! | restrictions | equal blocks, small ones; each group at one site (or machine), not the same; memory for all blocks three times at the members who meet |
//! | paper | – |

use super::sides::{Sides, whole};
use super::symmetric::NearestPair;
use crate::compose::{Composite, Members, SubPlan};
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, Network, Operation};
use isthmus_topology::Level;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a block up to which the detour pays, and of all blocks.
const SHORT: u64 = 4 << 10;
const MOST: u64 = 16 << 20;

/// Whether that is the way: equal on all members.
pub(super) fn pays(call: &Call, network: &Network, sides: &Sides) -> bool {
    let (Blocks::Equal(given), Blocks::Equal(got)) = (&call.blocks, &call.receive_blocks) else {
        return false;
    };
    let (most, p) = (call.bytes(*given.max(got)), u64::from(network.size()));
    let slow = network.tiers() > 1 && network.level(0) <= Level::LocalArea;
    let small = most <= SHORT && p <= 256 && p * p * most <= MOST;
    call.operation == Operation::Alltoall && slow && small && apart(network, sides)
}

/// Whether each group is in one part of the outermost tier, and not in the same.
fn apart(network: &Network, sides: &Sides) -> bool {
    let part = |rank: Rank| network.cluster_of(1, network.position_of(rank));
    let together = |group: &Range<Rank>| group.clone().all(|rank| part(rank) == part(group.start));
    part(sides.local.start) != part(sides.remote.start) && together(&sides.local) && together(&sides.remote)
}

pub(super) fn plan(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let pair = NearestPair::new(network, sides, me);
    let (local, remote) = (
        u64::from(sides.local.end - sides.local.start),
        u64::from(sides.remote.end - sides.remote.start),
    );
    let (given, got) = (call.blocks.size(0), call.receive_blocks.size(0));
    let mut composite = Composite::default();
    let (mut rows, mut columns, mut theirs) = (Slice::NOTHING, Slice::NOTHING, Slice::NOTHING);
    if pair.is_in_it() {
        rows = composite.memory(local * remote * given);
        columns = composite.memory(local * remote * given);
        theirs = composite.memory(local * remote * got);
    }
    let inner = |operation, units| Call {
        operation,
        blocks: Blocks::Equal(remote * units),
        ..call.clone()
    };
    let gather = inner(Operation::Gather, given);
    composite.stage([pair.inside(&gather, 0, whole(Buffer::Send), rows)]);
    if pair.is_in_it() {
        composite.stage([sorting(local, remote, given, rows, columns)]);
        composite.stage([pair.exchange(columns, theirs, theirs.length)]);
    }
    let scatter = inner(Operation::Scatter, got);
    composite.stage([pair.inside(&scatter, 2, theirs, whole(Buffer::Recv))]);
    Box::new(composite)
}

/// From the order of sources to that of destinations.
fn sorting(local: u64, remote: u64, block: u64, send: Slice, recv: Slice) -> SubPlan {
    let mut script = Script::default();
    let at = |buffer, index: u64| Slice {
        buffer,
        offset: index * block,
        length: block,
    };
    for (from, to) in (0..local).flat_map(|from| (0..remote).map(move |to| (from, to))) {
        let source = at(Buffer::Send, from * remote + to);
        script.copy_apart(source, at(Buffer::Recv, to * local + from));
    }
    SubPlan {
        number: 3,
        plan: Box::new(script),
        members: Members::All,
        send,
        recv,
    }
}
