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
