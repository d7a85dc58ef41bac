// SPDX-License-Identifier: Apache-2.0
//! Collective operations that the library runs for itself: agreeing on contexts, splitting.

use std::sync::Arc;

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, Reducer};
use isthmus_schedule::{Call, Operation};

use crate::collective::Prepared;
use crate::comm::Comm;
use crate::error::Result;
use crate::world::World;

/// The greatest of the members' values; collective.
pub(crate) fn greatest(world: &World, comm: &Comm, value: u32) -> Result<u32> {
    let memory = OwnMemory::with(&value.to_ne_bytes());
    let datatype = Datatype::of(Basic::Uint32);
    let block = Block::own(&memory, &datatype, 1)?;
    let reducer: Reducer = Arc::new(|operand, target, _, _| {
        if number(operand) > number(target) {
            target.copy_from_slice(operand);
        }
    });
    let mut call = Call::new(Operation::Allreduce, 1);
    call.in_place = true;
    call.unit_bytes = 4;
    let binding = Binding::elements(BoundBuffer::none(), BoundBuffer::one(block), datatype, reducer).on_any_thread();
    run(world, comm, call, binding)?;
    Ok(number(&memory.content()))
}

/// Runs a collective operation of the library's own.
fn run(world: &World, comm: &Comm, call: Call, binding: Binding) -> Result<()> {
    let started = Prepared::new(call, binding).start_as(world, comm, comm.next_sequence(), world.agreement())?;
    world.wait(started).map(drop)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |b| u32::from_ne_bytes(*b))
}

/// What a process wants of a split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitWish {
    pub(crate) color: Option<i32>,
    pub(crate) key: i32,
    pub(crate) context: u32,
}

/// ```text
///  0             4         8     12
///  | has colour  | colour  | key | context |   little-endian, 16 bytes
/// ```
const WISH: usize = 16;

impl SplitWish {
    fn encode(self) -> [u8; WISH] {
        let words = [
            u32::from(self.color.is_some()),
            self.color.unwrap_or(0) as u32,
            self.key as u32,
            self.context,
        ];
        let mut out = [0; WISH];
        for (place, word) in out.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    fn decode(bytes: &[u8]) -> Self {
        let word = |at: usize| bytes[4 * at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        Self {
            color: (word(0) != 0).then_some(word(1) as i32),
            key: word(2) as i32,
            context: word(3),
        }
    }
}

/// Everybody's wishes, by rank; collective.
pub(crate) fn gather_wishes(world: &World, comm: &Comm, mine: SplitWish) -> Result<Vec<SplitWish>> {
    let mut content = vec![0; WISH * comm.size() as usize];
    let at = WISH * comm.rank() as usize;
    content[at..at + WISH].copy_from_slice(&mine.encode());
    let memory = OwnMemory::with(&content);
    let block = Block::own(&memory, &Datatype::of(Basic::Byte), content.len() as u64)?;
    let mut call = Call::new(Operation::Allgather, WISH as u64);
    call.in_place = true;
    let binding = Binding::bytes(BoundBuffer::none(), BoundBuffer::one(block));
    run(world, comm, call, binding)?;
    Ok(memory.content().chunks_exact(WISH).map(SplitWish::decode).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_survive_the_wire() {
        for color in [None, Some(-1), Some(7)] {
            let wish = SplitWish {
                color,
                key: -5,
                context: 12,
            };
            let back = SplitWish::decode(&wish.encode());
            assert_eq!((back.color, back.key, back.context), (color, -5, 12));
        }
    }
}
