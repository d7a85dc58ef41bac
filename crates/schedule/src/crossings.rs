// SPDX-License-Identifier: Apache-2.0
//! How many messages and bytes cross each level: what algorithms state, for the checker to compare with what it counts.

use crate::Network;
use crate::row::BlockRow;
use crate::strategy::Algorithm;
use crate::tree::{Council, Move};
use isthmus_topology::{Level, Rank};
use std::ops::Range;
use std::sync::Arc;

/// Messages of all members together, by level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// Index [`Level::index`].
    pub by_level: [u64; Level::COUNT],
}

impl Messages {
    /// One message between each part of a cluster and its leader, from a tier inwards: of all trees over these tiers,
    /// in one direction. No algorithm reaches all members with fewer, nor is reached by all.
    pub(crate) fn of_trees(network: &Network, from: usize) -> Self {
        Self::of_trees_of(network, from, 0..network.size())
    }

    /// The same among some positions, which are whole clusters of the first tier.
    pub(crate) fn of_trees_of(network: &Network, from: usize, positions: Range<u32>) -> Self {
        let mut messages = Self::default();
        for tier in from..network.tiers() {
            let count = clusters(network, tier + 1, &positions).len() - clusters(network, tier, &positions).len();
            messages = messages.and(network.level(tier), count as u64);
        }
        messages
    }

    /// Trees below the outermost tier, up and down, and so many messages between the leaders of that tier.
    pub(crate) fn of_meeting(network: &Network, between: impl Fn(u64) -> u64) -> Self {
        if network.tiers() == 0 {
            return Self::default();
        }
        let leaders = u64::from(network.clusters(1));
        Self::of_trees(network, 1)
            .times(2)
            .and(network.level(0), between(leaders))
    }

    /// One message from each member of the outermost council to each other.
    pub(crate) fn each_to_each(leaders: u64) -> u64 {
        leaders * (leaders - 1)
    }

    /// One message from each process to each other.
    pub(crate) fn of_pairs(network: &Network) -> Self {
        let pairs = |depth: usize| -> u64 {
            let sizes = (0..network.clusters(depth)).map(|c| network.span(depth, c).len() as u64);
            sizes.map(|n| n * (n - 1)).sum()
        };
        let tiers = 0..network.tiers();
        tiers.fold(Self::default(), |messages, tier| {
            messages.and(network.level(tier), pairs(tier) - pairs(tier + 1))
        })
    }

    /// With some more at a level.
    pub(crate) fn and(mut self, level: Level, count: u64) -> Self {
        self.by_level[level.index()] += count;
        self
    }

    /// Both.
    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.by_level.iter_mut().zip(other.by_level).for_each(|(a, b)| *a += b);
        self
    }

    /// The same so many times.
    pub(crate) fn times(mut self, times: u64) -> Self {
        self.by_level.iter_mut().for_each(|count| *count *= times);
        self
    }
}

/// Bytes of all messages together, by level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Index [`Level::index`].
    pub by_level: [u64; Level::COUNT],
}

impl Bytes {
    /// Messages of so many bytes each.
    pub(crate) fn of(messages: Messages, each: u64) -> Self {
        Self {
            by_level: messages.by_level.map(|count| count.saturating_mul(each)),
        }
    }

    /// Blocks along flat trees from a tier inwards, in one direction: those of a part cross where it is not that of the
    /// leader. `row` has their sizes, in units of `unit` bytes.
    pub(crate) fn of_blocks(network: &Network, from: usize, root: Rank, row: &BlockRow, unit: u64) -> Self {
        Self::of_blocks_of(network, from, root, row, unit, 0..network.size())
    }

    /// The same among some positions, which are whole clusters of the first tier.
    pub(crate) fn of_blocks_of(
        network: &Network,
        from: usize,
        root: Rank,
        row: &BlockRow,
        unit: u64,
        positions: Range<u32>,
    ) -> Self {
        let mut bytes = Self::default();
        for tier in from..network.tiers() {
            for cluster in clusters(network, tier, &positions) {
                let leader = network.leader(tier, cluster, network.position_of(root));
                let own = network.span(tier + 1, network.cluster_of(tier + 1, leader));
                let crossing = row.length(network.span(tier, cluster)) - row.length(own);
                bytes = bytes.and(network.level(tier), crossing.saturating_mul(unit));
            }
        }
        bytes
    }

    /// With some more at a level.
    pub(crate) fn and(mut self, level: Level, bytes: u64) -> Self {
        self.by_level[level.index()] += bytes;
        self
    }

    /// Both.
    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.by_level.iter_mut().zip(other.by_level).for_each(|(a, b)| *a += b);
        self
    }
}

/// The clusters of a depth that hold some positions, which are not none.
fn clusters(network: &Network, depth: usize, positions: &Range<u32>) -> Range<u32> {
    network.cluster_of(depth, positions.start)..network.cluster_of(depth, positions.end - 1) + 1
}

/// Messages among leaders in a scan: for each item one to each leader to whom or through whom it goes.
pub(crate) fn upwards(network: &Arc<Network>, algorithm: Algorithm) -> u64 {
    let mut sent = 0;
    for leader in 0..network.clusters(1) {
        let rank = network.rank_at(network.span(1, leader).start);
        Council::meeting(network, rank, algorithm).each_move(true, |step| {
            sent += u64::from(matches!(step, Move::Send { .. }));
        });
    }
    sent
}
