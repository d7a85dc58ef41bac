// SPDX-License-Identifier: Apache-2.0
//! What members of a step offer each other to copy, and how one copies the blocks of others, or writes its own.
//!
//! ```text
//!  who gives, and the decider     cell: bytes of a block (u64, native)
//!                                       what the decider wants (u64): 1 copy from each other
//!                                                                     2 say when it is over
//!                                                                     4 compute a part of the result
//!                                       the transport's offer, or nothing: data in pieces, or none;
//!                                       of the root of a gather: where the result goes, if that is the user's memory;
//!                                       of that of a shared reduction: what it gives, where the result goes
//! ```

use isthmus_datatype::raw::{ReadMemory, UserMemory, WriteMemory};
use isthmus_protocol::ways::{Delivery, Turn};
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{OFFER, SharedSlabs, Slab};

use crate::EngineError;
use crate::base::binding::{BoundBuffer, Side, Sides};
use crate::base::mistake::{no_memory, wrong_length};
use crate::groups::{CellCollective, Pulling};

/// Bytes before the transport's offer.
const WORDS: usize = 2 * size_of::<u64>();
/// What the decider wants.
const COPY: u64 = 1;
const TELL: u64 = 2;
const SHARE: u64 = 4;

/// Whether the blocks of others come where something is that a member gives, if both are one buffer: then nobody can
/// copy from it. (What a member gives to a gather stays where it is.)
pub(super) fn replaces_what_is_given(what: What) -> bool {
    !matches!(what, What::Gather | What::Allgather)
}

/// Whether the blocks of both buffers of a member lie in one piece each, so that they can be copied.
pub(super) fn in_one_piece(sides: &Sides) -> bool {
    [&sides.give, &sides.take]
        .into_iter()
        .flatten()
        .all(|(buffer, _)| buffer.is_plain())
}

/// Whether what a member takes comes where something is that it gives.
pub(super) fn is_in_place(give: &Option<Side>, take: &Option<Side>) -> bool {
    let (Some((give, _)), Some((take, _))) = (give, take) else {
        return false;
    };
    let span = |buffer: &BoundBuffer| {
        let memory = buffer.readable(0, buffer.length())?;
        Some(memory.address()..memory.address() + buffer.length() as usize)
    };
    // What lies in pieces is not offered.
    span(give)
        .zip(span(take))
        .is_some_and(|(give, take)| give.start < take.end && take.start < give.end)
}

/// The cell in which a member offers: the only giver of a round has the first one.
fn offering(meet: &CellCollective, member: u32) -> u32 {
    match meet.what {
        What::Bcast | What::Scatter => 0,
        _ => member,
    }
}

pub(super) fn has_offered(meet: &CellCollective, member: u32, pulling: &Pulling, slabs: &dyn SharedSlabs) -> bool {
    let cell = offering(meet, member);
    slabs.have_arrived(meet.slab(), pulling.offers(), cell..cell + 1) == 1
}

pub(super) fn offer(meet: &CellCollective, pulling: &Pulling, slabs: &mut dyn SharedSlabs) -> Result<(), EngineError> {
    let (slab, cell, round) = (*meet.slab(), offering(meet, meet.slab().me), pulling.offers());
    let is_shared_here = pulling.shared && slab.me == meet.root;
    let read = |(memory, bytes): (ReadMemory, u64)| slabs.offer(&memory, bytes);
    let written = |(memory, bytes): (UserMemory, u64)| slabs.offer_target(&memory, bytes);
    let offers = match meet.what {
        What::Gather => [taken_of_all(meet).map(written), None],
        What::Reduce if is_shared_here => [given_whole(meet).map(read), taken_of_all(meet).map(written)],
        _ => [given_to_others(meet).map(read), None],
    };
    let bytes = WORDS + offers.iter().flatten().count() * OFFER;
    let mut to = slabs.give(&slab, round, cell, bytes).map_err(no_memory)?;
    let wanted = pulling.turn.map_or(0, |turn| {
        u64::from(turn.way == Delivery::Pull) * COPY + u64::from(turn.timed) * TELL + u64::from(is_shared_here) * SHARE
    });
    to.write(0, &meet.block.to_ne_bytes());
    to.write(8, &wanted.to_ne_bytes());
    for (place, offer) in offers.iter().flatten().enumerate() {
        to.write((WORDS + place * OFFER) as isize, offer);
    }
    slabs.arrive(&slab, round, cell..cell + 1);
    Ok(())
}

