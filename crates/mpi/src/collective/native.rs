// SPDX-License-Identifier: Apache-2.0
//! Blocking operations on communicators that are, underneath, those of a machine's own MPI: the ones that programs call most, with short
//! data, go straight there, or, with blocks short enough, meet in memory that the members share ([`short::in_its_place`]). The others, and
//! nonblocking ones, do so once they are prepared (`isthmus_engine::NativeOperation`).
//!
//! Whether one does must be the same at all members, so it depends only on what is: the operation, and of reductions the operator and
//! the predefined datatype. Data that do not lie in one piece go through memory in between. Everything else takes our own plans, over
//! messages of ours, and so do persistent operations.

use std::ffi::c_int;
use std::sync::OnceLock;

use isthmus_abi::PREDEFINED_HANDLES_END;
use isthmus_core::collective::Prepared;
use isthmus_core::error::Result;
use isthmus_datatype::raw::{OwnMemory, ReadMemory, WriteMemory};
use isthmus_datatype::{Basic, Datatype, Kind};
use isthmus_engine::{Collective, Element, Operator, ReceiveBuffer, SendBuffer};
use isthmus_schedule::Operation;

use super::arguments::Elements;
use super::reduction::Operands;
use super::{Place, short};
use crate::buffer::{piece, receiving, room, sending};
use crate::c::{Source, Target, count};
use crate::check::{self, distinct};
use crate::datatype;
use isthmus_abi::handles as h;

impl Place {
    /// Whether blocking operations go straight to the machine's own MPI.
    #[inline(always)]
    fn is_native(&self) -> bool {
        self.blocks && self.comm.blocks_natively()
    }

    #[inline(always)]
    fn run_at_once(
        &self,
        operation: Operation,
        collective: &Collective<'_>,
        operands: Option<&Operands>,
    ) -> Option<Result<Prepared>> {
        match short::in_its_place(self, operation, collective, operands) {
            Some(Ok(())) => return Some(Ok(Prepared::done())),
            Some(Err(error)) => return Some(Err(*error)),
            None => {}
        }
        let done = self.comm.run_at_once(self.world, operation, collective)?;
        Some(done.map(|()| Prepared::done()))
    }

    #[inline]
    fn run(
        &self,
        operation: Operation,
        collective: &Collective<'_>,
        operands: Option<&Operands>,
    ) -> Result<Option<Prepared>> {
        match short::in_its_place(self, operation, collective, operands) {
            Some(done) => done.map_err(|error| *error)?,
            None => self.comm.run_natively(self.world, operation, collective)?,
        }
        Ok(Some(Prepared::done()))
    }
}

/// Memory that the other MPI reads: the program's, or a copy of data that do not lie in one piece there.
fn readable(buffer: Source, n: i64, datatype: h::Datatype) -> Result<ReadMemory> {
    if let Some((memory, _)) = piece(buffer, n, datatype)? {
        return Ok(memory);
    }
    Ok(sending(buffer, n, datatype)?.copied().reading())
}

/// Memory that the other MPI writes, and where it belongs then.
struct Outcome {
    memory: WriteMemory,
    between: Option<(OwnMemory, ReceiveBuffer)>,
}

impl Outcome {
    /// `keep`: what is there is read too.
    fn new(buffer: Target, n: i64, datatype: h::Datatype, keep: bool) -> Result<Self> {
        if let Some((memory, _)) = room(buffer, n, datatype)? {
            return Ok(Self { memory, between: None });
        }
        let into = receiving(buffer, n, datatype)?;
        let copy = if keep {
            sending(buffer.source(), n, datatype)?.copied()
        } else {
            OwnMemory::new(0, into.length() as isize)
        };
        Ok(Self {
            memory: copy.memory(),
            between: Some((copy, into)),
        })
    }

    fn finish(self) {
        if let Some((copy, mut into)) = self.between {
            into.fill(&copy);
        }
    }
}

/// Bytes of an element of a predefined datatype without gaps; 0: it is another one.
#[inline(always)]
fn width(datatype: h::Datatype) -> u64 {
    static ALL: OnceLock<Box<[u8]>> = OnceLock::new();
    let all = match ALL.get() {
        Some(all) => all,
        None => ALL.get_or_init(all_widths),
    };
    all.get(datatype.0).copied().unwrap_or(0).into()
}

