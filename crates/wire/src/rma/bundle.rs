// SPDX-License-Identifier: Apache-2.0
//! Operations that leave together, one after the other, each with as little of a head as tells it from the one before.
//!
//! ```text
//!  flags u8 | op | number | n | count | length | place | type: n bytes | data: length bytes
//! ```
//! All but `flags`, `type` and the data are numbers of seven bits a byte, the lowest first, with the highest bit set in
//! all bytes but the last. `flags`: 1 an accumulate, else a put; 2 `op`, 4 `number` and `n`, 8 `count`, 16 `length`
//! are there. What is not there is as in the operation before, and 0 in the first one; a type that is not there is one
//! that is kept. `place` is the distance from the end of the data before, were they in one piece: 2d, or -2d - 1.
//! Operations here ask nothing, and their data come with them.

use super::{Does, MOST_TYPES, Operation, SHORT};
use crate::codec::{DecodeError, Reader};

/// Most bytes of a bundle.
pub const MAX_BUNDLE: usize = 32 << 10;
/// Most bytes of an operation before its type: nobody needs so many.
const MOST_HEAD: usize = 48;

const ACCUMULATE: u8 = 1;
const OP: u8 = 2;
const TYPE: u8 = 4;
const COUNT: u8 = 8;
const LENGTH: u8 = 16;

/// What an operation has said that the next one need not say again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Said {
    op: u32,
    number: u16,
    count: u64,
    length: u64,
    end: i64,
}

/// Operations that have not left.
#[derive(Default)]
pub struct Bundle {
    bytes: Vec<u8>,
    said: Said,
}

impl Bundle {
    /// Whether an operation may be in one.
    pub fn suits(operation: &Operation<'_>) -> bool {
        let asks_nothing = matches!(operation.does, Does::Put | Does::Accumulate) && operation.question == 0;
        let whole = !operation.data.is_empty() && operation.data.len() as u64 == operation.length;
        asks_nothing && whole && operation.first == 0 && operation.datatype.len() + operation.data.len() <= SHORT
    }

    /// Whether there is room for an operation that suits.
    pub fn has_room(&self, operation: &Operation<'_>) -> bool {
        self.bytes.len() + MOST_HEAD + operation.datatype.len() + operation.data.len() <= MAX_BUNDLE
    }

    /// Adds an operation that [suits](Self::suits); gives the bytes that it takes.
    pub fn push(&mut self, operation: &Operation<'_>) -> u64 {
        let before = self.bytes.len();
        let Said {
            op,
            number,
            count,
            length,
            end,
        } = self.said;
        let retyped = operation.number != number || operation.number == 0 || !operation.datatype.is_empty();
        let said = [
            (ACCUMULATE, operation.does == Does::Accumulate),
            (OP, operation.op != op),
            (TYPE, retyped),
            (COUNT, operation.count != count),
            (LENGTH, operation.length != length),
        ];
        let flags = said.iter().filter(|(_, said)| *said).map(|(flag, _)| flag).sum::<u8>();
        self.bytes.push(flags);
        let fields = [
            (OP, operation.op.into()),
            (TYPE, operation.number.into()),
            (TYPE, operation.datatype.len() as u64),
            (COUNT, operation.count),
            (LENGTH, operation.length),
        ];
        for (_, value) in fields.iter().filter(|(flag, _)| flags & flag != 0) {
            write(&mut self.bytes, *value);
        }
        let distance = operation.place.wrapping_sub(end);
        write(&mut self.bytes, (distance << 1 ^ distance >> 63) as u64);
        self.bytes.extend_from_slice(operation.datatype);
        self.bytes.extend_from_slice(operation.data);
        self.said = Said {
            op: operation.op,
            number: operation.number,
            count: operation.count,
            length: operation.length,
            end: operation.place.wrapping_add(operation.length as i64),
        };
        (self.bytes.len() - before) as u64
    }

    /// Bytes so far.
    pub fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// As they leave.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// How far a bundle has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    at: usize,
    said: Said,
}

impl Mark {
    /// The next operation; `None` at the end.
    pub fn next<'a>(&mut self, bytes: &'a [u8]) -> Result<Option<Operation<'a>>, DecodeError> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        if bytes.len() > MAX_BUNDLE {
            return Err(DecodeError::TooLong(bytes.len() as u64));
        }
        let mut r = Reader::new(rest);
        let flags = r.u8("flags")?;
        if flags >= LENGTH << 1 {
            return Err(invalid("flags", flags.into()));
        }
        let mut said = self.said;
        if flags & OP != 0 {
            let op = read(&mut r, "op")?;
            said.op = u32::try_from(op).map_err(|_| invalid("op", op))?;
        }
        let mut described = 0;
        if flags & TYPE != 0 {
            let number = read(&mut r, "number")?;
            let kept = u16::try_from(number).ok().filter(|&number| number <= MOST_TYPES);
            said.number = kept.ok_or_else(|| invalid("number", number))?;
            described = read(&mut r, "bytes of the type")?;
        }
        if flags & COUNT != 0 {
            said.count = read(&mut r, "count")?;
        }
        if flags & LENGTH != 0 {
            said.length = read(&mut r, "length")?;
        }
        if !(1..=SHORT as u64).contains(&said.length) || described > SHORT as u64 {
            return Err(invalid("length", said.length));
        }
        let distance = read(&mut r, "place")?;
        let place = said.end.wrapping_add((distance >> 1) as i64 ^ -((distance & 1) as i64));
        let Some((datatype, rest)) = r.rest().split_at_checked(described as usize) else {
            return Err(DecodeError::Truncated { field: "type" });
        };
        let Some((data, rest)) = rest.split_at_checked(said.length as usize) else {
            return Err(DecodeError::Truncated { field: "data" });
        };
        said.end = place.wrapping_add(said.length as i64);
        *self = Self {
            at: bytes.len() - rest.len(),
            said,
        };
        let does = match flags & ACCUMULATE {
            0 => Does::Put,
            _ => Does::Accumulate,
        };
        Ok(Some(Operation {
            does,
            op: said.op,
            question: 0,
            first: 0,
            place,
            count: said.count,
            length: said.length,
            number: said.number,
            datatype,
            data,
        }))
    }
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

