// SPDX-License-Identifier: Apache-2.0
//! The communicators that are there from the beginning (MPI 5.0 section 7.4.1).

use std::sync::Arc;

use super::Comm;
use crate::context;
use crate::world::World;

/// The memory that is there for all processes of a node together.
const WORLD_SLAB: u32 = 0;

/// MPI_COMM_WORLD of a world: made once, by the process that keeps it.
pub fn of_world(world: &World) -> Arc<Comm> {
    let mut comm = Comm::new(
        world.group_of(0..world.size()),
        world.rank(),
        world.context(context::WORLD),
        "MPI_COMM_WORLD",
    );
    if comm.shares_memory(world) {
        comm.meet_in_slab(world, WORLD_SLAB);
    }
    if let Some(native) = world.take_native() {
        comm.set_native(native);
    }
    let comm = Arc::new(comm);
    world.revocable.begins(world.engine(), &comm);
    comm
}

/// MPI_COMM_SELF of a world: made once, by the process that keeps it.
pub fn of_self(world: &World) -> Arc<Comm> {
    let group = world.group_of([world.rank()]);
    let comm = Arc::new(Comm::new(group, 0, world.context(context::SELF), "MPI_COMM_SELF"));
    world.revocable.begins(world.engine(), &comm);
    comm
}
