// SPDX-License-Identifier: Apache-2.0
//! Communicators over several jobs, and what is made of them: where their members have met.

use std::sync::Arc;

use isthmus_topology::Topology;

use super::Comm;
use crate::context::Contexts;
use crate::group::Group;
use crate::meeting::Meeting;
use crate::meeting::bonds::Bond;
use crate::world::World;

/// Of all who have met, for the library itself.
pub(crate) fn of_meeting(meeting: &Arc<Meeting>) -> Comm {
    let contexts = meeting.contexts();
    let context = contexts.named(contexts.last_of_all());
    let mut comm = Comm::new(meeting.group().clone(), meeting.me(), context, "");
    comm.set_links(Some(Arc::default()));
    comm.joined = Some(meeting.clone());
    comm
}

/// Where its members have met, if that was not in their world.
pub(crate) fn meeting(comm: &Comm) -> Option<&Arc<Meeting>> {
    comm.joined.as_ref()
}

/// What connects its members with the meeting, if there was one.
pub(super) fn bond(comm: &Comm) -> Option<Bond> {
    let meeting = comm.joined.as_ref()?;
    Some(Bond::new(&meeting.bonds, meeting.places_of(comm.everybody().group())))
}

/// It is freed, and its members have not disconnected: they stay connected. Those of one world are so without it.
pub(crate) fn stay_connected(comm: &Comm) {
    let (Some(bond), Some(meeting)) = (&comm.bond, &comm.joined) else {
        return;
    };
    let members = comm.everybody().group().members();
    let mut worlds = members.iter().map(|&peer| Some(meeting.name_of(peer)?.world));
    let first = worlds.next();
    if worlds.any(|world| Some(world) != first) {
        bond.stay();
    }
}

/// Whether members may be of several jobs: it was made by MPI_Comm_connect and the like, or of such a communicator.
pub fn is_joined(comm: &Comm) -> bool {
    comm.joined.is_some()
}

/// The contexts from which this process takes those of communicators that are made of this one.
pub(crate) fn contexts<'c>(world: &'c World, comm: &'c Comm) -> &'c Arc<Contexts> {
    match &comm.joined {
        Some(meeting) => meeting.contexts(),
        None => world.contexts(),
    }
}

/// Distances, and the places there of a group of members: those of the world, or of all who have met.
pub(crate) fn places<'c>(world: &'c World, comm: &'c Comm, group: &Group) -> (&'c Topology, Vec<u32>) {
    match &comm.joined {
        Some(meeting) => (meeting.topology(), meeting.places_of(group)),
        None => (world.topology(), world.ranks_of(group)),
    }
}