/// A number, seven bits a byte.
fn write(bytes: &mut Vec<u8>, mut value: u64) {
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read(r: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = r.u8(field)?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(invalid(field, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(place: i64, data: &[u8]) -> Operation<'_> {
        Operation {
            does: Does::Put,
            op: 0,
            question: 0,
            first: 0,
            place,
            count: data.len() as u64,
            length: data.len() as u64,
            number: 1,
            datatype: &[],
            data,
        }
    }

    #[test]
    fn operations_in_a_bundle_are_what_they_were_and_equal_ones_have_short_heads() {
        let described = Operation {
            datatype: &[1, 2, 3],
            ..put(-8, &[5; 16])
        };
        let adds = Operation {
            does: Does::Accumulate,
            op: 0x21,
            number: 3,
            count: u64::MAX,
            ..put(i64::MAX, &[6; 8])
        };
        let unkept = Operation {
            number: 0,
            ..described.clone()
        };
        let all = [
            described,
            put(8, &[1; 16]),
            put(i64::MIN, &[2; 16]),
            adds.clone(),
            adds,
            unkept.clone(),
            unkept,
            put(1 << 40, &[3; 16]),
        ];
        let mut bundle = Bundle::default();
        let heads: Vec<usize> = all
            .iter()
            .map(|operation| {
                assert!(Bundle::suits(operation) && bundle.has_room(operation));
                bundle.push(operation) as usize - operation.datatype.len() - operation.data.len()
            })
            .collect();
        assert_eq!(heads[1], 2, "one that follows the one before: {heads:?}");
        assert!(heads.iter().all(|&head| head <= MOST_HEAD));
        let bytes = bundle.into_bytes();
        let mut mark = Mark::default();
        for operation in &all {
            assert_eq!(mark.next(&bytes), Ok(Some(operation.clone())));
        }
        assert_eq!(mark.next(&bytes), Ok(None));
        // A part of one is not taken for a whole.
        for length in 0..bytes.len() {
            let (mut mark, mut read) = (Mark::default(), 0);
            while let Ok(Some(operation)) = mark.next(&bytes[..length]) {
                assert_eq!(operation, all[read]);
                read += 1;
            }
            assert!(read < all.len());
        }
    }

    #[test]
    fn a_bundle_is_bounded_and_takes_only_what_asks_nothing() {
        let data = [7; 1024];
        let mut bundle = Bundle::default();
        let mut pushed = 0;
        while bundle.has_room(&put(0, &data)) {
            bundle.push(&put(99 * pushed, &data));
            pushed += 1;
        }
        assert!(bundle.length() <= MAX_BUNDLE as u64 && pushed == 31, "{pushed}");
        let long = vec![7; SHORT + 1];
        for unsuited in [
            put(0, &long),
            put(0, &[]),
            Operation {
                length: 9,
                ..put(0, &data)
            },
            Operation {
                question: 1,
                does: Does::Fetch,
                ..put(0, &data)
            },
            Operation {
                datatype: &long,
                ..put(0, &data)
            },
        ] {
            assert!(!Bundle::suits(&unsuited), "{unsuited:?}");
        }
    }

    #[test]
    fn lies_in_a_bundle_are_found() {
        let ten_times = [[0xff; 10].as_slice(), &[0]].concat();
        for (what, lie) in [
            ("flags", vec![32]),
            ("length", vec![0, 0]),
            ("length", vec![LENGTH, 0, 0]),
            ("length", vec![LENGTH, 0x81, 0x40, 0]),
            ("number", vec![TYPE, 17, 0, 0]),
            ("op", [&[OP][..], &[0xff, 0xff, 0xff, 0xff, 0x7f]].concat()),
            ("count", [&[COUNT][..], &ten_times].concat()),
            ("data", vec![LENGTH, 2, 0, 1]),
            ("type", vec![TYPE | LENGTH, 1, 5, 1, 0, 1]),
            ("place", vec![LENGTH, 1]),
        ] {
            let found = Mark::default().next(&lie);
            let field = match found {
                Err(DecodeError::Invalid { field, .. } | DecodeError::Truncated { field }) => field,
                _ => "",
            };
            assert_eq!(field, what, "{lie:?}: {found:?}");
        }
        let long = vec![0; MAX_BUNDLE + 1];
        assert!(matches!(Mark::default().next(&long), Err(DecodeError::TooLong(_))));
    }
}
