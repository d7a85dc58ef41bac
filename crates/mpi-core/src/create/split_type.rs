// SPDX-License-Identifier: Apache-2.0
//! Splitting by what processes share (MPI_Comm_split_type, MPI 5.0 section 7.4.2).

use std::sync::Arc;

use isthmus_topology::Topology;

use super::split_as;
use crate::comm::{Comm, RESOURCE_HINT, joined, kept};
use crate::error::Result;
use crate::info::Info;
use crate::session;
use crate::world::World;

/// A kind of resource that processes share, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Machines of one local area.
    Site,
    /// Nodes of one machine: one submission.
    Machine,
    /// One operating-system instance: its processes of one world, which can have windows in its memory.
    Node,
}

/// All kinds, the largest first.
pub const RESOURCES: [Resource; 3] = [Resource::Site, Resource::Machine, Resource::Node];

/// How MPI_Comm_split_type groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitType {
    /// MPI_COMM_TYPE_SHARED.
    Shared,
    /// MPI_COMM_TYPE_HW_UNGUIDED: the largest kind of resource that the members do not all share.
    Unguided,
    /// MPI_COMM_TYPE_HW_GUIDED and MPI_COMM_TYPE_RESOURCE_GUIDED with a type of hardware.
    Hardware(String),
    /// MPI_COMM_TYPE_RESOURCE_GUIDED with a process set.
    ProcessSet(String),
    /// MPI_UNDEFINED, or nothing that this library knows.
    Nothing,
}

impl Resource {
    /// The kind with this name: plain, or as `isthmus://name`; `mpi_shared_memory` is a node.
    pub fn named(name: &str) -> Option<Self> {
        let plain = name.strip_prefix("isthmus://").unwrap_or(name);
        RESOURCES
            .into_iter()
            .find(|r| r.name() == plain)
            .or_else(|| (name == "mpi_shared_memory").then_some(Self::Node))
    }

    /// Name as value of `mpi_hw_resource_type`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site",
            Self::Machine => "machine",
            Self::Node => "node",
        }
    }

    /// The number of the one that a process uses.
    fn of(self, topology: &Topology, place: u32) -> u32 {
        let [site, machine, _] = topology.clusters_of(place);
        match self {
            Self::Site => site,
            Self::Machine => machine,
            // Windows are in the memory of one world, also where processes of several are on a node.
            Self::Node => topology.memory_of(place),
        }
    }
}

/// MPI_Comm_split_type; collective. Gives the kind of resource as well, where one decided.
pub fn split_type(world: &World, comm: &Comm, by: &SplitType, key: i32, info: &Info) -> Result<Option<Arc<Comm>>> {
    let resource = match by {
        SplitType::Shared => Some(Resource::Node),
        SplitType::Hardware(name) => Resource::named(name),
        SplitType::Unguided => next_level(world, comm),
        // A process set may go by the name of a resource, too.
        SplitType::ProcessSet(name) => Resource::named(name),
        SplitType::Nothing => None,
    };
    let color = match (resource, by) {
        (Some(resource), _) => Some(match joined::is_joined(comm) {
            // Jobs number their resources each for itself: here the first member that uses it is its number.
            true => first_user(world, comm, resource),
            false => resource.of(world.topology(), world.rank()) as i32,
        }),
        (None, SplitType::ProcessSet(name)) => {
            // A name such as mpi://SELF means another set at each process: a set is known by its first member.
            let set = session::process_set(world, name).filter(|set| set.rank_of(world.me()).is_some());
            let first = set.and_then(|set| world.rank_of(*set.members().first()?));
            first.map(|first| first as i32)
        }
        (None, _) => None,
    };
    let mut hints = kept(info);
    if let Some(resource) = resource {
        hints.set(RESOURCE_HINT, resource.name())?;
    }
    split_as(world, comm, color, key, hints, None)
}

/// The lowest rank of those who use the same resource as this process.
fn first_user(world: &World, comm: &Comm, resource: Resource) -> i32 {
    let (topology, places) = joined::places(world, comm, comm.group());
    let cluster = |rank: u32| Some(resource.of(topology, *places.get(rank as usize)?));
    let own = cluster(comm.rank());
    (0..comm.size()).find(|&rank| cluster(rank) == own).unwrap_or(0) as i32
}

/// The largest kind of resource that not all members share: it splits the communicator into smaller ones.
fn next_level(world: &World, comm: &Comm) -> Option<Resource> {
    let (topology, places) = joined::places(world, comm, comm.everybody().group());
    let differs = |resource: &Resource| {
        let mut uses = places.iter().map(|&place| resource.of(topology, place));
        let first = uses.next();
        uses.any(|other| Some(other) != first)
    };
    RESOURCES.into_iter().find(differs)
}
