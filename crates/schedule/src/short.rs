// SPDX-License-Identifier: Apache-2.0
//! Which blocks of alltoallv are short, and what is told of them.

use crate::step::Rank;
use crate::{Blocks, Call, Network};

/// Bytes of a block up to which it takes the way through leaders.
pub(crate) const SHORT: u64 = 1 << 10;

/// Numbers that each process tells.
pub(crate) fn width(network: &Network) -> u64 {
    2 * u64::from(network.size())
}

/// Whether a block of a process and another rank goes through leaders: a short one that would leave its node, or in
/// which every message takes a processor from somebody.
pub(crate) fn goes_through(call: &Call, network: &Network, me: Rank, peer: Rank, units: u64) -> bool {
    let depth = network.tiers() - 1;
    let node = |rank| network.cluster_of(depth, network.position_of(rank));
    let far = || node(me) != node(peer) || network.is_crowded(depth);
    units > 0 && call.bytes(units) <= SHORT && me != peer && far()
}

/// The own blocks by destination and by source.
pub(crate) fn blocks_of(call: &Call) -> (&Blocks, &Blocks) {
    match call.in_place {
        true => (&call.receive_blocks, &call.receive_blocks),
        false => (&call.blocks, &call.receive_blocks),
    }
}

/// What a process tells: units that go through leaders, by destination and by source.
pub(crate) fn told(call: &Call, network: &Network, me: Rank) -> Vec<u64> {
    let (given, got) = blocks_of(call);
    let short = |peer: Rank, units: u64| match goes_through(call, network, me, peer, units) {
        true => units,
        false => 0,
    };
    let ranks = 0..network.size();
    let mut told: Vec<u64> = ranks.clone().map(|peer| short(peer, given.size(peer))).collect();
    told.extend(ranks.map(|peer| short(peer, got.size(peer))));
    told
}
