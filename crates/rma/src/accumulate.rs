// SPDX-License-Identifier: Apache-2.0
//! Accumulate and its kin (MPI 5.0 section 12.3.4): atomic for each element, in the order in which a process calls
//! them.
//!
//! One rule for all types, operations and ways to the memory: elements are read and written under the locks of the
//! blocks that they lie in.

use isthmus_abi::constants as abi;
use isthmus_core::error::{Error, Result};
use isthmus_core::fail;
use isthmus_core::world::WindowCount;
use isthmus_datatype::op::{OnType, Predefined, Spacing};
use isthmus_datatype::{Basic, Datatype, Kind, Packer};
use isthmus_engine::Request;

use crate::data::{Side, Sink, Source, TargetData, When, check_fits};
use crate::locks;
use crate::reach::Stream;
use crate::spot::{Spot, Target};
use crate::target;
use crate::wait;
use crate::window::Window;

/// Bytes of elements that are changed under one lock, about.
const PIECE: usize = 16 << 10;

/// The same for memory that is mapped here: a multiple of the size of every element.
const IN_PLACE: u64 = 16 << 10;

/// Longest element, bytes.
const LONGEST: usize = 64;

/// The predefined type that a type consists of, if it is one.
pub(crate) fn element(datatype: &Datatype) -> Option<Basic> {
    if let Some(basic) = datatype.basic() {
        return Some(basic);
    }
    match datatype.signature().uniform() {
        // Both halves of some pairs have one type, so it does not tell whether elements are pairs.
        Some(half) if PAIRED.contains(&half) => Some(part(datatype).unwrap_or(half)),
        Some(basic) => Some(basic),
        None => part(datatype),
    }
}

/// What both halves of some pairs are.
const PAIRED: [Basic; 4] = [
    Basic::Int,
    Basic::FortranReal,
    Basic::FortranDoublePrecision,
    Basic::FortranInteger,
];

/// The predefined type that the calls which made a type began with, if that is one. Pairs have two basics in the
/// signature, and are one element.
fn part(datatype: &Datatype) -> Option<Basic> {
    let mut found = None;
    let mut left = vec![datatype.clone()];
    while let Some(next) = left.pop() {
        match next.basic() {
            Some(basic) if found.is_none_or(|other| other == basic) => found = Some(basic),
            Some(_) => return None,
            None if next.size() == 0 => {}
            None => left.extend(next.contents().types.iter().cloned()),
        }
    }
    found
}

/// The same for an argument of a call.
fn element_of(argument: &str, datatype: &Datatype) -> Result<Basic> {
    match element(datatype) {
        Some(basic) => Ok(basic),
        None => fail!(
            abi::MPI_ERR_TYPE,
            argument(argument),
            "consists of elements of different predefined types; accumulate and its kin need one"
        ),
    }
}

fn check_alike(argument: &str, datatype: &Datatype, target: Basic) -> Result<()> {
    let basic = element_of(argument, datatype)?;
    if basic == target || (basic.kind(), basic.size()) == (target.kind(), target.size()) {
        return Ok(());
    }
    fail!(
        abi::MPI_ERR_TYPE,
        argument(argument),
        "consists of {}, but target_datatype of {}; both must be the same",
        basic.name(),
        target.name()
    )
}

/// Whether MPI_Compare_and_swap takes elements of this type.
pub(crate) fn takes_swaps(basic: Basic) -> bool {
    match basic.kind() {
        Kind::Floating | Kind::Complex | Kind::Packed | Kind::Pair(..) => false,
        Kind::Character => basic == Basic::Char,
        _ => true,
    }
}

/// Elements at a target, and what changes them.
pub(crate) struct Change<'a> {
    pub(crate) window: &'a Window,
    pub(crate) target: &'a Target,
    pub(crate) stream: Stream<'a>,
    pub(crate) operation: Predefined,
    pub(crate) kernel: OnType,
}

