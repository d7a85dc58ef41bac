// SPDX-License-Identifier: Apache-2.0
//! The two groups, and where they are nearest to each other.

use crate::Network;
use crate::step::{Buffer, Rank, Slice};
use std::ops::Range;

/// The two groups as one member sees them: ranks within the group that both form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// The own group, in order.
    pub local: Range<Rank>,
    /// The other one.
    pub remote: Range<Rank>,
}

/// A member of the own group and one of the other that are as near to each other as any: the same pair on all members.
pub(super) fn nearest(network: &Network, sides: &Sides) -> (Rank, Rank) {
    let is_low = sides.local.start < sides.remote.start;
    let (low, high) = if is_low {
        (&sides.local, &sides.remote)
    } else {
        (&sides.remote, &sides.local)
    };
    // From the innermost tier outwards: the first of the low group in whose cluster one of the high group is.
    for depth in (0..=network.tiers()).rev() {
        let cluster = |rank: Rank| network.cluster_of(depth, network.position_of(rank));
        let mut first = vec![None; network.clusters(depth) as usize];
        for rank in high.clone().rev() {
            first[cluster(rank) as usize] = Some(rank);
        }
        let pair = low
            .clone()
            .find_map(|rank| first[cluster(rank) as usize].map(|other| (rank, other)));
        if let Some((low, high)) = pair {
            return if is_low { (low, high) } else { (high, low) };
        }
    }
    (sides.local.start, sides.remote.start)
}

/// All of a buffer.
pub(super) fn whole(buffer: Buffer) -> Slice {
    Slice {
        buffer,
        offset: 0,
        length: 0,
    }
}
