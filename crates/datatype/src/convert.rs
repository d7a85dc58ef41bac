// SPDX-License-Identifier: Apache-2.0
//! Conversion of runs of one basic between representations.
//!
//! Integers must fit the other side. Floating point numbers are rounded to nearest, ties to even, where the other side
//! has fewer digits (very small ones become subnormal or zero); what is above its largest number is refused. Infinities
//! stay; of a NaN the first digits of the payload stay.

use std::fmt;

use crate::basic::Basic;
use crate::float::Float;
use crate::representation::{Format, Representation};

/// Why data cannot be converted. The text names the type and the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConversionError {
    /// One of the machines does not have the type (MPI_ERR_TYPE).
    Lacking {
        /// The type.
        basic: Basic,
        /// How the machine represents data.
        machine: Representation,
    },
    /// A value that the other representation has no place for (MPI_ERR_TRUNCATE). The element keeps what it held
    /// before.
    DoesNotFit {
        /// The type.
        basic: Basic,
        /// The value, for people.
        value: String,
        /// Bytes that the type has there.
        bytes: usize,
        /// Which basic of the data, from 0.
        element: u64,
    },
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lacking { basic, machine } => write!(
                f,
                "data of type {} cannot be exchanged: one of the machines ({machine}) has no such type, or stores it in a way \
                 that this version of Isthmus cannot convert",
                basic.name()
            ),
            Self::DoesNotFit {
                basic,
                value,
                bytes,
                element,
            } => write!(
                f,
                "element {element}, of type {}, has the value {value}, which does not fit the {bytes} bytes that this type has \
                 in the representation it is converted to",
                basic.name()
            ),
        }
    }
}

impl std::error::Error for ConversionError {}

/// From one representation to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) from: Representation,
    pub(crate) to: Representation,
}

/// How one basic is converted.
#[derive(Clone, Copy)]
struct BasicConversion {
    from: Format,
    to: Format,
    swap: bool,
    /// Numbers in one basic.
    parts: usize,
}

impl Conversion {
    /// Whether the bytes of a basic change; fails if one side lacks it.
    pub(crate) fn changes(self, basic: Basic) -> Result<bool, ConversionError> {
        let way = self.way(basic)?;
        Ok(way.from != way.to || (way.swap && way.from.size() > 1))
    }

    fn way(self, basic: Basic) -> Result<BasicConversion, ConversionError> {
        let lacking = |machine| Err(ConversionError::Lacking { basic, machine });
        match (self.from.format(basic), self.to.format(basic)) {
            ((Format::Lacking, _), _) => lacking(self.from),
            (_, (Format::Lacking, _)) => lacking(self.to),
            ((from, parts), (to, _)) => Ok(BasicConversion {
                from,
                to,
                swap: self.from.big_endian() != self.to.big_endian(),
                parts,
            }),
        }
    }

    /// Converts values of one basic that follow each other; both slices hold equally many. A value that does not fit
    /// leaves its place as it is, and the first such is the error, with its number counted from `first`; the others are
    /// converted.
    pub(crate) fn run(self, basic: Basic, first: u64, from: &[u8], to: &mut [u8]) -> Result<(), ConversionError> {
        let way = self.way(basic)?;
        if way.from == way.to {
            to.copy_from_slice(from);
            if way.swap {
                swap(to, way.from.size());
            }
            return Ok(());
        }
        let (from_size, to_size) = (way.from.size(), way.to.size());
        let mut refused = None;
        for (i, (from, to)) in from
            .chunks_exact(from_size)
            .zip(to.chunks_exact_mut(to_size))
            .enumerate()
        {
            let bits = read(from, self.from.big_endian());
            match translate(way.from, way.to, bits) {
                Some(bits) => write(bits, to, self.to.big_endian()),
                None => {
                    refused.get_or_insert_with(|| ConversionError::DoesNotFit {
                        basic,
                        value: text(way.from, bits),
                        bytes: to_size,
                        element: first + (i / way.parts) as u64,
                    });
                }
            }
        }
        refused.map_or(Ok(()), Err)
    }
}

/// Reverses the bytes of each value.
fn swap(bytes: &mut [u8], size: usize) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        for value in bytes.chunks_exact_mut(N) {
            value.reverse();
        }
    }
    match size {
        0 | 1 => {}
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        16 => each::<16>(bytes),
        other => bytes.chunks_exact_mut(other).for_each(<[u8]>::reverse),
    }
}

/// At most 16 bytes as one integer.
fn read(bytes: &[u8], big_endian: bool) -> u128 {
    let join = |all: u128, byte: &u8| (all << 8) | u128::from(*byte);
    if big_endian {
        bytes.iter().fold(0, join)
    } else {
        bytes.iter().rev().fold(0, join)
    }
}