/// What a member has offered: bytes of a block, what it wants as decider, and its offers.
fn offered(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    slabs: &dyn SharedSlabs,
) -> (u64, u64, [Option<[u8; OFFER]>; 2]) {
    let most = WORDS + 2 * OFFER;
    let (memory, said) = slabs.given(meet.slab(), pulling.offers(), offering(meet, member), most);
    let word = |at| {
        let mut bytes = [0; 8];
        memory.read(at, &mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let offer = |place: usize| {
        let (at, mut bytes) = (WORDS + place * OFFER, [0; OFFER]);
        memory.read(at as isize, &mut bytes);
        (said >= (at + OFFER) as u64).then_some(bytes)
    };
    (word(0), word(8), [offer(0), offer(1)])
}

/// What the decider wants, and whether each is to compute a part.
pub(super) fn wanted(meet: &CellCollective, pulling: &Pulling, slabs: &dyn SharedSlabs) -> (Turn, bool) {
    let (_, wanted, _) = offered(meet, pulling.decider, pulling, slabs);
    let turn = Turn {
        way: if wanted & COPY != 0 {
            Delivery::Pull
        } else {
            Delivery::Stream
        },
        timed: wanted & TELL != 0,
    };
    (turn, wanted & SHARE != 0)
}

/// This member has its blocks, or could not copy them.
pub(super) fn tell(slab: &Slab, pulling: &Pulling, slabs: &mut dyn SharedSlabs) -> Result<(), EngineError> {
    let (round, me) = (pulling.outcomes(), slab.me);
    let mut cell = slabs.give(slab, round, me, 1).map_err(no_memory)?;
    cell.write(0, &[u8::from(pulling.failed)]);
    slabs.arrive(slab, round, me..me + 1);
    Ok(())
}

/// What a member offers; `Ok(None)`: nothing that can be copied. Members whose blocks differ in length do not go on
/// together: they may not even take as many rounds.
pub(super) fn found(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    slabs: &dyn SharedSlabs,
) -> Result<Option<[u8; OFFER]>, EngineError> {
    let [offer, _] = found_all(meet, member, pulling, slabs)?;
    Ok(offer)
}

/// The same with where the result of a shared reduction goes.
pub(super) fn found_all(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    slabs: &dyn SharedSlabs,
) -> Result<[Option<[u8; OFFER]>; 2], EngineError> {
    let (length, _, offers) = offered(meet, member, pulling, slabs);
    if length != meet.block {
        return Err(wrong_length(meet.rank_of(member), length, meet.block));
    }
    Ok(offers)
}

/// `Ok(false)`: its block cannot be copied.
pub(super) fn copy_from(
    meet: &CellCollective,
    member: u32,
    pulling: &Pulling,
    slabs: &mut dyn SharedSlabs,
) -> Result<bool, EngineError> {
    let length = meet.block;
    if member == meet.slab().me {
        return Ok(copy_own(meet, member));
    }
    let offer = found(meet, member, pulling, slabs)?;
    let (Some(offer), Some(into)) = (offer, taken_whole(meet, member)) else {
        return Ok(false);
    };
    let peer = meet.members.peer(meet.rank_of(member));
    Ok(slabs.fetch(peer, &offer, before(meet), into, length))
}

/// Writes the own block to what the root of a gather offers for the result; false: that is not possible.
pub(super) fn write_to(meet: &CellCollective, root: u32, pulling: &Pulling, slabs: &mut dyn SharedSlabs) -> bool {
    // A block that is not as long as the root expects goes through cells: it is the root's mistake to find.
    let (length, _, [offer, _]) = offered(meet, root, pulling, slabs);
    let offer = offer.filter(|_| length == meet.block);
    let (Some(offer), Some((own, bytes))) = (offer, given_whole(meet)) else {
        return false;
    };
    let (slab, peer) = (*meet.slab(), meet.members.peer(meet.rank_of(root)));
    let before = u64::from(slab.me) * bytes;
    slabs.store(&slab, root, peer, &offer, before, own.part(0, bytes as usize))
}

/// Copies what this member gives itself.
fn copy_own(meet: &CellCollective, me: u32) -> bool {
    if meet.take.is_none() {
        return true;
    }
    let (Some((memory, _)), Some(mut into)) = (given_whole(meet), taken_whole(meet, me)) else {
        return false;
    };
    let own = memory.shifted(before(meet) as isize);
    if own.address() != into.address() {
        into.copy(0, &own, 0, meet.block as usize);
    }
    true
}

/// Bytes in what a member gives before the block for this one.
pub(super) fn before(meet: &CellCollective) -> u64 {
    match meet.what {
        What::Scatter | What::Alltoall | What::ReduceScatterBlock => u64::from(meet.slab().me) * meet.block,
        _ => 0,
    }
}

/// What this member offers others to copy, and its bytes; of a reduction the root takes only.
fn given_to_others(meet: &CellCollective) -> Option<(ReadMemory, u64)> {
    let takes_only = meet.what == What::Reduce && meet.slab().me == meet.root;
    let stays = !replaces_what_is_given(meet.what) || !is_in_place(&meet.give, &meet.take);
    given_whole(meet).filter(|_| stays && !takes_only)
}

/// Everything that this member gives, if it lies in one piece, and its bytes.
pub(super) fn given_whole(meet: &CellCollective) -> Option<(ReadMemory, u64)> {
    let (buffer, at) = meet.give.as_ref()?;
    let blocks = match meet.what {
        What::Scatter | What::Alltoall | What::ReduceScatterBlock => meet.slab().members,
        _ => 1,
    };
    let bytes = meet.block * u64::from(blocks);
    Some((buffer.readable(*at, bytes)?, bytes))
}

/// Whether others may write where this member takes something: that is the user's memory.
pub(super) fn may_be_written(take: &Option<Side>) -> bool {
    let memory = take.as_ref().and_then(|(buffer, at)| buffer.whole(*at, 0));
    memory.is_none_or(|memory| memory.is_of_user())
}

/// What the root offers others to write to, if it lies in one piece and is the user's, and its bytes.
fn taken_of_all(meet: &CellCollective) -> Option<(UserMemory, u64)> {
    let (buffer, at) = meet.take.as_ref()?;
    let blocks = if meet.what == What::Gather {
        meet.slab().members
    } else {
        1
    };
    let bytes = meet.block * u64::from(blocks);
    Some((buffer.whole(*at, bytes)?.of_user()?, bytes))
}

/// Where the block of a member belongs, if it lies in one piece.
fn taken_whole(meet: &CellCollective, member: u32) -> Option<WriteMemory> {
    let (buffer, at) = meet.take.as_ref()?;
    let before = match meet.what {
        What::Gather | What::Allgather | What::Alltoall => u64::from(member),
        _ => 0,
    };
    buffer.whole(at + before * meet.block, meet.block)
}