impl Change<'_> {
    /// Changes elements from byte `at` on by `operands`; what was there before goes to `before`, if that is as long.
    fn apply(&mut self, locks: u64, at: u64, operands: &[u8], before: &mut [u8]) -> Result<()> {
        exclude(self.window, locks)?;
        let done = self.change(at, operands, before);
        self.window.store.blocks().leave(locks);
        done
    }

    /// The same for whoever has the locks.
    pub(crate) fn change(&mut self, at: u64, operands: &[u8], before: &mut [u8]) -> Result<()> {
        if self.operation == Predefined::NoOp {
            return self.stream.read(at, before);
        }
        if self.operation == Predefined::Replace {
            if !before.is_empty() {
                self.stream.read(at, before)?;
            }
            return self.stream.write(at, operands);
        }
        if before.is_empty() {
            let mut short = [0; 256];
            if let Some(short) = short.get_mut(..operands.len()) {
                return self.compute(at, operands, short);
            }
            return self.compute(at, operands, &mut vec![0; operands.len()]);
        }
        self.stream.read(at, before)?;
        let mut short = [0; 256];
        if let Some(after) = short.get_mut(..before.len()) {
            return self.replace(at, operands, before, after);
        }
        self.replace(at, operands, before, &mut vec![0; before.len()])
    }

    fn replace(&mut self, at: u64, operands: &[u8], before: &[u8], after: &mut [u8]) -> Result<()> {
        after.copy_from_slice(before);
        self.kernel.apply(Spacing::Packed, operands, after, false);
        self.stream.write(at, after)
    }

    fn compute(&mut self, at: u64, operands: &[u8], scratch: &mut [u8]) -> Result<()> {
        self.stream.read(at, scratch)?;
        self.kernel.apply(Spacing::Packed, operands, scratch, false);
        self.stream.write(at, scratch)
    }

    /// The locks of the elements in these bytes of the stream.
    fn locks(&self, place: &TargetData<'_>, at: u64, length: u64) -> u64 {
        self.locks_of(place.datatype, place.count, at, length)
    }

    pub(crate) fn locks_of(&self, datatype: &Datatype, count: u64, at: u64, length: u64) -> u64 {
        let Target { rank, start, end, .. } = *self.target;
        match datatype.contiguous(count) {
            Some(_) => locks::blocks(rank, start + at, start + at + length),
            None => locks::blocks(rank, start, end),
        }
    }
}

/// The numbers that a `char` of C has.
const CHAR: Basic = if std::ffi::c_char::MIN == 0 {
    Basic::UnsignedChar
} else {
    Basic::SignedChar
};

/// An operation on a type, for the accumulate family. Beyond the standard, as with MPICH and Open MPI, MPI_CHAR is a
/// number here.
pub(crate) fn on(operation: Predefined, basic: Basic) -> Result<OnType> {
    let basic = if basic == Basic::Char { CHAR } else { basic };
    operation
        .on(basic)
        .map_err(|error| Error::of_argument(abi::MPI_ERR_OP, "op", format!("cannot be used: {error}")))
}

