// SPDX-License-Identifier: Apache-2.0
//! Depths and colours as in MPICH-G2, section 3.1 and figure 3.

use crate::{Level, Topology};

/// Depth of a process without a vendor MPI: wide area, local area, machine.
pub const DEPTH: u32 = 3;
/// Depth of a process that is part of a job of its vendor MPI: one level more.
pub const VENDOR_DEPTH: u32 = 4;

/// What the attributes MPICHX_TOPOLOGY_DEPTHS and MPICHX_TOPOLOGY_COLORS of one communicator say,
/// indexed by its ranks. Colours are numbered from 0 in order of first appearance by rank, per level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colours {
    /// Number of levels of each member.
    pub depths: Vec<u32>,
    /// `colours[rank][level]`; `depths[rank]` of them are meaningful.
    pub colours: Vec<[u32; VENDOR_DEPTH as usize]>,
}

impl Colours {
    /// Colours of a group, given by the world ranks of its members in order.
    ///
    /// # Panics
    /// If a member is not a rank of the world.
    pub fn of(topology: &Topology, members: &[u32]) -> Self {
        let mut areas = Numbering::default();
        let mut machines = Numbering::default();
        let mut jobs = Numbering::default();
        let colour = |&m: &u32| {
            let spot = topology.spot(m);
            let job = if spot.vendor { jobs.number(spot.subjob) } else { 0 };
            [0, areas.number(spot.lan), machines.number(spot.subjob), job]
        };
        let colours = members.iter().map(colour).collect();
        let depth = |&m: &u32| {
            if topology.is_in_vendor_job(m) {
                VENDOR_DEPTH
            } else {
                DEPTH
            }
        };
        Self {
            depths: members.iter().map(depth).collect(),
            colours,
        }
    }

    /// True if two members can talk at a level.
    pub fn together(&self, a: u32, b: u32, level: Level) -> bool {
        let (a, b, level) = (a as usize, b as usize, level.index());
        let deep = |r: usize| level < self.depths[r] as usize;
        deep(a) && deep(b) && self.colours[a][level] == self.colours[b][level]
    }
}

/// Numbers keys from 0 in order of first appearance.
#[derive(Default)]
struct Numbering(Vec<Option<u32>>, u32);

impl Numbering {
    fn number(&mut self, key: u32) -> u32 {
        let key = key as usize;
        if key >= self.0.len() {
            self.0.resize(key + 1, None);
        }
        let next = self.1;
        *self.0[key].get_or_insert_with(|| {
            self.1 += 1;
            next
        })
    }
}