#[cold]
fn all_widths() -> Box<[u8]> {
    let dense = |ty: Datatype| (ty.contiguous(2) == Some((0, 2 * ty.size()))).then(|| ty.size());
    let width = |handle| u8::try_from(dense(Datatype::of(Basic::from_handle(handle)?))?).ok();
    (0..PREDEFINED_HANDLES_END as u32)
        .map(|handle| width(handle).unwrap_or(0))
        .collect()
}

/// Bytes of so many elements in memory; `None`: it takes more to know.
#[inline(always)]
fn plain(address: usize, count: i64, datatype: h::Datatype) -> Option<u64> {
    let count = u64::try_from(count)
        .ok()
        .filter(|&count| count > 0 && count <= 1 << 40)?;
    let bytes = count * width(datatype);
    (bytes > 0 && check::is_memory(address)).then_some(bytes)
}

/// Whether two memories do not touch.
#[inline(always)]
fn are_apart((read, give): (usize, u64), (write, take): (usize, u64)) -> bool {
    read.wrapping_add(give as usize) <= write || write.wrapping_add(take as usize) <= read
}

// What is done at once has plain arguments, and nothing stands in its way. `None`: nothing was done, and the general way finds out why.

#[inline(always)]
pub(super) fn bcast_at_once(place: &Place, data: &Elements<Target>, root: c_int) -> Option<Result<Prepared>> {
    let root = u32::try_from(root).ok()?;
    if !place.is_native() || root as usize >= place.size() {
        return None;
    }
    let bytes = plain(data.buffer.address(), data.count, data.datatype)?;
    let memory = data.buffer.memory(0, bytes as i64);
    place.run_at_once(Operation::Bcast, &Collective::Bcast { memory, bytes, root }, None)
}

#[inline(always)]
pub(super) fn allreduce_at_once(place: &Place, operands: &Operands, n: i64) -> Option<Result<Prepared>> {
    if !place.is_native() {
        return None;
    }
    let (element, operator) = reduction(place, operands).ok()??;
    let (read, write) = (operands.from.address(), operands.into.address());
    let bytes = plain(read, n, operands.datatype)?;
    if !check::is_memory(write) || !are_apart((read, bytes), (write, bytes)) {
        return None;
    }
    let collective = Collective::Allreduce {
        from: Some(operands.from.memory(0, bytes as i64)),
        into: operands.into.memory(0, bytes as i64),
        count: n as u64,
        element,
        operator,
    };
    place.run_at_once(Operation::Allreduce, &collective, Some(operands))
}

