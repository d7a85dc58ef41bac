// SPDX-License-Identifier: Apache-2.0
//! Reductions whose contributions are copied out of their owners' memory: piece by piece, so that what has been copied
//! is combined while the core's own cache still has it. The first of the others goes straight to its place in the
//! result, so among two members nothing is copied twice. The order is that of ranks from the left.
//!
//! Where each of two members has a processor, both compute a part of what the root gets. The other one reads what the
//! root gives, and writes what it has computed to its place in the result: two copies instead of one, so its part is
//! the smaller one.

use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_transport::slabs::SharedSlabs;

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

/// Of a shared reduction the part that the root computes, in hundredths, and what it ends at a multiple of, elements.
const ROOT: u64 = 60;
const GRAIN: u64 = 64;

/// Whether there are enough elements for two parts. (Fewer are long only if each is.)
pub(super) fn can_be_shared(meet: &CellCollective) -> bool {
    meet.block / meet.unit >= 2 * GRAIN
}

/// Of a shared reduction of so many elements.
fn elements_of_root(elements: u64) -> u64 {
    elements.saturating_mul(ROOT) / 100 / GRAIN * GRAIN
}

/// Where the part of the result begins and ends that this member computes of what it copies.
fn part(meet: &CellCollective, pulling: &Pulling) -> (u64, u64) {
    match pulling.shared {
        true => {
            let elements = meet.block / meet.unit;
            let middle = elements_of_root(elements) * meet.unit;
            if meet.slab().me == meet.root {
                (0, middle)
            } else {
                (middle, meet.block)
            }
        }
        false if meet.what.reduces() && meet.take.is_some() => (0, meet.block),
        false => (0, 0),
    }
}

/// Bytes of that part.
pub(super) fn bytes(meet: &CellCollective, pulling: &Pulling) -> u64 {
    let (start, end) = part(meet, pulling);
    end - start
}

/// Bytes of a piece: whole elements.
fn piece(meet: &CellCollective, slabs: &dyn SharedSlabs) -> u64 {
    let hot = (slabs.cache_bytes() / PART).clamp(SHORTEST, LONGEST);
    (hot / meet.unit * meet.unit).max(meet.unit)
}

/// Combines up to so many bytes and a piece, if all members have offered what they contribute. True if anything was
/// found or combined.
pub(super) fn advance(
    meet: &mut CellCollective,
    pulling: &mut Pulling,
    slabs: &mut dyn SharedSlabs,
    most: u64,
) -> Result<bool, EngineError> {
    let mut any = false;
    while let Some(&member) = pulling.missing.last() {
        if !has_offered(meet, member, pulling, slabs) {
            return Ok(any);
        }
        // Who has nothing of the result is not told that it receives too much: both find out that they do not agree.
        let takes = meet.take.is_some();
        pulling.failed |= match offers::found(meet, member, pulling, slabs) {
            Err(EngineError::Truncate { .. }) if !takes => true,
            found => found?.is_none(),
        };
        pulling.missing.pop();
        any = true;
    }
    let (all, piece, from) = (bytes(meet, pulling), piece(meet, slabs), pulling.reduced);
    while pulling.reduced < all && pulling.reduced - from < most && !pulling.failed {
        let length = piece.min(all - pulling.reduced);
        pulling.failed = !combine(meet, pulling, slabs, piece, length)?;
        pulling.reduced += length;
        any = true;
    }
    Ok(any)
}

/// Combines the next `length` bytes, in pieces of `piece`; `Ok(false)`: some cannot be copied.
fn combine(
    meet: &mut CellCollective,
    pulling: &Pulling,
    slabs: &mut dyn SharedSlabs,
    piece: u64,
    length: u64,
) -> Result<bool, EngineError> {
    let (me, members) = (meet.slab().me, meet.slab().members);
    let at = part(meet, pulling).0 + pulling.reduced;
    let Some(reducer) = meet.reducer.clone() else {
        return Err(EngineError::Plan {
            what: "a reduction in an operation that only moves data",
        });
    };
    let Some((own, _)) = offers::given_whole(meet) else {
        return Ok(false);
    };
    let part = Part {
        reducer: &reducer,
        from: offers::before(meet) + at,
        bytes: length,
        elements: length / meet.unit,
    };
    let own = own.part(part.from as isize, length as usize);
    if pulling.shared && me != meet.root {
        return part.compute_for_root(meet, pulling, slabs, &own, piece);
    }
    let result = meet.take.as_ref();
    let result = result.and_then(|(buffer, start)| buffer.whole(start + at, length));
    let Some(mut result) = result else {
        return Ok(false);
    };
    // Who comes first among the others.
    let first = u32::from(me == 0);
    if !part.fetch(meet, first, pulling, slabs, result.clone())? {
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
        if !part.fetch(meet, member, pulling, slabs, beside.memory())? {
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

    /// Combines it with what the root gives, and writes the result there; `Ok(false)`: that cannot be.
    fn compute_for_root(
        &self,
        meet: &mut CellCollective,
        pulling: &Pulling,
        slabs: &mut dyn SharedSlabs,
        own: &ReadMemory,
        piece: u64,
    ) -> Result<bool, EngineError> {
        let (slab, root) = (*meet.slab(), meet.root);
        let Some(beside) = beside(meet, piece) else {
            return Ok(false);
        };
        let mut result = beside.memory().part(0, self.bytes as usize);
        let [_, Some(target)] = offers::found_all(meet, root, pulling, slabs)? else {
            return Ok(false);
        };
        if !self.fetch(meet, root, pulling, slabs, result.clone())? {
            return Ok(false);
        }
        self.add(&mut result, own, slab.me == 0);
        let peer = meet.members.peer(meet.rank_of(root));
        Ok(slabs.store(&slab, root, peer, &target, self.from, result.reading()))
    }

    /// Copies it from what a member gives; `Ok(false)`: that cannot be copied.
    fn fetch(
        &self,
        meet: &CellCollective,
        member: u32,
        pulling: &Pulling,
        slabs: &mut dyn SharedSlabs,
        into: WriteMemory,
    ) -> Result<bool, EngineError> {
        let peer = meet.members.peer(meet.rank_of(member));
        let offer = offers::found(meet, member, pulling, slabs)?;
        Ok(offer.is_some_and(|offer| slabs.fetch(peer, &offer, self.from, into, self.bytes)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_members_compute_a_part_of_a_shared_reduction() {
        for elements in [2 * GRAIN, 150, 199, 200, 1 << 20, u64::MAX] {
            let of_root = elements_of_root(elements);
            assert!(of_root >= GRAIN && of_root % GRAIN == 0, "{elements}: {of_root}");
            assert!(of_root < elements, "{elements}: {of_root}");
        }
    }
}
