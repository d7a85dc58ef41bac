// SPDX-License-Identifier: Apache-2.0
//! Blocking operations of short blocks among processes that share memory: straight to the engine, without call and binding, which would cost
//! more than everything else. Whatever is not as usual (`None`) takes the general way, which also says what is wrong with arguments; the
//! data of both ways lie in the same places, so members need not take the same.

use isthmus_core::collective::Prepared;
use isthmus_core::error::{Error, Result};
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_engine::{Collective, Reducer, Short};
use isthmus_schedule::Operation;

use super::Place;
use super::arguments::Elements;
use super::reduction::Operands;
use crate::buffer::{piece, room};
use crate::c::{Source, Target};
use crate::{datatype, op};

/// Blocks that are worth a try, bytes.
const LONGEST: u64 = 2048;

impl Place {
    /// Whether operations may go this way as far as the communicator is concerned.
    #[inline]
    fn is_short(&self) -> bool {
        self.blocks
            && self.comm.channel().frame.is_some()
            && !self.is_inter()
            && self.world.overrides().is_empty()
            && self.comm.common_form(self.world).is_none()
    }

    #[inline]
    fn do_short(&self, short: Short) -> Result<Option<Prepared>> {
        match self.comm.run_short(self.world, &short) {
            Some(Ok(())) => Ok(Some(Prepared::done())),
            Some(Err(error)) => Err(*error),
            None => Ok(None),
        }
    }
}

pub(super) fn barrier(place: &Place) -> Result<Option<Prepared>> {
    if !place.is_short() {
        return Ok(None);
    }
    place.do_short(Short {
        what: Operation::Barrier,
        root: 0,
        block: 0,
        give: None,
        take: None,
        reducer: None,
    })
}

pub(super) fn bcast(place: &Place, data: &Elements<Target>, root: u32) -> Result<Option<Prepared>> {
    if !place.is_short() || data.is_in_place() {
        return Ok(None);
    }
    let Ok(Some((memory, block))) = room(data.buffer, data.count, data.datatype) else {
        return Ok(None);
    };
    if block == 0 || block > LONGEST {
        return Ok(None);
    }
    let gives = place.rank() == root as usize;
    place.do_short(Short {
        what: Operation::Bcast,
        root,
        block,
        give: gives.then(|| memory.reading()),
        take: (!gives).then_some(memory),
        reducer: None,
    })
}

/// What a member gives and where it takes to, of blocks in their buffers; not in place, and apart from each other.
fn sides(
    place: &Place,
    from: &Elements<Source>,
    given: usize,
    into: &Elements<Target>,
    taken: usize,
) -> Option<(ReadMemory, WriteMemory, u64)> {
    if !place.is_short() || from.is_in_place() || into.is_in_place() {
        return None;
    }
    let times = |count: i64, blocks: usize| count.checked_mul(blocks as i64);
    let (read, give) = piece(from.buffer, times(from.count, given)?, from.datatype).ok()??;
    let (write, take) = room(into.buffer, times(into.count, taken)?, into.datatype).ok()??;
    let block = give / given as u64;
    let apart = read.address() + give as usize <= write.address() || write.address() + take as usize <= read.address();
    let fits = block > 0 && block <= LONGEST && block * taken as u64 == take;
    (fits && apart).then_some((read, write, block))
}

/// Allgather and alltoall. `given`: blocks in the send buffer.
pub(super) fn exchange(
    place: &Place,
    what: Operation,
    from: &Elements<Source>,
    given: usize,
    into: &Elements<Target>,
) -> Result<Option<Prepared>> {
    let Some((give, take, block)) = sides(place, from, given, into, place.size()) else {
        return Ok(None);
    };
    place.do_short(Short {
        what,
        root: 0,
        block,
        give: Some(give),
        take: Some(take),
        reducer: None,
    })
}

pub(super) fn allreduce(place: &Place, operands: &Operands, n: i64) -> Result<Option<Prepared>> {
    let Some((give, take, block)) = sides(place, &operands.send(n), 1, &operands.receive(n), 1) else {
        return Ok(None);
    };
    let Some(reducer) = reducer(place, operands) else {
        return Ok(None);
    };
    place.do_short(Short {
        what: Operation::Allreduce,
        root: 0,
        block,
        give: Some(give),
        take: Some(take),
        reducer: Some(reducer),
    })
}

/// An operation that a machine's own MPI could do on a communicator of it. All members are on one node and share memory beside that MPI, where
/// short blocks are exchanged in one round, which costs less than the way into it. All must do it the same way, so what decides is only what
/// all know: the operation, the size of blocks and what is computed. `None`: the other MPI is to do it, nothing was done.
// Inlined, so that what a caller has in registers is not written to memory and read again in other pieces, for which processors wait.
#[inline(always)]
pub(super) fn in_its_place(
    place: &Place,
    operation: Operation,
    collective: &Collective<'_>,
    operands: Option<&Operands>,
) -> Option<std::result::Result<(), Box<Error>>> {
    place.comm.channel().frame?;
    if !place.world.overrides().is_empty() {
        return None;
    }
    let (root, block, give, take) = match collective.clone() {
        Collective::General(_) => return None,
        Collective::Barrier => (0, 0, None, None),
        Collective::Bcast { memory, bytes, root } => {
            let gives = place.rank() == root as usize;
            let give = gives.then(|| memory.reading());
            (root, bytes, give, (!gives).then_some(memory))
        }
        Collective::Reduce {
            from,
            into,
            count,
            root,
            ..
        } => (root, count, from, into),
        Collective::Allreduce { from, into, count, .. } => (0, count, from, Some(into)),
        Collective::Allgather { from, into, bytes } | Collective::Alltoall { from, into, bytes } => {
            (0, bytes, from, Some(into))
        }
    };
    let reducer = match operands {
        Some(operands) => Some(reducer(place, operands)?),
        None => None,
    };
    let unit = reducer.as_ref().map_or(1, |(_, unit)| *unit);
    let block = block.checked_mul(unit).filter(|&block| block <= LONGEST)?;
    let give = match (give, take.clone()) {
        (None, Some(take)) if operation != Operation::Bcast => {
            // In place. What comes from others must not meet what is still to be given.
            let (at, blocks) = match operation {
                Operation::Allgather => (place.rank(), 1),
                Operation::Alltoall => (0, place.size()),
                _ => (0, 1),
            };
            let (at, length) = (at * block as usize, blocks * block as usize);
            Some(OwnMemory::with(take.reading().slice(at as isize, length)).reading())
        }
        (give, _) => give,
    };
    place.comm.run_short(
        place.world,
        &Short {
            what: operation,
            root,
            block,
            give,
            take,
            reducer,
        },
    )
}

/// The operation, if the library computes it and elements lie one behind the other; and their size.
fn reducer(place: &Place, operands: &Operands) -> Option<(Reducer, u64)> {
    if place.is_fixed() {
        return None;
    }
    let ty = datatype::find(operands.datatype).ok()?;
    let reduction = op::find(operands.op, ty, operands.datatype).ok()?;
    let dense = ty.size() as i64 == ty.extent() && ty.contiguous(1).is_some_and(|(at, _)| at == 0);
    (dense && ty.size() > 0 && !reduction.calls_program).then_some((reduction.reducer, ty.size()))
}
