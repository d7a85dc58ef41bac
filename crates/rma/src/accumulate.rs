// SPDX-License-Identifier: Apache-2.0
//! Accumulate and its kin (MPI 5.0 section 12.3.4): atomic for each element, in the order in which a process calls
//! them.
//!
//! One rule for all types, operations and ways to the memory: elements are read and written under the locks of the
//! blocks that they lie in.

use isthmus_abi::constants as abi;
use isthmus_core::error::Result;
use isthmus_core::fail;
use isthmus_core::world::WindowCount;
use isthmus_datatype::Packer;
use isthmus_datatype::op::{OnType, Predefined, Spacing};
use isthmus_engine::Request;
use isthmus_wire::rma::Does;

use crate::change::{Change, exclude};
use crate::data::{Side, Sink, Source, TargetData, When, check_fits};
use crate::elements::{check_alike, element_of, on, single, takes_swaps};
use crate::far;
use crate::locks;
use crate::reach::Stream;
use crate::spot::{Spot, Target};
use crate::target;
use crate::window::Window;

/// Bytes of elements that are changed under one lock, about.
const PIECE: usize = 64 << 10;

/// The same for memory that is mapped here: a multiple of the size of every element.
const IN_PLACE: u64 = 16 << 10;

/// Longest element, bytes.
const LONGEST: usize = 64;

impl Window {
    /// MPI_Accumulate, MPI_Get_accumulate, and those that give a request if they are not over. `source`: what MPI_NO_OP
    /// does not need; `result`: what MPI_Accumulate has not.
    pub fn accumulate(
        &self,
        operation: Predefined,
        source: Option<&Source<'_>>,
        result: Option<&Sink<'_>>,
        place: &TargetData<'_>,
        when: When,
    ) -> Result<Option<Request>> {
        if operation == Predefined::NoOp && result.is_none() {
            fail!(
                abi::MPI_ERR_OP,
                argument("op"),
                "is MPI_NO_OP, which only functions that fetch accept: MPI_Get_accumulate, MPI_Rget_accumulate and \
                 MPI_Fetch_and_op"
            );
        }
        let Some(target) = target::find(self, place, when)? else {
            return Ok(None);
        };
        let bytes = place.datatype.bytes(place.count)?;
        let source = source.filter(|_| operation != Predefined::NoOp);
        let given = source.map_or(Ok(bytes), Source::bytes)?;
        if bytes == 0 && given == 0 {
            return Ok(None);
        }
        let basic = element_of("target_datatype", place.datatype)?;
        let kernel = on(operation, basic)?;
        if let Some(source) = source {
            check_alike("origin_datatype", source.datatype, basic)?;
            check_fits(&Side::new("origin", given), &Side::new("target", bytes))?;
        }
        let mut unpacker = None;
        if let Some(result) = result {
            check_alike("result_datatype", result.datatype, basic)?;
            check_fits(&Side::new("target", bytes), &Side::new("result", result.bytes()?))?;
            unpacker = Some(result.unpacker()?);
        }
        if let Spot::Far(_) = target.spot {
            let does = match result {
                Some(_) => Does::Fetch,
                None => Does::Accumulate,
            };
            return far::operate(self, &target, (does, operation.handle()), (source, result), place, when);
        }
        self.counted.add(WindowCount::Accumulate, given);
        let made = Made {
            operation,
            kernel,
            given,
        };
        if let Some(done) = in_place(self, &target, &made, source, result, place) {
            return done.map(|()| None);
        }
        let mut packer = source.map(Source::packer).transpose()?;
        let mut change = Change {
            stream: Stream::new(&target.spot, place.datatype, place.count)?,
            window: self,
            target: &target,
            operation,
            kernel,
            scratch: Vec::new(),
        };
        let piece = (PIECE / basic.size().max(1) * basic.size()).min(given as usize);
        let (mut operands, mut before) = (vec![0; piece], vec![0; unpacker.as_ref().map_or(0, |_| piece)]);
        let mut at = 0;
        while at < given {
            let length = piece.min((given - at) as usize);
            let operands = packed(packer.as_mut(), &mut operands, length);
            let before = before.get_mut(..length).unwrap_or_default();
            change.apply(change.locks(place, at, length as u64), at, operands, before)?;
            if let Some(unpacker) = &mut unpacker {
                unpacker.unpack(before);
            }
            at += length as u64;
        }
        Ok(None)
    }