fn write(bits: u128, bytes: &mut [u8], big_endian: bool) {
    if big_endian {
        let all = bits.to_be_bytes();
        bytes.copy_from_slice(&all[all.len() - bytes.len()..]);
    } else {
        bytes.copy_from_slice(&bits.to_le_bytes()[..bytes.len()]);
    }
}

fn signed(bits: u128, size: usize) -> i128 {
    let unused = 128 - 8 * size as u32;
    ((bits << unused) as i128) >> unused
}

/// The same value in another format, if that has it.
fn translate(from: Format, to: Format, bits: u128) -> Option<u128> {
    match (from, to) {
        (Format::Signed(from), Format::Signed(to)) => {
            let value = signed(bits, from.into());
            (signed(value as u128, to.into()) == value).then_some(value as u128)
        }
        (Format::Unsigned(_), Format::Unsigned(to)) => (to >= 16 || bits >> (8 * to) == 0).then_some(bits),
        (Format::Floating(from, _), Format::Floating(to, _)) => to.encode(from.decode(number(from, bits))).ok(),
        // One basic has one kind of format everywhere.
        _ => None,
    }
}

/// Without the padding of the place.
fn number(float: Float, bits: u128) -> u128 {
    match float.bytes() {
        16 => bits,
        bytes => bits & ((1 << (8 * bytes)) - 1),
    }
}

fn text(format: Format, bits: u128) -> String {
    match format {
        Format::Signed(size) => signed(bits, size.into()).to_string(),
        Format::Floating(float, _) => float.text(number(float, bits)),
        _ => bits.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BIG: Representation = Representation::COMMON;

    fn narrow() -> Representation {
        Representation::decode([1, 4, 4, 12, 64, 4, 1, 1]).unwrap()
    }

    #[test]
    fn bytes_are_swapped_and_numbers_of_one_byte_are_not() {
        let little = Representation::decode([1, 8, 8, 16, 64, 4, 1, 0]).unwrap();
        let there = Conversion { from: little, to: BIG };
        let mut out = [0; 8];
        there.run(Basic::Int, 0, &[1, 2, 3, 4, 5, 6, 7, 8], &mut out).unwrap();
        assert_eq!(out, [4, 3, 2, 1, 8, 7, 6, 5]);
        assert_eq!(there.changes(Basic::Double), Ok(true));
        for same in [
            Basic::Char,
            Basic::Int8,
            Basic::Byte,
            Basic::Packed,
            Basic::Bool,
            Basic::FortranCharacter,
        ] {
            assert_eq!(there.changes(same), Ok(false));
        }
    }

    #[test]
    fn integers_that_do_not_fit_are_named_and_the_others_arrive() {
        let there = Conversion {
            from: BIG,
            to: narrow(),
        };
        let values = [1, -7, 1i64 << 31, i64::from(i32::MIN)];
        let stream: Vec<u8> = values.iter().flat_map(|v| v.to_be_bytes()).collect();
        let mut out = [0xee; 16];
        let error = there.run(Basic::Long, 10, &stream, &mut out).unwrap_err();
        assert_eq!(out[..8], [1, 0, 0, 0, 0xf9, 0xff, 0xff, 0xff]);
        assert_eq!(out[8..], [0xee, 0xee, 0xee, 0xee, 0, 0, 0, 0x80]);
        let text = error.to_string();
        assert!(
            text.contains("element 12, of type MPI_LONG, has the value 2147483648"),
            "{text}"
        );
    }

    #[test]
    fn what_a_machine_lacks_is_named() {
        let there = Conversion {
            from: BIG,
            to: narrow(),
        };
        let error = there.changes(Basic::Integer16).unwrap_err();
        assert!(error.to_string().contains("MPI_INTEGER16"), "{error}");
        let double_double = Representation::decode([1, 8, 8, 16, 106, 4, 1, 0]).unwrap();
        let there = Conversion {
            from: double_double,
            to: BIG,
        };
        assert!(there.changes(Basic::LongDouble).is_err());
        assert_eq!(there.changes(Basic::Double), Ok(true));
    }

    #[test]
    fn long_double_loses_its_padding_and_is_refused_when_too_large() {
        let double = Representation::decode([1, 8, 8, 8, 53, 4, 1, 0]).unwrap();
        let mut extended = [0; 12];
        extended[7] = 0x80;
        (extended[8], extended[9]) = (0xff, 0x3f);
        (extended[10], extended[11]) = (0xaa, 0xaa);
        let mut out = [0; 8];
        let there = Conversion {
            from: narrow(),
            to: double,
        };
        there.run(Basic::LongDouble, 0, &extended, &mut out).unwrap();
        assert_eq!(f64::from_le_bytes(out), 1.0);
        (extended[8], extended[9]) = (0xff, 0x4f);
        let error = there.run(Basic::LongDouble, 0, &extended, &mut out).unwrap_err();
        assert!(error.to_string().contains("0x1p+4096"), "{error}");
    }
}