#[inline(always)]
pub(super) fn alltoall_at_once(
    place: &Place,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Option<Result<Prepared>> {
    if !place.is_native() {
        return None;
    }
    let blocks = place.size();
    let (read, write) = (from.buffer.address(), into.buffer.address());
    let give = plain(read, times(from.count, blocks), from.datatype)?;
    let take = plain(write, times(into.count, blocks), into.datatype)?;
    if !are_apart((read, give), (write, take)) {
        return None;
    }
    let collective = Collective::Alltoall {
        from: Some(from.buffer.memory(0, give as i64)),
        into: into.buffer.memory(0, take as i64),
        bytes: take / blocks as u64,
    };
    place.run_at_once(Operation::Alltoall, &collective, None)
}

#[inline]
pub(super) fn barrier_there(place: &Place) -> Result<Option<Prepared>> {
    if !place.is_native() {
        return Ok(None);
    }
    place.run(Operation::Barrier, &Collective::Barrier, None)
}

#[inline]
pub(super) fn bcast_there(place: &Place, data: &Elements<Target>, root: u32) -> Result<Option<Prepared>> {
    if !place.is_native() {
        return Ok(None);
    }
    if !data.is_in_place() {
        if let Some((memory, bytes)) = room(data.buffer, data.count, data.datatype)? {
            if bytes == 0 {
                return Ok(Some(Prepared::done()));
            }
            return place.run(Operation::Bcast, &Collective::Bcast { memory, bytes, root }, None);
        }
    }
    bcast_pieces(place, data, root)
}

#[cold]
fn bcast_pieces(place: &Place, data: &Elements<Target>, root: u32) -> Result<Option<Prepared>> {
    let buffer = data.of_this_process()?;
    let (bytes, sends) = (data.bytes(place)?, place.rank() == root as usize);
    let result = Outcome::new(buffer, data.count, data.datatype, sends)?;
    if bytes == 0 {
        return Ok(Some(Prepared::done()));
    }
    let collective = Collective::Bcast {
        memory: result.memory.clone(),
        bytes,
        root,
    };
    let done = place.run(Operation::Bcast, &collective, None)?;
    if !sends {
        result.finish();
    }
    Ok(done)
}

/// Memory that is read, memory that is written, and bytes of that, where each is one piece and they are apart.
#[inline]
fn both_pieces(
    (from, given): (&Elements<Source>, i64),
    (into, taken): (&Elements<Target>, i64),
) -> Result<Option<(ReadMemory, WriteMemory, u64)>> {
    if from.is_in_place() || into.is_in_place() {
        return Ok(None);
    }
    let (Some(read), Some(write)) = (
        piece(from.buffer, given, from.datatype)?,
        room(into.buffer, taken, into.datatype)?,
    ) else {
        return Ok(None);
    };
    let apart = are_apart((read.0.address(), read.1), (write.0.address(), write.1));
    Ok(apart.then_some((read.0, write.0, write.1)))
}

/// Allgather and alltoall. `given`: blocks in the send buffer.
#[inline]
fn exchange(
    place: &Place,
    operation: Operation,
    from: &Elements<Source>,
    into: &Elements<Target>,
    given: usize,
) -> Result<Option<Prepared>> {
    if !place.is_native() {
        return Ok(None);
    }
    let blocks = place.size();
    let pieces = both_pieces((from, times(from.count, given)), (into, times(into.count, blocks)))?;
    let Some((from, into, all)) = pieces else {
        return exchange_pieces(place, operation, from, into, given);
    };
    if all == 0 {
        return Ok(Some(Prepared::done()));
    }
    let (from, bytes) = (Some(from), all / blocks as u64);
    let collective = match operation {
        Operation::Allgather => Collective::Allgather { from, into, bytes },
        _ => Collective::Alltoall { from, into, bytes },
    };
    place.run(operation, &collective, None)
}

#[cold]
fn exchange_pieces(
    place: &Place,
    operation: Operation,
    from: &Elements<Source>,
    into: &Elements<Target>,
    given: usize,
) -> Result<Option<Prepared>> {
    let (bytes, blocks) = (into.bytes(place)?, place.blocks());
    let in_place = from.is_in_place();
    if !in_place {
        distinct(from.region(given)?, into.region(blocks)?)?;
    }
    if bytes == 0 {
        return Ok(Some(Prepared::done()));
    }
    let result = Outcome::new(into.buffer, times(into.count, blocks), into.datatype, in_place)?;
    let source = if in_place {
        None
    } else {
        Some(readable(from.buffer, times(from.count, given), from.datatype)?)
    };
    let (from, into) = (source, result.memory.clone());
    let collective = match operation {
        Operation::Allgather => Collective::Allgather { from, into, bytes },
        _ => Collective::Alltoall { from, into, bytes },
    };
    let done = place.run(operation, &collective, None)?;
    result.finish();
    Ok(done)
}

#[inline]
pub(super) fn allgather_there(
    place: &Place,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Result<Option<Prepared>> {
    exchange(place, Operation::Allgather, from, into, 1)
}

#[inline]
pub(super) fn alltoall_there(
    place: &Place,
    from: &Elements<Source>,
    into: &Elements<Target>,
) -> Result<Option<Prepared>> {
    exchange(place, Operation::Alltoall, from, into, place.blocks())
}

fn times(count: i64, blocks: usize) -> i64 {
    count.saturating_mul(blocks as i64)
}

/// What the other MPI calls elements and operator of a reduction that it may do.
#[inline(always)]
pub(super) fn reduction(place: &Place, operands: &Operands) -> Result<Option<(Element, Operator)>> {
    if place.is_fixed() {
        return Ok(None);
    }
    let (Some(element), Some(operator)) = (element(operands.datatype)?, operator(operands.op)) else {
        return Ok(None);
    };
    let bits = matches!(operator, Operator::BitAnd | Operator::BitOr | Operator::BitXor);
    // Otherwise our own plan says what is wrong.
    let known = !bits || !matches!(element, Element::Float | Element::Double);
    Ok(known.then_some((element, operator)))
}

#[inline]
pub(super) fn allreduce_there(place: &Place, operands: &Operands, n: i64) -> Result<Option<Prepared>> {
    if !place.is_native() {
        return Ok(None);
    }
    let Some((element, operator)) = reduction(place, operands)? else {
        return Ok(None);
    };
    let pieces = both_pieces((&operands.send(n), n), (&operands.receive(n), n))?;
    let (Some((from, into, _)), 1..) = (pieces, n) else {
        return reduce_pieces(place, operands, n, None, (element, operator));
    };
    let collective = Collective::Allreduce {
        from: Some(from),
        into,
        count: n as u64,
        element,
        operator,
    };
    place.run(Operation::Allreduce, &collective, Some(operands))
}

pub(super) fn reduce_there(place: &Place, operands: &Operands, n: i64, root: u32) -> Result<Option<Prepared>> {
    if !place.is_native() {
        return Ok(None);
    }
    match reduction(place, operands)? {
        Some(how) => reduce_pieces(place, operands, n, Some(root), how),
        None => Ok(None),
    }
}

/// Reduce (with a root) and allreduce, with buffers of any kind.
fn reduce_pieces(
    place: &Place,
    operands: &Operands,
    n: i64,
    root: Option<u32>,
    (element, operator): (Element, Operator),
) -> Result<Option<Prepared>> {
    let number = count("count", n)?;
    let gets = root.is_none_or(|root| place.rank() == root as usize);
    let (from, into) = (operands.send(n), operands.receive(n));
    let in_place = from.is_in_place();
    if gets && !in_place {
        distinct(from.region(1)?, into.region(1)?)?;
    }
    let operation = if root.is_some() {
        Operation::Reduce
    } else {
        Operation::Allreduce
    };
    let copy = (in_place && gets && root.is_some())
        // MPICH 4.0 does not survive a root whose contribution is in place.
        .then(|| sending(operands.into.source(), n, operands.datatype).map(SendBuffer::copied))
        .transpose()?;
    let source = match (&copy, in_place && gets) {
        (Some(copy), _) => Some(copy.reading()),
        (None, true) => None,
        (None, false) => Some(readable(from.of_this_process()?, n, operands.datatype)?),
    };
    let result = gets.then(|| Outcome::new(operands.into, n, operands.datatype, in_place));
    let result = result.transpose()?;
    if number == 0 {
        return Ok(Some(Prepared::done()));
    }
    let collective = match (root, &result) {
        (None, Some(result)) => Collective::Allreduce {
            from: source,
            into: result.memory.clone(),
            count: number,
            element,
            operator,
        },
        _ => Collective::Reduce {
            from: source,
            into: result.as_ref().map(|result| result.memory.clone()),
            count: number,
            element,
            operator,
            root: root.unwrap_or(0),
        },
    };
    place.run(operation, &collective, Some(operands))
}

/// What the other MPI calls a datatype, if it is one that all have.
#[inline(always)]
fn element(datatype: h::Datatype) -> Result<Option<Element>> {
    static PREDEFINED: OnceLock<Box<[Option<Element>]>> = OnceLock::new();
    let of_handle = |handle| Some(named(Basic::from_handle(handle)?)).flatten();
    let all = PREDEFINED.get_or_init(|| (0..PREDEFINED_HANDLES_END as u32).map(of_handle).collect());
    match all.get(datatype.0) {
        Some(element) => Ok(*element),
        None => Ok(datatype::find(datatype)?.basic().and_then(named)),
    }
}

fn named(basic: Basic) -> Option<Element> {
    Some(match (basic.kind(), basic.size()) {
        (Kind::Signed, 1) => Element::Int8,
        (Kind::Signed, 2) => Element::Int16,
        (Kind::Signed, 4) => Element::Int32,
        (Kind::Signed, 8) => Element::Int64,
        (Kind::Unsigned, 1) => Element::Uint8,
        (Kind::Unsigned, 2) => Element::Uint16,
        (Kind::Unsigned, 4) => Element::Uint32,
        (Kind::Unsigned, 8) => Element::Uint64,
        (Kind::Floating, 4) => Element::Float,
        (Kind::Floating, 8) => Element::Double,
        _ => return None,
    })
}

/// What the other MPI calls an operator.
#[inline(always)]
fn operator(op: h::Op) -> Option<Operator> {
    Some(match op {
        h::MPI_SUM => Operator::Sum,
        h::MPI_PROD => Operator::Product,
        h::MPI_MIN => Operator::Minimum,
        h::MPI_MAX => Operator::Maximum,
        h::MPI_BAND => Operator::BitAnd,
        h::MPI_BOR => Operator::BitOr,
        h::MPI_BXOR => Operator::BitXor,
        _ => return None,
    })
}
