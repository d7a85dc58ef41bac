// SPDX-License-Identifier: Apache-2.0
//! How the members of a group get a frame: the first one takes it and tells the others.

use super::Use;
use crate::comm::Comm;
use crate::error::Result;
use crate::internal;
use crate::world::World;

/// Who a frame is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// The communicator.
    Communicator,
    /// One of its persistent operations, which has taken its turn in the memory of the communicator.
    Operation,
}

/// No frame, in the word of the first member.
const NONE: u32 = u32::MAX;

/// A frame for all members of a communicator that share memory, if there is one to spare; collective.
pub(crate) fn agree(world: &World, comm: &Comm, whose: For) -> Result<Option<Use>> {
    let freed = world.frames();
    let of = |frame| match whose {
        For::Communicator => Use::of(frame, freed),
        For::Operation => Use::lent(frame, freed),
    };
    let mut engine = world.engine().lock();
    freed.give_back(&mut engine);
    let takes = comm.rank() == 0 && (whose == For::Communicator || freed.may_lend());
    let taken = takes.then(|| engine.frames().take(comm.size())).flatten();
    drop(engine);
    // From here on it is in use: if the others cannot be told, it is given back.
    let own = taken.map(of);
    let word = taken.unwrap_or(NONE).to_le_bytes();
    let word = match whose {
        For::Communicator => internal::broadcast(world, comm, 0, &word)?,
        For::Operation => internal::broadcast_in_turn(world, comm, 0, &word)?,
    };
    let frame = word.first_chunk().map_or(NONE, |bytes| u32::from_le_bytes(*bytes));
    Ok((frame != NONE).then(|| own.unwrap_or_else(|| of(frame))))
}
