// SPDX-License-Identifier: Apache-2.0
//! The nested clustering of a group of processes.
//!
//! A shape is a tree: the group is split into local areas, these into machines, these into nodes, or, where a machine's
//! own MPI is underneath, into its job and that into nodes, and nodes into processes. Each split is a *tier* and has a
//! level: what a message between two parts crosses. Tiers that split nothing anywhere are left out, so one node alone
//! has one tier, and a group of one has none.
//!
//! **Positions.** The processes stand in a line such that every cluster is an interval of positions: clusters in order
//! of their lowest rank, within the innermost cluster by rank. If every cluster holds consecutive ranks, positions are
//! ranks. The outermost clusters can be [arranged](Shape::arranged) in another order.
//!
//! **Depths.** The whole group is cluster 0 of depth 0; the clusters of depth `d + 1` are the parts that tier `d`
//! makes; clusters of depth `tiers()` are single processes. Clusters of a depth are numbered in order of position.

use crate::{Level, Rank, Topology};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// The clustering of one group. Built once per communicator, O(p); lookups are O(1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    size: u32,
    tiers: Vec<Tier>,
    /// Rank by position and position by rank; empty if positions are ranks.
    ranks: Vec<Rank>,
    positions: Vec<u32>,
    /// One per tier.
    depths: Vec<Depth>,
    /// The same group without clusters, if positions are not ranks.
    by_rank: Option<Arc<Self>>,
}

/// What the parts of a cluster have between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tier {
    level: Level,
    /// The parts are processes that have memory of one world. Processes of several worlds on one node have only
    /// messages in memory between them.
    memory: bool,
}

/// All clusters of one depth.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Depth {
    /// Cluster by position.
    of: Vec<u32>,
    /// First position of each cluster, and the group's size.
    starts: Vec<u32>,
    /// First part of each cluster (a cluster of the next depth), and their number.
    parts: Vec<u32>,
}

impl Shape {
    /// Shape of a group, given by the world ranks of its members in order.
    ///
    /// # Panics
    /// If a member is not a rank of the world.
    pub fn new(topology: &Topology, members: &[u32]) -> Self {
        // On a node first into worlds, then into processes.
        let mut tiers = tiers_of(&Level::ALL);
        let last = tiers.len() - 1;
        tiers.insert(
            last,
            Tier {
                memory: false,
                ..tiers[last]
            },
        );
        Self::from_tiers(&tiers, members.len() as u32, |rank, depth| {
            let spot = topology.spot(members[rank as usize]);
            // A job of a vendor MPI is one cluster of the machine, whose parts are nodes; any other node is one
            // whose only part is itself.
            let (within, inside) = if spot.vendor { (0, spot.node) } else { (spot.node, 0) };
            [spot.lan, spot.subjob, within, inside, spot.memory][depth]
        })
    }

    /// A group whose processes are all at one distance from each other, in order of rank.
    pub fn flat(size: u32, level: Level) -> Self {
        Self::from_colours(&[level], size, |_, _| 0)
    }

    /// Shape from colours: the processes are split by `colour(rank, 0)`, each part by `colour(rank, 1)`, and so on, and
    /// last into single processes. `levels` are those of the splits: one more than there are colours per process.
    pub fn from_colours(levels: &[Level], size: u32, colour: impl Fn(Rank, usize) -> u32) -> Self {
        Self::from_tiers(&tiers_of(levels), size, colour)
    }

    fn from_tiers(tiers: &[Tier], size: u32, colour: impl Fn(Rank, usize) -> u32) -> Self {
        let splits = tiers.len().saturating_sub(1);
        let mut clusters = vec![vec![0; size as usize]];
        for depth in 0..splits {
            let outer = &clusters[depth];
            clusters.push(split(outer, |rank| colour(rank, depth)));
        }
        clusters.push((0..size).collect());
        let count = |c: &Vec<u32>| c.iter().max().map_or(0, |m| m + 1);
        let kept: Vec<usize> = (0..tiers.len())
            .filter(|&d| count(&clusters[d + 1]) > count(&clusters[d]))
            .collect();
        let mut ranks: Vec<Rank> = (0..size).collect();
        ranks.sort_by_key(|&r| {
            (1..=splits)
                .map(|d| clusters[d][r as usize])
                .fold([0u32; Level::COUNT + 1], append)
        });
        let depths = kept
            .iter()
            .map(|&d| Depth::new(&ranks, &clusters[d], &clusters[d + 1]))
            .collect();
        let tiers = kept.iter().map(|&d| tiers[d]).collect();
        Self {
            size,
            tiers,
            ranks: Vec::new(),
            positions: Vec::new(),
            depths,
            by_rank: None,
        }
        .with_ranks(ranks)
    }

