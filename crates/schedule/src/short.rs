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

/// The own blocks of an alltoall.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnBlocks<'a> {
    /// By destination.
    pub(crate) to: &'a Blocks,
    /// By source.
    pub(crate) from: &'a Blocks,
}

impl<'a> OwnBlocks<'a> {
    /// The same in both directions.
    pub(crate) fn alike(blocks: &'a Blocks) -> Self {
        Self {
            to: blocks,
            from: blocks,
        }
    }

    /// Those of a call.
    pub(crate) fn of(call: &'a Call) -> Self {
        match call.in_place {
            true => Self::alike(&call.receive_blocks),
            false => Self {
                to: &call.blocks,
                from: &call.receive_blocks,
            },
        }
    }
}

/// What a process tells: units that go through leaders, by destination and by source.
pub(crate) fn told(call: &Call, network: &Network, me: Rank) -> Vec<u64> {
    let OwnBlocks { to: given, from: got } = OwnBlocks::of(call);
    let short = |peer: Rank, units: u64| match goes_through(call, network, me, peer, units) {
        true => units,
        false => 0,
    };
    let ranks = 0..network.size();
    let mut told: Vec<u64> = ranks.clone().map(|peer| short(peer, given.size(peer))).collect();
    told.extend(ranks.map(|peer| short(peer, got.size(peer))));
    told
}
