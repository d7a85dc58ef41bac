// SPDX-License-Identifier: Apache-2.0
//! Guests: processes that serve the members of a communicator and take part in nothing collective.

use std::sync::Arc;

use isthmus_engine::Peer;

use super::Comm;
use crate::context;
use crate::group::Group;
use crate::world::World;

/// The same processes on a context beside theirs, and one more with the last rank: a guest, who serves the others and
/// takes part in nothing collective. Valid for as long as this communicator is.
pub fn with_guest(comm: &Comm, guest: Peer) -> Arc<Comm> {
    let mut all = comm.group().members().to_vec();
    all.push(guest);
    let context = context::with_guest(comm.context());
    Arc::new(Comm::new(Group::new(all), comm.rank(), context, ""))
}

/// Whether a process may name this context for a guest: it is one of its own. Nobody gets messages of a communicator
/// that another process has made.
pub fn may_name(world: &World, rank: u32, context: u32) -> bool {
    world.contexts().owner(context, world.size()) == Some(rank)
}

/// The same as the guest, this process, has it. `context`: its number.
pub fn of_guest(world: &World, hosts: &[Peer], context: u32) -> Arc<Comm> {
    let all = [hosts, &[world.me()]].concat();
    let context = context::with_guest(world.context(context));
    Arc::new(Comm::new(Group::new(all), hosts.len() as u32, context, ""))
}
