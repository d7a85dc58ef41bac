// SPDX-License-Identifier: Apache-2.0
//! How many messages and bytes cross each level: what algorithms state, for the checker to compare with what it counts.

use crate::Network;
use crate::row::BlockRow;
use crate::strategy::Algorithm;
use crate::tree::{Council, Move};
use isthmus_topology::{Level, Rank};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// How many messages, or bytes, of all members together cross each level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossings<What> {
    /// Index [`Level::index`].
    pub by_level: [u64; Level::COUNT],
    /// Of these, what is between processes of the innermost clusters. On a node with processes of several worlds others
    /// are at the same level.
    inside: u64,
    what: PhantomData<What>,
}

/// Messages of all members together, by level.
pub type Messages = Crossings<OfMessages>;

/// Bytes of all messages together, by level.
pub type Bytes = Crossings<OfBytes>;

/// What is counted: messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfMessages;

/// What is counted: bytes of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfBytes;

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
            messages = messages.at(network, tier, count as u64);
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
        let tiers = 0..network.tiers();
        tiers.fold(Self::default(), |messages, tier| {
            messages.at(network, tier, pairs_across(network, tier))
        })
    }

    /// The same so many times.
    pub(crate) fn times(mut self, times: u64) -> Self {
        self.by_level.iter_mut().for_each(|count| *count *= times);
        self.inside *= times;
        self
    }
}

impl Bytes {
    /// Messages of so many bytes each.
    pub(crate) fn of(messages: Messages, each: u64) -> Self {
        Self {
            by_level: messages.by_level.map(|count| count.saturating_mul(each)),
            inside: messages.inside.saturating_mul(each),
            what: PhantomData,
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
                bytes = bytes.at(network, tier, crossing.saturating_mul(unit));
            }
        }
        bytes
    }
}

impl<What> Crossings<What> {
    /// With some more at a level, not inside the innermost clusters.
    pub(crate) fn and(mut self, level: Level, count: u64) -> Self {
        self.by_level[level.index()] += count;
        self
    }

    /// With some more at a tier.
    fn at(mut self, network: &Network, tier: usize, count: u64) -> Self {
        self.inside += if tier + 1 == network.tiers() { count } else { 0 };
        self.and(network.level(tier), count)
    }

    /// Without those inside the innermost clusters of this network.
    pub(crate) fn without_inside(mut self, network: &Network) -> Self {
        let level = &mut self.by_level[network.level(network.tiers() - 1).index()];
        *level = level.saturating_sub(self.inside);
        self.inside = 0;
        self
    }

    /// Both.
    pub(crate) fn plus(mut self, other: Self) -> Self {
        self.by_level.iter_mut().zip(other.by_level).for_each(|(a, b)| *a += b);
        self.inside += other.inside;
        self
    }
}

/// Pairs of processes, in both orders, that are in different parts of one cluster of a tier.
pub(crate) fn pairs_across(network: &Network, tier: usize) -> u64 {
    let inside = |depth: usize| -> u64 {
        let sizes = (0..network.clusters(depth)).map(|c| network.span(depth, c).len() as u64);
        sizes.map(|n| n * (n - 1)).sum()
    };
    inside(tier) - inside(tier + 1)
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
