// SPDX-License-Identifier: Apache-2.0
//! One of several trees along which the pieces of a long message go: who is at its top, and who acts for each cluster.
//! [`shares`](crate::shares) says how many there are and what they are good for.

use crate::Network;
use crate::step::Rank;
use crate::strategy::{Dealing, Sharing};

/// What tells the trees of one share from those of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// At the top of all trees that it is in.
    pub(crate) root: Rank,
    /// Counts through the members of other clusters.
    pub(crate) turn: u32,
    /// Part of the outermost tier that serves the others.
    pub(crate) via: Option<u32>,
    /// Position of the process in the root's part of the outermost tier that serves the others in the root's place.
    pub(crate) carrier: Option<u32>,
}

impl Share {
    /// The only one.
    pub(crate) const fn whole(root: Rank) -> Self {
        Self {
            root,
            turn: 0,
            via: None,
            carrier: None,
        }
    }

    /// Position of the process that acts at a tier for a part of one of its clusters.
    pub(crate) fn acting(&self, network: &Network, tier: usize, part: u32) -> u32 {
        match self.carrier {
            Some(carrier) if tier == 0 && network.span(1, part).contains(&carrier) => carrier,
            _ => self.leader(network, tier + 1, part),
        }
    }

    /// Position of the process that acts for a cluster.
    pub(crate) fn leader(&self, network: &Network, depth: usize, cluster: u32) -> u32 {
        let root = network.position_of(self.root);
        if self.turn == 0 {
            return network.leader(depth, cluster, root);
        }
        let first = network.span(depth, cluster).start;
        let mut acting = root;
        // Who acts for a cluster also acts for each of its clusters that he is in.
        for outer in 1..=depth {
            let around = network.cluster_of(outer, first);
            if !network.span(outer, around).contains(&acting) {
                acting = member(network, outer, around, self.turn);
            }
        }
        acting
    }
}

/// Position of a member of a cluster by number: one of each part, then the next of each.
pub(crate) fn member(network: &Network, depth: usize, cluster: u32, mut number: u32) -> u32 {
    let mut cluster = cluster;
    for tier in depth..network.tiers() {
        let parts = network.parts(tier, cluster);
        let count = parts.end - parts.start;
        cluster = parts.start + number % count;
        number /= count;
    }
    network.span(network.tiers(), cluster).start
}

/// Number of shares.
pub(crate) fn count(network: &Network, dealing: Dealing) -> u32 {
    let parts = if network.tiers() == 0 { 1 } else { network.clusters(1) };
    let Dealing { sharing, leaders } = dealing;
    match sharing {
        Sharing::Whole => 1,
        Sharing::Dealt => leaders,
        Sharing::Relayed => parts.saturating_sub(1).max(1) * leaders,
        Sharing::Tops => parts * leaders,
    }
}
