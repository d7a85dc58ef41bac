// SPDX-License-Identifier: Apache-2.0
//! Communication that the library does for itself, to make communicators.
//!
//! Collective operations over a communicator use its next sequence number like those of the program. Messages between
//! some of its processes ([`Side`]) travel in a context beside it ([`context::aside`]).

use isthmus_abi::constants as abi;
use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{
    Binding, Block, BoundBuffer, Channel, Context, Engine, EngineError, Guard, Members, Mode, Next, ReceiveBuffer,
    Request, SendBuffer, Short,
};
use isthmus_schedule::{Blocks, Call, Operation};

use crate::comm::{Comm, Whereabouts};
use crate::context;
use crate::error::Result;
use crate::fail;
use crate::group::Group;
use crate::planned::{Planned, Role};
use crate::world::World;

fn start(world: &World, comm: &Comm, planned: Planned, next: Option<Next>) -> Result<Request> {
    let operation = world.operations().agreement(planned.call.operation);
    planned.start_as(world, comm, comm.next_sequence(), operation, next)
}

fn planned(comm: &Comm, call: Call, binding: Binding) -> Planned {
    Planned::new(call, binding, Role::Member).for_library(comm)
}

fn run(world: &World, comm: &Comm, call: Call, binding: Binding) -> Result<()> {
    world
        .wait(start(world, comm, planned(comm, call, binding), None)?)
        .map(drop)
}

/// Nobody ends it before all have begun it; collective.
pub(crate) fn start_barrier(world: &World, comm: &Comm) -> Result<Request> {
    let binding = Binding::bytes(BoundBuffer::none(), BoundBuffer::none());
    start(
        world,
        comm,
        planned(comm, Call::new(Operation::Barrier, 0), binding),
        None,
    )
}

fn bytes(memory: &OwnMemory, length: usize) -> Result<BoundBuffer> {
    let byte = Datatype::of(Basic::Byte);
    Ok(BoundBuffer::one(Block::own(memory, &byte, length as u64)?))
}

fn bcast(root: u32, length: usize) -> Call {
    let mut call = Call::new(Operation::Bcast, length as u64);
    call.root = root;
    call
}

/// Does a part of a call that makes a communicator or opens a file, in memory that all members share, and waits for its
/// end. `None`: there is none, or the block is too long for that, which all members find alike; nothing was done.
fn set_up(world: &World, comm: &Comm, short: &Short) -> Option<Result<()>> {
    if !comm.shortcuts(world).memory() || comm.channel().special.is_any() {
        return None;
    }
    let operation = world.operations().agreement(short.what);
    let call = world.engine().group(comm.channel(), operation, comm.sequence());
    let done = call.set_up(short)?;
    comm.next_sequence();
    Some(done.map_err(|error| (&error).into()))
}

/// The content that `root` has, of equal length everywhere; collective.
pub(crate) fn broadcast(world: &World, comm: &Comm, root: u32, content: &[u8]) -> Result<Vec<u8>> {
    let (length, gives) = (odd(content.len()), comm.rank() == root);
    let mut words = Vec::with_capacity(length);
    words.extend_from_slice(content);
    words.resize(length, 0);
    // These bytes themselves go and come.
    let memory = OwnMemory::of(words);
    let short = Short {
        what: Operation::Bcast,
        root,
        block: length as u64,
        give: gives.then(|| memory.reading()),
        take: (!gives).then(|| memory.memory()),
        reducer: None,
    };
    if let Some(done) = set_up(world, comm, &short) {
        done?;
        drop(short);
        let mut words = memory.into_content();
        words.truncate(content.len());
        return Ok(words);
    }
    let memory = OwnMemory::of(content.to_vec());
    let binding = Binding::bytes(BoundBuffer::none(), bytes(&memory, content.len())?);
    run(world, comm, bcast(root, content.len()), binding)?;
    Ok(memory.into_content())
}

