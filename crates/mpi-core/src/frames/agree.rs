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

/// Tag, beside the context of a communicator, of the number of its frame.
const TAG: i32 = 2;

/// No frame, in the word of the first member.
const NONE: u32 = u32::MAX;

/// A frame that this process takes for a communicator of so many processes that share memory, if there is one to spare.
/// From here on it is in use: if the others cannot be told, it is given back.
pub(crate) fn take(world: &World, members: usize) -> Option<Use> {
    let freed = world.frames();
    let mut engine = world.engine().lock();
    freed.give_back(&mut engine);
    let frame = engine.frames().take(members as u32)?;
    Some(Use::of(frame, freed))
}

/// The frame that a member has taken, as the number that travels.
pub(crate) fn number(taken: Option<&Use>) -> u32 {
    taken.map_or(NONE, Use::frame)
}

/// The frame that a member has taken for the communicator, by the number that it told.
pub(crate) fn told(world: &World, number: u32) -> Option<Use> {
    let freed = world.frames();
    freed.give_back(&mut world.engine().lock());
    (number != NONE).then(|| Use::of(number, freed))
}

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
        // Nothing is remembered of the new communicator: a plan would be made for this alone.
        For::Communicator => {
            let ranks: Vec<u32> = (0..comm.size()).collect();
            internal::Side::of(comm, TAG).spread(world, &ranks, comm.rank() as usize, &word)?
        }
        For::Operation => internal::broadcast_in_turn(world, comm, 0, &word)?,
    };
    let frame = word.first_chunk().map_or(NONE, |bytes| u32::from_le_bytes(*bytes));
    Ok((frame != NONE).then(|| own.unwrap_or_else(|| of(frame))))
}
