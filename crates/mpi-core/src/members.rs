// SPDX-License-Identifier: Apache-2.0
//! What the members of a communicator of the library's own tell each other: for rooms that build on communicators.

use isthmus_engine::{Binding, Short};
use isthmus_schedule::{Call, Operation};

use crate::collective::{self, Form, Plain, Prepared};
use crate::comm::Comm;
use crate::error::Result;
use crate::internal;
use crate::world::World;

/// Everybody's words, by rank: as many of each; collective.
pub fn say(world: &World, comm: &Comm, mine: &[u64]) -> Result<Vec<Vec<u64>>> {
    let bytes: Vec<u8> = mine.iter().flat_map(|word| word.to_le_bytes()).collect();
    let all = internal::gather_equal(world, comm, &bytes)?;
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
    let of = |said: &[u8]| said.chunks_exact(8).map(word).collect();
    Ok(all.chunks_exact(bytes.len().max(1)).map(of).collect())
}

/// The text that `root` has; collective.
pub fn tell(world: &World, comm: &Comm, root: u32, text: &str) -> Result<String> {
    let told = internal::broadcast_all(world, comm, root, text.as_bytes())?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Returns when all have come: a barrier; collective.
pub fn meet(world: &World, comm: &Comm) -> Result<()> {
    let plain = || {
        Some(Plain {
            short: Short {
                what: Operation::Barrier,
                root: 0,
                block: 0,
                give: None,
                take: None,
                reducer: None,
            },
            count: 0,
            computes: None,
            buffer: None,
        })
    };
    let general = || Ok(Prepared::new(Call::new(Operation::Barrier, 0), Binding::nothing()));
    collective::perform(world, comm, Form::Blocking, plain, general).map(drop)
}