/// As [`broadcast`], as a part of what took the last turn in the memory that the members share: whoever waits in vain
/// is told which members do something else there.
pub(crate) fn broadcast_in_turn(world: &World, comm: &Comm, root: u32, content: &[u8]) -> Result<Vec<u8>> {
    let memory = OwnMemory::with(content);
    let binding = Binding::bytes(BoundBuffer::none(), bytes(&memory, content.len())?);
    let planned = Planned::new(bcast(root, content.len()), binding, Role::Member);
    let request = start(world, comm, planned, None)?;
    world.engine().lock().turns(comm.channel()).watch(request);
    world.wait(request)?;
    Ok(memory.content())
}

/// As [`broadcast`] for content whose length only `root` knows.
pub(crate) fn broadcast_all(world: &World, comm: &Comm, root: u32, content: &[u8]) -> Result<Vec<u8>> {
    let length = broadcast(world, comm, root, &(content.len() as u64).to_le_bytes())?;
    let length = word(&length) as usize;
    let mut all = content.to_vec();
    all.resize(length, 0);
    broadcast(world, comm, root, &all)
}

/// As [`broadcast`] without waiting; `then` gets the content when it is there. It must not use the engine.
pub(crate) fn broadcast_later(
    world: &World,
    comm: &Comm,
    content: &[u8],
    then: impl FnOnce(&[u8]) + Send + 'static,
) -> Result<Request> {
    let memory = OwnMemory::with(content);
    let binding = Binding::bytes(BoundBuffer::none(), bytes(&memory, content.len())?);
    let next: Next = Box::new(move || {
        then(&memory.content());
        None
    });
    start(world, comm, planned(comm, bcast(0, content.len()), binding), Some(next))
}

/// An odd number of bytes, as few operations of programs have: if one of those meets one of ours, both find out at
/// once.
fn odd(length: usize) -> usize {
    length | 1
}

/// Everybody's content, of equal length everywhere, by rank; collective.
pub(crate) fn gather_equal(world: &World, comm: &Comm, mine: &[u8]) -> Result<Vec<u8>> {
    let length = mine.len();
    let mut content = vec![0; length * comm.size() as usize];
    let at = length * comm.rank() as usize;
    content[at..at + length].copy_from_slice(mine);
    let total = content.len();
    let memory = OwnMemory::of(content);
    let mut call = Call::new(Operation::Allgather, length as u64);
    call.in_place = true;
    let binding = Binding::bytes(BoundBuffer::none(), bytes(&memory, total)?);
    run(world, comm, call, binding)?;
    Ok(memory.into_content())
}

/// Everybody's content, by rank; collective.
pub(crate) fn gather_all(world: &World, comm: &Comm, mine: &[u8]) -> Result<Vec<Vec<u8>>> {
    let lengths = gather_equal(world, comm, &(mine.len() as u64).to_le_bytes())?;
    let lengths: Vec<u64> = lengths.chunks_exact(8).map(word).collect();
    let mut call = Call::new(Operation::Allgatherv, 0);
    call.blocks = Blocks::known(lengths.iter().copied());
    call.in_place = true;
    let total = call.blocks.offset(comm.size()) as usize;
    let at = call.blocks.offset(comm.rank()) as usize;
    let mut content = vec![0; total];
    content[at..at + mine.len()].copy_from_slice(mine);
    let memory = OwnMemory::of(content);
    let binding = Binding::bytes(BoundBuffer::none(), bytes(&memory, total)?);
    run(world, comm, call, binding)?;
    let content = memory.into_content();
    let mut rest = &content[..];
    let mut each = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (head, tail) = rest.split_at(length as usize);
        each.push(head.to_vec());
        rest = tail;
    }
    Ok(each)
}

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |b| u64::from_le_bytes(*b))
}

/// Most bytes that a leader tells another one, who may be of another job.
const LONGEST: u64 = u32::MAX as u64;

/// Messages between some processes of a communicator, or of the job, that construct another communicator.
pub(crate) struct Side {
    channel: Channel,
    tag: i32,
    /// The communicator, if it is among processes of one.
    of: Option<Context>,
    /// Without one of these nobody waits for the others: who lives may have given up.
    needs: Option<Members>,
    /// The same when this communicator is revoked.
    within: Option<Context>,
}

