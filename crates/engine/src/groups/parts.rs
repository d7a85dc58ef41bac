// SPDX-License-Identifier: Apache-2.0
//! Pieces of operations in which each member gives other data to each other one, and keeps its own part.

use std::ops::Range;

use isthmus_datatype::raw::WriteMemory;
use isthmus_schedule::Operation as What;
use isthmus_transport::slabs::{Given, Source};

use crate::EngineError;
use crate::groups::CellCollective;
use crate::groups::cut::place_among_others;

/// Copies these bytes of the block that a member gives itself, which begins at `given`, to where it takes its own,
/// which begins at `start`.
pub(super) fn keep_own(meet: &CellCollective, given: u64, start: u64, piece: Range<u64>) {
    let (Some((give, first)), Some((take, second))) = (&meet.give, &meet.take) else {
        return;
    };
    let length = piece.end - piece.start;
    let from = first + given + piece.start;
    let to = second + start + piece.start;
    match give.readable(from, length).zip(take.whole(to, length)) {
        Some((own, into)) if own.address() == into.address() => {}
        Some((own, mut into)) => into.copy(0, &own, 0, length as usize),
        None => {
            let mut own = vec![0; length as usize];
            give.read(from, &mut own);
            take.write(to, &own);
        }
    }
}

/// Whether the block of a member does not come through cells: it is the own one of the root of a gather, or was written
/// to its place.
pub(super) fn is_there(meet: &CellCollective, member: u32) -> bool {
    let is_written = !meet.late.is_empty() && meet.late.binary_search(&member).is_err();
    meet.what == What::Gather && (member == meet.root || is_written)
}

/// Combines what all give a member of a piece, in their order.
pub(super) fn combine(
    meet: &mut CellCollective,
    source: &Source<'_>,
    piece: u64,
    result: &mut WriteMemory,
) -> Result<(), EngineError> {
    let ((from, bytes), slab) = (meet.range(piece), *meet.slab());
    let own = meet.give.as_ref();
    let own = own.and_then(|(give, at)| give.readable(at + u64::from(slab.me) * meet.block + from, bytes));
    let (Some(reducer), Some(own)) = (meet.reducer.clone(), own) else {
        return Err(EngineError::Plan {
            what: "a reduction whose parts do not lie in one piece",
        });
    };
    let (all, elements) = (bytes * u64::from(slab.members - 1), bytes / meet.unit);
    for member in 0..slab.members {
        let part = match member == slab.me {
            true => Some(Given::new(own.clone())),
            false => meet.expected(source, member, all).map(|cell| {
                let place = u64::from(place_among_others(slab.me, member)) * bytes;
                cell.part(place as isize, bytes as usize)
            }),
        };
        let Some(part) = part else { continue };
        if member == 0 {
            part.copy_to(0, result, 0, bytes as usize);
        } else {
            part.combine_into(bytes as usize, result, |part, result| {
                reducer(part, result, elements, false)
            });
        }
    }
    Ok(())
}
