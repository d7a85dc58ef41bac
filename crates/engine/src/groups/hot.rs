// SPDX-License-Identifier: Apache-2.0
//! Reductions whose contributions are copied out of their owners' memory: piece by piece, so that what has been copied
//! is combined while the core's own cache still has it. The first of the others goes straight to its place in the
//! result, so among two members nothing is copied twice. The order is that of ranks from the left.

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::meeting::Meeting;

use crate::EngineError;
use crate::base::binding::Reducer;
use crate::groups::offers::{self, has_offered};
use crate::groups::{CellCollective, Pulling};

/// The part of a core's own cache that a piece has: beside it there are the member's own contribution, what comes from
/// the next member, and what the program has.
const PART: u64 = 8;
/// Shortest and longest piece, bytes: a copy is a system call, and who waits looks at other things now and then.
const SHORTEST: u64 = 32 << 10;
const LONGEST: u64 = 512 << 10;

/// Bytes of the result that this member computes of what it copies.
pub(super) fn bytes(meet: &CellCollective) -> u64 {
    if meet.what.reduces() && meet.take.is_some() {
        meet.block
    } else {
        0
    }
}

/// Bytes of a piece: whole elements.
fn piece(meet: &CellCollective, meeting: &dyn Meeting) -> u64 {
    let hot = (meeting.cache_bytes() / PART).clamp(SHORTEST, LONGEST);
    (hot / meet.unit * meet.unit).max(meet.unit)
}

/// Combines up to so many bytes and a piece, if all members have offered what they contribute. True if anything was
/// found or combined.
pub(super) fn advance(
    meet: &mut CellCollective,
    pulling: &mut Pulling,
    meeting: &mut dyn Meeting,
    most: u64,
) -> Result<bool, EngineError> {
    let mut any = false;
    while let Some(&member) = pulling.missing.last() {
        if !has_offered(meet, member, pulling, meeting) {
            return Ok(any);
        }
        pulling.failed |= offers::found(meet, member, pulling, meeting)?.is_none();
        pulling.missing.pop();
        any = true;
    }
    let (all, piece, from) = (bytes(meet), piece(meet, meeting), pulling.reduced);
    while pulling.reduced < all && pulling.reduced - from < most && !pulling.failed {
        let length = piece.min(all - pulling.reduced);
        pulling.failed = !combine(meet, pulling, meeting, piece, length)?;
        pulling.reduced += length;
        any = true;
    }
    Ok(any)
}

/// Combines the next `length` bytes, in pieces of `piece`; `Ok(false)`: some cannot be copied.
fn combine(
    meet: &mut CellCollective,
    pulling: &Pulling,
    meeting: &mut dyn Meeting,
    piece: u64,
    length: u64,
) -> Result<bool, EngineError> {
    let (me, members, at) = (meet.slab().me, meet.slab().members, pulling.reduced);
    let Some(reducer) = meet.reducer.clone() else {
        return Err(EngineError::Plan {
            what: "a reduction in an operation that only moves data",
        });
    };
    let result = meet.take.as_ref();
    let result = result.and_then(|(buffer, start)| buffer.whole(start + at, length));
    let (Some(mut result), Some((own, _))) = (result, offers::given_whole(meet)) else {
        return Ok(false);
    };
    let part = Part {
        reducer: &reducer,
        from: offers::before(meet) + at,
        bytes: length,
        elements: length / meet.unit,
    };
    let own = own.part(part.from as isize, length as usize);
    // Who comes first among the others.
    let first = u32::from(me == 0);
    if !part.fetch(meet, first, pulling, meeting, result.clone())? {
        return Ok(false);
    }
    if me == 0 {
        part.add(&mut result, &own, true);
    }
    for member in first + 1..members {
        if member == me {
            part.add(&mut result, &own, false);
            continue;
        }
        let Some(beside) = beside(meet, piece) else {
            return Ok(false);
        };
        if !part.fetch(meet, member, pulling, meeting, beside.memory())? {
            return Ok(false);
        }
        part.add(&mut result, &beside.reading(), false);
    }
    Ok(true)
}

/// What is computed with a piece.
struct Part<'a> {
    reducer: &'a Reducer,
    /// First byte in what each member gives.
    from: u64,
    bytes: u64,
    elements: u64,
}

impl Part<'_> {
    fn add(&self, result: &mut WriteMemory, operand: &ReadMemory, is_left: bool) {
        result.combine(self.bytes as usize, operand, |operand, result| {
            (self.reducer)(operand, result, self.elements, is_left);
        });
    }

    /// Copies it from what a member gives; `Ok(false)`: that cannot be copied.
    fn fetch(
        &self,
        meet: &CellCollective,
        member: u32,
        pulling: &Pulling,
        meeting: &mut dyn Meeting,
        into: WriteMemory,
    ) -> Result<bool, EngineError> {
        let peer = meet.members.peer(meet.rank_of(member));
        let offer = offers::found(meet, member, pulling, meeting)?;
        Ok(offer.is_some_and(|offer| meeting.fetch(peer, &offer, self.from, into, self.bytes)))
    }
}

/// Memory for what comes from other members than the first, one piece.
fn beside(meet: &mut CellCollective, piece: u64) -> Option<OwnMemory> {
    let is_enough = |memory: &OwnMemory| memory.reading().window().1 as u64 >= piece;
    if meet.beside.as_ref().is_none_or(|memory| !is_enough(memory)) {
        meet.beside = OwnMemory::try_new(0, isize::try_from(piece).ok()?);
    }
    meet.beside.clone()
}