impl Side {
    /// Among processes of a communicator.
    pub(crate) fn of(comm: &Comm, tag: i32) -> Self {
        let mut channel = comm.channel().clone();
        let of = Some(channel.context);
        channel.context = context::aside(channel.context);
        channel.special = channel.special.beside();
        let needs = None;
        Self {
            channel,
            tag,
            of,
            needs,
            within: None,
        }
    }

    /// Among processes who go by their ranks there. `tag`: all that agrees on the call.
    pub(crate) fn among(all: &Whereabouts<'_>, tag: i32) -> Self {
        let channel = all.groups();
        Self {
            channel,
            tag,
            of: None,
            needs: None,
            within: None,
        }
    }

    /// For a call that fails at all of a group if one of them is lost, whether it talks to that one or not.
    pub(crate) fn of_all(self, group: &Group) -> Self {
        let needs = Some(Members::of(group.members()));
        Self { needs, ..self }
    }

    /// For a call that fails at all members of this communicator when it is revoked.
    pub(crate) fn within(self, whole: Context) -> Self {
        let within = Some(whole);
        Self { within, ..self }
    }

    /// Why nobody waits any more.
    fn given_up(&self, world: &World, engine: &Engine) -> Option<EngineError> {
        let lost = self.needs.as_ref().and_then(|needs| engine.core.lost_of(needs));
        let is_revoked = self.within.is_some_and(|whole| world.revocable.is_revoked(whole));
        lost.or_else(|| is_revoked.then_some(EngineError::Revoked))
    }

    /// The engine, unless the communicator was revoked: nobody ends messages that begin after that.
    fn usable<'w>(&self, world: &'w World) -> Result<Guard<'w>> {
        let engine = world.engine().lock();
        match self.of.is_some_and(|of| world.revocable.is_revoked(of)) {
            false => Ok(engine),
            true => Err((&EngineError::Revoked).into()),
        }
    }

    fn start_send(&self, world: &World, to: u32, content: &OwnMemory) -> Result<Request> {
        let (low, high) = content.bounds();
        let length = high.abs_diff(low) as u64;
        let buffer = SendBuffer::contiguous(content.reading(), 0, length).into_owned();
        let mut engine = self.usable(world)?;
        Ok(engine.isend(&self.channel, to, self.tag, Mode::Standard, buffer))
    }

    fn receive(&self, world: &World, from: u32, length: usize) -> Result<Vec<u8>> {
        let memory = OwnMemory::of(vec![0; length]);
        let buffer = ReceiveBuffer::contiguous(memory.memory(), 0, length as u64);
        let mut engine = self.usable(world)?;
        let request = engine.irecv(&self.channel, Some(from), Some(self.tag), buffer);
        drop(engine);
        let came = world.engine().wait(|engine| {
            let came = engine.core.take(request).map(Ok);
            came.or_else(|| self.given_up(world, engine).map(Err))
        });
        let came = match came {
            Ok(came) => came,
            Err(lost) => {
                world.engine().lock().cancel(request);
                _ = world.wait(request);
                return Err((&lost).into());
            }
        };
        match &came.error {
            Some(EngineError::Truncate { .. }) => {}
            Some(error) => return Err(error.into()),
            None if came.bytes == length as u64 => return Ok(memory.into_content()),
            None => {}
        }
        fail!(
            abi::MPI_ERR_OTHER,
            "rank {from} has sent something else than this call: it makes another communicator, by another function or of another group, \
             with the same tag"
        )
    }

    /// Gives `mine` to a process and gets its content.
    pub(crate) fn exchange(&self, world: &World, with: u32, mine: &[u8]) -> Result<Vec<u8>> {
        let (length, content) = (
            OwnMemory::with(&(mine.len() as u64).to_le_bytes()),
            OwnMemory::with(mine),
        );
        let sent = [
            self.start_send(world, with, &length)?,
            self.start_send(world, with, &content)?,
        ];
        let theirs = self.receive(world, with, 8)?;
        let length = word(&theirs);
        if length > LONGEST {
            fail!(
                abi::MPI_ERR_OTHER,
                "rank {with} wants to tell {length} bytes of its group"
            );
        }
        let theirs = self.receive(world, with, length as usize)?;
        for request in sent {
            world.wait(request)?;
        }
        Ok(theirs)
    }

    /// Returns when all of some processes, who call this together with the same list, have come. `me`: own place in the
    /// list. Whoever finds that one of them is lost goes on for the others, and says so in the end. (Hensgen, Finkel,
    /// Manber: Two algorithms for barrier synchronization, 1988.)
    pub(crate) fn meet(&self, world: &World, ranks: &[u32], me: usize) -> Result<()> {
        let (nothing, count) = (OwnMemory::with(&[]), ranks.len());
        let (mut step, mut outcome) = (1, Ok(()));
        while step < count {
            let sent = self.start_send(world, ranks[(me + step) % count], &nothing)?;
            let heard = self.receive(world, ranks[(me + count - step) % count], 0);
            let sent = world.wait(sent);
            outcome = outcome.and_then(|()| heard.and(sent).map(drop));
            step *= 2;
        }
        outcome
    }

    /// The content that the first of some processes has, of equal length at all of them, who call this together with
    /// the same list. `me`: own place in the list. A binomial tree.
    pub(crate) fn spread(&self, world: &World, ranks: &[u32], me: usize, content: &[u8]) -> Result<Vec<u8>> {
        if self.needs.is_some() {
            let mut engine = world.engine().lock();
            // Who sends, or finds what has come before, does not wait, and would hear of no loss.
            if let Some(asker) = world.asker.get() {
                asker.hear(&mut engine);
            }
            if let Some(lost) = self.given_up(world, &engine) {
                return Err((&lost).into());
            }
        }
        let parent_bit = if me == 0 {
            ranks.len().next_power_of_two()
        } else {
            me & me.wrapping_neg()
        };
        let content = match me {
            0 => content.to_vec(),
            _ => self.receive(world, ranks[me - parent_bit], content.len())?,
        };
        let mut bit = parent_bit >> 1;
        if bit == 0 {
            return Ok(content);
        }
        let memory = OwnMemory::of(content.clone());
        let mut sent = Vec::new();
        while bit > 0 {
            if let Some(&child) = ranks.get(me + bit) {
                sent.push(self.start_send(world, child, &memory)?);
            }
            bit >>= 1;
        }
        for request in sent {
            world.wait(request)?;
        }
        Ok(content)
    }
}

