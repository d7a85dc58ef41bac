// SPDX-License-Identifier: Apache-2.0
//! What the members of a communicator of the library's own tell each other: for rooms that build on communicators.

use std::sync::Arc;

use isthmus_abi::constants as abi;
use isthmus_datatype::op::{Predefined, Spacing};
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer, Short};
use isthmus_schedule::{Call, Operation};

use crate::collective::{self, Form, Performed, Plain, Prepared};
use crate::comm::Comm;
use crate::error::{Error, Result};
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

/// The content that `root` has, whose length only it knows; collective.
pub fn tell_content(world: &World, comm: &Comm, root: u32, content: &[u8]) -> Result<Vec<u8>> {
    internal::broadcast_all(world, comm, root, content)
}

/// The text that `root` has; collective.
pub fn tell(world: &World, comm: &Comm, root: u32, text: &str) -> Result<String> {
    let told = tell_content(world, comm, root, text.as_bytes())?;
    Ok(String::from_utf8_lossy(&told).into_owned())
}

/// Returns when all have come: a barrier; collective.
pub fn meet(world: &World, comm: &Comm) -> Result<()> {
    come(world, comm, Form::Blocking).map(drop)
}

/// The same, or until one of them is lost: then it is the error, and nobody waits for anybody.
pub fn meet_or_lose(world: &World, comm: &Comm) -> Result<()> {
    let members = &comm.channel().members;
    if let Some(lost) = world.engine().lock().core.lost_of(members) {
        return Err((&lost).into());
    }
    let Performed::Started(request) = come(world, comm, Form::Nonblocking)? else {
        return Ok(());
    };
    let lost = world.engine().wait(|engine| {
        if engine.core.test(request).is_some() {
            return Some(None);
        }
        engine.core.lost_of(members).map(Some)
    });
    match lost {
        None => world.wait(request).map(drop),
        Some(lost) => {
            world.engine().lock().release(request);
            Err((&lost).into())
        }
    }
}

fn come(world: &World, comm: &Comm, form: Form) -> Result<Performed> {
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
    collective::perform(world, comm, form, plain, general)
}

/// The sum of what all have for this process. `each`: what this one has for each, by rank; collective.
pub fn sum(world: &World, comm: &Comm, each: &[u64]) -> Result<u64> {
    let words = Datatype::of(Basic::Uint64);
    let add = Predefined::Sum.on(Basic::Uint64);
    let add = add.map_err(|error| Error::new(abi::MPI_ERR_OP, error.to_string()))?;
    let bytes: Vec<u8> = each.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (mine, sum) = (OwnMemory::with(&bytes), OwnMemory::new(0, 8));
    let general = || {
        let mut call = Call::new(Operation::ReduceScatterBlock, 1);
        call.unit_bytes = 8;
        let count = each.len() as u64;
        let send = Block::reading(mine.reading(), &words, count)?.described(&words, count);
        let receive = Block::own(&sum, &words, 1)?.described(&words, 1);
        let (send, receive) = (BoundBuffer::one(send), BoundBuffer::one(receive));
        let reducer = Arc::new(move |operand: &[u8], target: &mut [u8], _, is_left| {
            add.apply(Spacing::Packed, operand, target, is_left);
        });
        let binding = Binding::elements(send, receive, words.clone(), reducer);
        Ok(Prepared::new(call, binding.on_any_thread()))
    };
    collective::perform(world, comm, Form::Blocking, || None, general)?;
    Ok(sum
        .content()
        .first_chunk()
        .map_or(0, |bytes| u64::from_ne_bytes(*bytes)))
}