    /// Shape of some of the processes, given by their ranks; rank i of the new group is `members[i]`.
    pub fn among(&self, members: &[Rank]) -> Self {
        Self::from_tiers(&self.tiers, members.len() as u32, |rank, depth| {
            self.cluster_of(depth + 1, self.position_of(members[rank as usize]))
        })
    }

    /// The same group, which has jobs of vendor MPIs, as if each of these were one node: its processes are its
    /// parts, at the level of that MPI, and so are those of any other node. `None`: no job or node has several, or
    /// processes of several worlds are on one node.
    pub fn with_whole_jobs(&self) -> Option<Self> {
        let inside = self.tiers.iter().position(|tier| tier.level >= Level::Vendor)?;
        if self.tiers.iter().any(|tier| tier.level == Level::Node && !tier.memory) {
            return None;
        }
        let mut tiers = self.tiers[..=inside].to_vec();
        tiers[inside].level = Level::Vendor;
        let colour = |rank, depth: usize| self.cluster_of(depth + 1, self.position_of(rank));
        Some(Self::from_tiers(&tiers, self.size, colour))
    }

    /// The same group with its outermost clusters (those of depth 1) in another order along the line.
    ///
    /// # Panics
    /// If `order` does not name each of them once.
    pub fn arranged(&self, order: &[u32]) -> Self {
        let mut named = order.to_vec();
        named.sort_unstable();
        assert!(
            named.into_iter().eq(0..self.clusters(1)),
            "{order:?} is no order of the clusters"
        );
        let positions = order.iter().flat_map(|&cluster| self.span(1, cluster));
        let ranks: Vec<Rank> = positions.map(|position| self.rank_at(position)).collect();
        let clusters = |depth: usize| -> Vec<u32> {
            let of = |rank| self.cluster_of(depth, self.position_of(rank));
            (0..self.size).map(of).collect()
        };
        let depths = (0..self.tiers()).map(|d| Depth::new(&ranks, &clusters(d), &clusters(d + 1)));
        Self {
            size: self.size,
            tiers: self.tiers.clone(),
            ranks: Vec::new(),
            positions: Vec::new(),
            depths: depths.collect(),
            by_rank: None,
        }
        .with_ranks(ranks)
    }

    /// Sets the ranks of the positions.
    fn with_ranks(mut self, ranks: Vec<Rank>) -> Self {
        if ranks.iter().enumerate().any(|(i, &r)| i as u32 != r) {
            self.positions = vec![0; self.size as usize];
            for (i, &r) in ranks.iter().enumerate() {
                self.positions[r as usize] = i as u32;
            }
            self.ranks = ranks;
            self.by_rank = Some(Arc::new(Self::flat(self.size, Level::LocalArea)));
        }
        self
    }

    /// Number of processes.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Number of tiers.
    pub fn tiers(&self) -> usize {
        self.tiers.len()
    }

    /// Level of a tier, outermost tier first.
    pub fn level(&self, tier: usize) -> Level {
        self.tiers[tier].level
    }

    /// Whether the processes of each innermost cluster have memory of one world: whatever is done together there, they
    /// can do.
    pub fn shares_memory_inside(&self) -> bool {
        self.tiers.last().is_some_and(|tier| tier.memory)
    }

    /// True if positions are ranks: every cluster holds consecutive ranks.
    pub fn in_rank_order(&self) -> bool {
        self.ranks.is_empty()
    }

    /// A shape of the same group whose positions are ranks, for what must go by rank: this one, or one without clusters
    /// (as if all were in one local area).
    pub fn by_rank(self: &Arc<Self>) -> &Arc<Self> {
        self.by_rank.as_ref().unwrap_or(self)
    }