/// What a process wants of a split.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SplitWish {
    pub(super) color: Option<i32>,
    pub(super) key: i32,
    /// Taken for the case that this process is the one whose numbers count.
    pub(super) numbers: context::Numbers,
}

/// ```text
///  0             4         8     12              24
///  | has colour  | colour  | key | contexts (3)  |   little-endian words
/// ```
const WISH: usize = 12 + 4 * context::MOST;

impl SplitWish {
    fn encode(self) -> [u8; WISH] {
        let [a, b, c] = self.numbers;
        let words = [
            u32::from(self.color.is_some()),
            self.color.unwrap_or(0) as u32,
            self.key as u32,
            a,
            b,
            c,
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
            numbers: [word(3), word(4), word(5)],
        }
    }
}

/// Everybody's wishes, by rank; collective.
pub(crate) fn gather_wishes(world: &World, comm: &Comm, mine: SplitWish) -> Result<Vec<SplitWish>> {
    let all = gather_equal(world, comm, &mine.encode())?;
    Ok(all.chunks_exact(WISH).map(SplitWish::decode).collect())
}

/// Numbers as they travel.
pub(crate) fn encode(numbers: context::Numbers) -> [u8; size_of::<context::Numbers>()] {
    let mut bytes = [0; size_of::<context::Numbers>()];
    for (place, number) in bytes.chunks_exact_mut(4).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Numbers that have travelled.
pub(crate) fn decode(bytes: &[u8]) -> context::Numbers {
    let mut numbers = [0; context::MOST];
    for (number, bytes) in numbers.iter_mut().zip(bytes.chunks_exact(4)) {
        *number = bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    }
    numbers
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
                numbers: [12, 14, 16],
            };
            let back = SplitWish::decode(&wish.encode());
            assert_eq!((back.color, back.key, back.numbers), (color, -5, [12, 14, 16]));
        }
    }
}