/// Takes locks of blocks, the lowest first, so that nobody waits in a circle.
fn exclude(window: &Window, which: u64) -> Result<()> {
    let locks = window.store.blocks();
    let (me, mut left) = (window.comm.rank(), which);
    while left != 0 {
        let lock = left.trailing_zeros();
        if !locks.enter(lock, me) {
            if let Err(error) = wait::for_block(window.world, &window.comm, locks, lock) {
                locks.leave(which & ((1 << lock) - 1));
                return Err(error);
            }
        }
        left &= left - 1;
    }
    Ok(())
}

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
        } else if operation == Predefined::NoOp {
            return Ok(None);
        }
        if let Spot::Far(_) = target.spot {
            return self.far_accumulate(&target, operation, (source, result), place, when);
        }
        self.counted.add(WindowCount::Accumulate, given);
        if let (Some(source), None) = (source, result) {
            if let Some(done) = in_place(self, &target, operation, kernel, source, place) {
                return done.map(|()| None);
            }
        }
        let mut packer = source.map(Source::packer).transpose()?;
        let mut change = Change {
            stream: Stream::new(&target.spot, place.datatype, place.count)?,
            window: self,
            target: &target,
            operation,
            kernel,
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
            let (operands, always) = ((source, Some(result)), When::Always);
            return self
                .far_accumulate(&target, operation, operands, place, always)
                .map(drop);
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
            return self.far_swap(&target, data, result, place.datatype);
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

/// Accumulates data of one piece into one piece of memory that is mapped here, without copies; `None`: they are others.
fn in_place(
    window: &Window,
    target: &Target,
    operation: Predefined,
    kernel: OnType,
    source: &Source<'_>,
    place: &TargetData<'_>,
) -> Option<Result<()>> {
    let Spot::Here(memory) = &target.spot else {
        return None;
    };
    let (from, bytes) = source.datatype.contiguous(source.count)?;
    let (to, _) = place.datatype.contiguous(place.count)?;
    let locks = window.store.blocks();
    let mut at = 0;
    while at < bytes {
        // Pieces end between two elements.
        let length = IN_PLACE.min(bytes - at);
        let start = target.start + at;
        let which = locks::blocks(target.rank, start, start + length);
        if let Err(error) = exclude(window, which) {
            return Some(Err(error));
        }
        let mut memory = memory.shifted(to + at as isize);
        let operands = source.memory.shifted(from + at as isize);
        match operation {
            Predefined::Replace => memory.copy(0, &operands, 0, length as usize),
            _ => memory.combine(length as usize, &operands, |operands, target| {
                kernel.apply(Spacing::Packed, operands, target, false);
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

/// The type of an operation on one element.
fn single(datatype: &Datatype) -> Result<Basic> {
    match datatype.basic() {
        Some(basic) => Ok(basic),
        None => fail!(
            abi::MPI_ERR_TYPE,
            argument("datatype"),
            "is a derived datatype; operations on one element take predefined ones"
        ),
    }
}

#[cfg(test)]
mod tests {
    use isthmus_datatype::ALL;

    use super::*;

    #[test]
    fn the_longest_element_has_room() {
        assert!(ALL.iter().all(|basic| basic.size() <= LONGEST));
        let lies_in_one_piece = |basic: &&Basic| Datatype::of(**basic).contiguous(2).is_some();
        for basic in ALL.iter().filter(lies_in_one_piece) {
            assert_eq!(IN_PLACE % basic.size() as u64, 0, "{}", basic.name());
        }
    }

    #[test]
    fn types_of_one_predefined_type_are_found_and_pairs_count_as_one() {
        let pair = Datatype::of(Basic::DoubleInt);
        let pairs = Datatype::vector(3, 1, 2, &pair).expect("a type");
        assert_eq!(element(&pair), Some(Basic::DoubleInt));
        assert_eq!(element(&pairs), Some(Basic::DoubleInt));
        let of_pairs = |basic: &Basic| matches!(basic.kind(), Kind::Pair(..));
        for &basic in ALL.iter().filter(|&basic| of_pairs(basic) || PAIRED.contains(basic)) {
            let several = Datatype::vector(3, 1, 2, &Datatype::of(basic)).expect("a type");
            assert_eq!(element(&several), Some(basic), "{}", basic.name());
            if let Kind::Pair(value, index) = basic.kind() {
                assert!(value != index || PAIRED.contains(&value), "{}", basic.name());
            }
        }
        let ints = Datatype::vector(3, 1, 2, &Datatype::of(Basic::Int)).expect("a type");
        assert_eq!(element(&ints), Some(Basic::Int));
        let nested = Datatype::vector(2, 1, 2, &ints).expect("a type");
        assert_eq!(element(&nested), Some(Basic::Int));
        assert_eq!(element_of("origin_datatype", &pairs), Ok(Basic::DoubleInt));
        assert!(check_alike("origin_datatype", &ints, Basic::Double).is_err());
        assert!(check_alike("origin_datatype", &ints, Basic::Int32).is_ok());
    }
}
