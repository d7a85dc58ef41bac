// SPDX-License-Identifier: Apache-2.0
//! A communicator is revoked; how others hear of it: [`crate::revocable`].

use isthmus_abi::constants as abi;

use crate::comm::Comm;
use crate::error::Result;
use crate::fail;
use crate::revocable::{Cause, Revoked, spread};
use crate::world::World;

/// MPIX_Comm_revoke: everything that is pending on the communicator ends with an error, at all members, and everything
/// later but what helps to go on. Neither collective nor synchronizing.
pub fn revoke(world: &World, comm: &Comm) -> Result<()> {
    if comm.is_revoked() {
        return Ok(());
    }
    if !comm.can_be_revoked() {
        fail!(
            abi::MPI_ERR_UNSUPPORTED_OPERATION,
            "a communicator of a machine's own MPI cannot be revoked ({} is one); a job with isthmus run --on-loss go-on, or with \
             ISTHMUS_VENDOR_COMMS=0, has none of those",
            comm.describe()
        );
    }
    because(world, comm, Cause::Program);
    Ok(())
}

/// A member is lost: nobody waits for all in MPI_Comm_disconnect any more.
pub(crate) fn part(world: &World, comm: &Comm) {
    because(world, comm, Cause::Loss);
}

/// What is pending of a communicator ends at this process, which leaves it.
pub(crate) fn end_here(world: &World, comm: &Comm) {
    let mut engine = world.engine().lock();
    let channels = comm.hear(Cause::Program).unwrap_or_default();
    channels
        .iter()
        .for_each(|channel| isthmus_engine::revoke(&mut engine, channel));
}

fn because(world: &World, comm: &Comm, cause: Cause) {
    let mut engine = world.engine().lock();
    if let Some(channels) = comm.hear(cause) {
        spread(comm, &mut engine, &channels, cause);
    }
}