    /// Rank of the process at a position. That at position 0 is rank 0, unless the clusters were
    /// [arranged](Self::arranged) otherwise.
    pub fn rank_at(&self, position: u32) -> Rank {
        if self.ranks.is_empty() {
            position
        } else {
            self.ranks[position as usize]
        }
    }

    /// Position of a process.
    pub fn position_of(&self, rank: Rank) -> u32 {
        if self.positions.is_empty() {
            rank
        } else {
            self.positions[rank as usize]
        }
    }

    /// Number of clusters of a depth.
    pub fn clusters(&self, depth: usize) -> u32 {
        self.depths.get(depth).map_or(self.size, |d| d.starts.len() as u32 - 1)
    }

    /// Cluster of a depth that holds a position.
    pub fn cluster_of(&self, depth: usize, position: u32) -> u32 {
        self.depths.get(depth).map_or(position, |d| d.of[position as usize])
    }

    /// Positions of a cluster's members.
    pub fn span(&self, depth: usize, cluster: u32) -> Range<u32> {
        match self.depths.get(depth) {
            Some(d) => d.starts[cluster as usize]..d.starts[cluster as usize + 1],
            None => cluster..cluster + 1,
        }
    }

    /// Parts of a cluster: clusters of the next depth. `depth` is below [`Shape::tiers`].
    pub fn parts(&self, depth: usize, cluster: u32) -> Range<u32> {
        let parts = &self.depths[depth].parts;
        parts[cluster as usize]..parts[cluster as usize + 1]
    }

    /// Position of the member that acts for a cluster: the root if it is a member, else the first.
    pub fn leader(&self, depth: usize, cluster: u32, root_position: u32) -> u32 {
        let span = self.span(depth, cluster);
        if span.contains(&root_position) {
            root_position
        } else {
            span.start
        }
    }

    /// Level that a message between two ranks of the group crosses, as far as the shape tells
    /// distances apart. O(tiers).
    pub fn level_between(&self, a: Rank, b: Rank) -> Level {
        let (a, b) = (self.position_of(a), self.position_of(b));
        let apart = |&tier: &usize| self.cluster_of(tier + 1, a) != self.cluster_of(tier + 1, b);
        (0..self.tiers())
            .find(apart)
            .map_or(Level::Node, |tier| self.level(tier))
    }
}

impl Depth {
    fn new(ranks: &[Rank], clusters: &[u32], parts: &[u32]) -> Self {
        let mut depth = Self {
            of: Vec::with_capacity(ranks.len()),
            starts: Vec::new(),
            parts: Vec::new(),
        };
        let (mut cluster, mut part, mut number) = (None, None, 0);
        for (position, &rank) in ranks.iter().enumerate() {
            if cluster != Some(clusters[rank as usize]) {
                cluster = Some(clusters[rank as usize]);
                depth.starts.push(position as u32);
                depth.parts.push(number);
            }
            if part != Some(parts[rank as usize]) {
                part = Some(parts[rank as usize]);
                number += 1;
            }
            depth.of.push(depth.starts.len() as u32 - 1);
        }
        depth.starts.push(ranks.len() as u32);
        depth.parts.push(number);
        depth
    }
}

/// Tiers of these levels; processes of a node are of one world.
fn tiers_of(levels: &[Level]) -> Vec<Tier> {
    let tier = |&level: &Level| Tier {
        level,
        memory: level == Level::Node,
    };
    levels.iter().map(tier).collect()
}

/// Splits clusters by colour and numbers the parts in order of first appearance.
fn split(outer: &[u32], colour: impl Fn(Rank) -> u32) -> Vec<u32> {
    let mut numbers = HashMap::new();
    let mut number = |(rank, &cluster): (usize, &u32)| {
        let next = numbers.len() as u32;
        *numbers.entry((cluster, colour(rank as u32))).or_insert(next)
    };
    outer.iter().enumerate().map(&mut number).collect()
}

/// Appends to a sort key whose unused places are 0 and whose last place counts.
fn append(mut key: [u32; Level::COUNT + 1], value: u32) -> [u32; Level::COUNT + 1] {
    let used = key[Level::COUNT] as usize;
    key[used] = value;
    key[Level::COUNT] += 1;
    key
}
