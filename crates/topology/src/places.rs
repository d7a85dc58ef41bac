// SPDX-License-Identifier: Apache-2.0
//! Distance between any two processes of the world.

use crate::Level;
use isthmus_wire::place::PlaceTable;
use std::collections::HashMap;
use std::sync::Arc;

/// Where every process of MPI_COMM_WORLD is, reduced to what distance needs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Topology {
    /// Of each rank; shared by all copies.
    spots: Arc<[Spot]>,
}

/// The clusters that one process belongs to, innermost last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) lan: u32,
    pub(crate) subjob: u32,
    pub(crate) node: u32,
    /// Those who have its memory: all of its node, unless there are processes of several worlds.
    pub(crate) memory: u32,
    /// It is part of a job of its vendor MPI, of which a machine has one.
    pub(crate) vendor: bool,
}

impl Topology {
    /// Reduces a place table. Machines with equal `lan` are in one local area.
    ///
    /// # Panics
    /// If an index in the table points outside; tables that were read from a message have been checked.
    pub fn new(table: &PlaceTable) -> Self {
        let mut lans = HashMap::new();
        let lan_of: Vec<u32> = table
            .subjobs
            .iter()
            .map(|s| {
                let next = lans.len() as u32;
                *lans.entry(s.lan.as_str()).or_insert(next)
            })
            .collect();
        let spot = |p: &isthmus_wire::place::Place| Spot {
            lan: lan_of[p.subjob as usize],
            subjob: p.subjob,
            node: p.node,
            memory: p.node,
            vendor: p.vendor.is_some(),
        };
        Self {
            spots: table.places.iter().map(spot).collect(),
        }
    }

    /// Processes whose clusters are given by number, in order of rank: local area, machine, node. Machines of different
    /// local areas have different numbers, and so have nodes of different machines.
    pub fn from_clusters(places: impl IntoIterator<Item = [u32; 3]>) -> Self {
        let spot = |[lan, subjob, node]: [u32; 3]| Spot {
            lan,
            subjob,
            node,
            memory: node,
            vendor: false,
        };
        Self {
            spots: places.into_iter().map(spot).collect(),
        }
    }

    /// The same, with all processes of some machines (as numbered there) in jobs of their vendor MPI.
    #[must_use]
    pub fn with_vendor_jobs(mut self, on_machine: impl Fn(u32) -> bool) -> Self {
        for spot in Arc::make_mut(&mut self.spots) {
            spot.vendor = on_machine(spot.subjob);
        }
        self
    }

    /// The same of several worlds, each with nodes and machines of its own in the table, where some nodes are one.
    /// `node_of`: the number of the node on which a process talks in memory with whoever else does, by rank; `None`:
    /// with nobody. Machines with such a node are one, too. Each world keeps memory of its own there, and so do jobs
    /// of vendor MPIs, which are nodes of their own.
    #[must_use]
    pub fn with_common_nodes(mut self, node_of: impl Fn(u32) -> Option<u32>) -> Self {
        let mut common: HashMap<u32, Option<u32>> = HashMap::new();
        for (rank, spot) in (0..).zip(&*self.spots) {
            let node = node_of(rank).filter(|_| !spot.vendor);
            let known = common.entry(spot.node).or_insert(node);
            *known = known.filter(|_| *known == node);
        }
        let (mut nodes, mut machines) = (HashMap::new(), Roots::default());
        for spot in Arc::make_mut(&mut self.spots) {
            if let Some(number) = common[&spot.node] {
                let &mut (node, machine) = nodes.entry((spot.lan, number)).or_insert((spot.node, spot.subjob));
                spot.node = node;
                machines.join(machine, spot.subjob);
            }
        }
        for spot in Arc::make_mut(&mut self.spots) {
            spot.subjob = machines.of(spot.subjob);
        }
        self
    }

    /// The number of those who share the memory of one world with a process: the same for all of its node where there
    /// is only one.
    ///
    /// # Panics
    /// If the rank is not below [`Topology::size`].
    pub fn memory_of(&self, world_rank: u32) -> u32 {
        self.spot(world_rank).memory
    }

    /// Numbers of the clusters that a process belongs to: local area, machine, node.
    ///
    /// # Panics
    /// If the rank is not below [`Topology::size`].
    pub fn clusters_of(&self, world_rank: u32) -> [u32; 3] {
        let Spot { lan, subjob, node, .. } = self.spot(world_rank);
        [lan, subjob, node]
    }

    /// Number of processes of the world.
    pub fn size(&self) -> u32 {
        self.spots.len() as u32
    }

    /// Whether a process (world rank) is part of a job of its vendor MPI.
    ///
    /// # Panics
    /// If the rank is not below [`Topology::size`].
    pub fn is_in_vendor_job(&self, world_rank: u32) -> bool {
        self.spot(world_rank).vendor
    }

    /// Level that a message between two processes (world ranks) crosses: that of the vendor MPI wherever this moves it,
    /// also on a node. A process and itself: node, or vendor MPI.
    ///
    /// # Panics
    /// If a rank is not below [`Topology::size`].
    pub fn level_between(&self, a: u32, b: u32) -> Level {
        let (a, b) = (self.spots[a as usize], self.spots[b as usize]);
        if a.lan != b.lan {
            Level::WideArea
        } else if a.subjob != b.subjob {
            Level::LocalArea
        } else if a.vendor && b.vendor {
            Level::Vendor
        } else if a.node != b.node {
            Level::Machine
        } else {
            Level::Node
        }
    }

    pub(crate) fn spot(&self, world_rank: u32) -> Spot {
        self.spots[world_rank as usize]
    }
}

/// Numbers of things that turn out to be one.
#[derive(Default)]
struct Roots(HashMap<u32, u32>);

impl Roots {
    /// The smallest number of those that are one with this.
    fn of(&self, mut number: u32) -> u32 {
        while let Some(&other) = self.0.get(&number) {
            number = other;
        }
        number
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.of(a), self.of(b));
        if a != b {
            self.0.insert(a.max(b), a.min(b));
        }
    }
}