    /// MPI_Fetch_and_op.
    pub fn fetch_and_op(
        &self,
        operation: Predefined,
        source: Option<&Source<'_>>,
        result: &Sink<'_>,
        place: &TargetData<'_>,
    ) -> Result<()> {
        let Some(target) = target::find(self, place, When::Always)? else {
            return Ok(());
        };
        let basic = single(place.datatype)?;
        let kernel = on(operation, basic)?;
        let size = basic.size();
        if let Spot::Far(_) = target.spot {
            let source = source.filter(|_| operation != Predefined::NoOp);
            let does = (Does::Fetch, operation.handle());
            return far::operate(self, &target, does, (source, Some(result)), place, When::Always).map(drop);
        }
        self.counted.add(WindowCount::Accumulate, size as u64);
        let (mut operand, mut before) = ([0; LONGEST], [0; LONGEST]);
        if let Some(source) = source.filter(|_| operation != Predefined::NoOp) {
            source.take(&mut operand[..size])?;
        }
        let mut change = Change {
            stream: Stream::new(&target.spot, place.datatype, 1)?,
            window: self,
            target: &target,
            operation,
            kernel,
            scratch: Vec::new(),
        };
        let locks = change.locks(place, 0, size as u64);
        change.apply(locks, 0, &operand[..size], &mut before[..size])?;
        result.put(&before[..size])
    }

    /// MPI_Compare_and_swap.
    pub fn compare_and_swap(
        &self,
        source: &Source<'_>,
        compare: &Source<'_>,
        result: &Sink<'_>,
        place: &TargetData<'_>,
    ) -> Result<()> {
        let Some(target) = target::find(self, place, When::Always)? else {
            return Ok(());
        };
        let basic = single(place.datatype)?;
        if !takes_swaps(basic) {
            fail!(
                abi::MPI_ERR_TYPE,
                argument("datatype"),
                "is {}; MPI_Compare_and_swap takes integers, logical types and MPI_BYTE (MPI 5.0 section 12.3.4)",
                basic.name()
            );
        }
        let size = basic.size();
        let (mut new, mut old, mut before) = ([0; LONGEST], [0; LONGEST], [0; LONGEST]);
        source.take(&mut new[..size])?;
        compare.take(&mut old[..size])?;
        if let Spot::Far(_) = target.spot {
            let data = [&new[..size], &old[..size]].concat();
            return far::swap(self, &target, data, result, place.datatype);
        }
        self.counted.add(WindowCount::Accumulate, size as u64);
        let mut stream = Stream::new(&target.spot, place.datatype, 1)?;
        let locks = locks::blocks(target.rank, target.start, target.end);
        exclude(self, locks)?;
        let mut swapped = stream.read(0, &mut before[..size]);
        if swapped.is_ok() && before[..size] == old[..size] {
            swapped = stream.write(0, &new[..size]);
        }
        self.store.blocks().leave(locks);
        swapped?;
        result.put(&before[..size])
    }
}

/// What is done to elements.
struct Made {
    operation: Predefined,
    kernel: OnType,
    /// Their bytes.
    given: u64,
}

/// Accumulates data of one piece into one piece of memory that is mapped here, without copies of our own, and gives
/// what was there to one piece; `None`: they are others.
fn in_place(
    window: &Window,
    target: &Target,
    made: &Made,
    source: Option<&Source<'_>>,
    result: Option<&Sink<'_>>,
    place: &TargetData<'_>,
) -> Option<Result<()>> {
    let Spot::Here(memory) = &target.spot else {
        return None;
    };
    let (to, _) = place.datatype.contiguous(place.count)?;
    let origin = match source {
        Some(source) => Some(source.memory.shifted(source.datatype.contiguous(source.count)?.0)),
        None => None,
    };
    let before = match result {
        Some(result) => Some(result.memory.shifted(result.datatype.contiguous(result.count)?.0)),
        None => None,
    };
    let locks = window.store.blocks();
    let mut at = 0;
    while at < made.given {
        // Pieces end between two elements.
        let length = IN_PLACE.min(made.given - at);
        let start = target.start + at;
        let which = locks::blocks(target.rank, start, start + length);
        if let Err(error) = exclude(window, which) {
            return Some(Err(error));
        }
        let mut memory = memory.shifted(to + at as isize);
        if let Some(before) = &before {
            before
                .shifted(at as isize)
                .copy(0, &memory.reading(), 0, length as usize);
        }
        match (made.operation, &origin) {
            (_, None) => {}
            (Predefined::Replace, Some(origin)) => memory.copy(0, origin, at as isize, length as usize),
            (_, Some(origin)) => memory.combine(length as usize, &origin.shifted(at as isize), |operands, target| {
                made.kernel.apply(Spacing::Packed, operands, target, false);
            }),
        }
        locks.leave(which);
        at += length;
    }
    Some(Ok(()))
}

/// The next `length` bytes of the origin; without an origin any.
fn packed<'a>(packer: Option<&mut Packer>, buffer: &'a mut [u8], length: usize) -> &'a [u8] {
    let buffer = &mut buffer[..length];
    if let Some(packer) = packer {
        packer.pack(buffer);
    }
    buffer
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::{ALL, Basic, Datatype};

    use super::*;

    #[test]
    fn the_longest_element_has_room() {
        assert!(ALL.iter().all(|basic| basic.size() <= LONGEST));
        let lies_in_one_piece = |basic: &&Basic| Datatype::of(**basic).contiguous(2).is_some();
        for basic in ALL.iter().filter(lies_in_one_piece) {
            assert_eq!(IN_PLACE % basic.size() as u64, 0, "{}", basic.name());
        }
    }
}
