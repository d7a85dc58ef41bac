// SPDX-License-Identifier: Apache-2.0
//! How the members of a group get a slab: the first one takes it and tells the others.

use isthmus_engine::Context;

use crate::comm::Comm;
use crate::error::Result;
use crate::group::Group;
use crate::internal;
use crate::slabs::Use;
use crate::world::World;

/// Who a slab is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum For {
    /// The communicator.
    Communicator,
    /// One of its persistent operations, which has taken its turn in the memory of the communicator.
    Operation,
}

/// Tag, beside the context of a communicator, of the number of its slab.
const TAG: i32 = 2;

/// No slab, in the word of the first member.
const NONE: u32 = u32::MAX;

impl For {
    fn uses(self, world: &World, slab: u32) -> Use {
        match self {
            Self::Communicator => Use::of(slab, world.slabs()),
            Self::Operation => Use::lent(slab, world.slabs()),
        }
    }

    /// A slab that this process takes for so many processes, if there is one to spare. From here on it is in use: if
    /// the others cannot be told, it is given back.
    fn take(self, world: &World, members: u32) -> Option<Use> {
        give_back(world);
        let may = self == Self::Communicator || world.slabs().may_lend();
        let slab = may.then(|| world.engine().lock().slabs().take(members)).flatten()?;
        Some(self.uses(world, slab))
    }

    /// The slab that another process has taken, by the number that it told.
    fn told(self, world: &World, number: u32) -> Option<Use> {
        give_back(world);
        (number != NONE).then(|| self.uses(world, number))
    }
}

fn give_back(world: &World) {
    world.slabs().give_back(&mut world.engine().lock());
}

/// A slab that this process takes for a communicator of so many processes that share memory.
pub(crate) fn take(world: &World, members: usize) -> Option<Use> {
    For::Communicator.take(world, members as u32)
}

/// The slab that a member has taken, as the number that travels.
pub(crate) fn number(taken: Option<&Use>) -> u32 {
    taken.map_or(NONE, Use::slab)
}

/// The slab that a member has taken for the communicator, by the number that it told.
pub(crate) fn told(world: &World, number: u32) -> Option<Use> {
    For::Communicator.told(world, number)
}

/// A slab for all members of a communicator that share memory, if there is one to spare; collective. `part_of`: of
/// what it is a new part.
pub(crate) fn agree(world: &World, comm: &Comm, whose: For, part_of: Option<&(Group, Context)>) -> Result<Option<Use>> {
    let first = comm.rank() == 0;
    let own = first.then(|| whose.take(world, comm.size())).flatten();
    let word = number(own.as_ref()).to_le_bytes();
    let word = match whose {
        // Nothing is remembered of the new communicator: a plan would be made for this alone.
        For::Communicator => {
            let ranks: Vec<u32> = (0..comm.size()).collect();
            let side = internal::Side::of(comm, TAG);
            let side = match part_of {
                Some((all, whole)) => side.of_all(all).within(*whole),
                None => side.of_all(comm.group()),
            };
            side.spread(world, &ranks, comm.rank() as usize, &word)?
        }
        For::Operation => internal::broadcast_in_turn(world, comm, 0, &word)?,
    };
    if first {
        return Ok(own);
    }
    let told = word.first_chunk().map_or(NONE, |bytes| u32::from_le_bytes(*bytes));
    Ok(whose.told(world, told))
}
