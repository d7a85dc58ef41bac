// SPDX-License-Identifier: Apache-2.0
//! A datatype, as the calls that made it: whoever makes them again has the type with its own sizes of elements. Counts,
//! and displacements that count elements, mean the same to processes that represent data differently.
//!
//! ```text
//!  datatype   calls: number          each is made from earlier ones; the last one makes the datatype
//!             call, call, ...
//!  call       combiner: u8           MPI_COMBINER_... of the ABI, less 100
//!             integers: list         arguments as MPI_Type_get_contents gives them; a predefined type: its handle
//!             addresses: list
//!             counts: list
//!             types: number          datatypes among the arguments
//!             number, number, ...    how many calls before this one each of them was made, at least 1
//!  list       number of items, items; an item is a number n >= 0 as 2n, and n < 0 as -2n - 1
//!  number     seven bits in each byte, the lowest first; all but the last byte have the highest bit
//! ```

use crate::codec::{DecodeError, Reader, Writer};

/// Longest description, bytes. Each block of an indexed type takes at least two.
pub const MAX_BYTES: usize = 1 << 20;
/// Most calls: types are made from types a few times, and some programs build them in a loop.
pub const MAX_CALLS: usize = 4096;

/// A combiner is sent as what it is above this.
const BELOW: i32 = 100;

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// `MPI_COMBINER_...`
    pub combiner: i32,
    /// Arguments of type int; the handle of a predefined datatype.
    pub integers: Vec<i64>,
    /// Arguments of type MPI_Aint.
    pub addresses: Vec<i64>,
    /// Arguments of type MPI_Count, where the call was one with large counts.
    pub counts: Vec<i64>,
    /// Datatypes among the arguments, by their places in the list of calls: earlier ones.
    pub types: Vec<usize>,
}

/// A datatype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description {
    /// See the module.
    pub calls: Vec<Call>,
}

impl Description {
    /// As bytes. Whoever makes a description keeps to the bounds.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        number(&mut w, self.calls.len() as u64);
        for (at, call) in self.calls.iter().enumerate() {
            w.u8((call.combiner - BELOW) as u8);
            for list in [&call.integers, &call.addresses, &call.counts] {
                number(&mut w, list.len() as u64);
                list.iter().for_each(|&item| number(&mut w, folded(item)));
            }
            number(&mut w, call.types.len() as u64);
            call.types.iter().for_each(|&ty| number(&mut w, (at - ty) as u64));
        }
        w.into_body()
    }

    /// Reads all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        if bytes.len() > MAX_BYTES {
            return Err(DecodeError::TooLong(bytes.len() as u64));
        }
        let mut r = Reader::new(bytes);
        let count = read(&mut r, "calls")?;
        if count == 0 || count > MAX_CALLS as u64 {
            return Err(invalid("calls", count));
        }
        let mut calls = Vec::new();
        for at in 0..count {
            calls.push(Call {
                combiner: i32::from(r.u8("combiner")?) + BELOW,
                integers: list(&mut r, "integers")?,
                addresses: list(&mut r, "addresses")?,
                counts: list(&mut r, "counts")?,
                types: types(&mut r, at)?,
            });
        }
        r.end()?;
        Ok(Self { calls })
    }
}

fn invalid(field: &'static str, value: u64) -> DecodeError {
    DecodeError::Invalid { field, value }
}

fn number(w: &mut Writer, mut value: u64) {
    while value >= 0x80 {
        w.u8(value as u8 | 0x80);
        value >>= 7;
    }
    w.u8(value as u8);
}

fn read(r: &mut Reader<'_>, field: &'static str) -> Result<u64, DecodeError> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = r.u8(field)?;
        let bits = u64::from(byte & 0x7f);
        if shift == 63 && bits > 1 {
            return Err(invalid(field, bits));
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(invalid(field, value))
}

/// Small numbers of both signs are short.
fn folded(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unfolded(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn list(r: &mut Reader<'_>, field: &'static str) -> Result<Vec<i64>, DecodeError> {
    let count = read(r, field)?;
    // Grows with what is there: a count alone takes no memory.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(unfolded(read(r, field)?));
    }
    Ok(items)
}

/// Of the call at this place.
fn types(r: &mut Reader<'_>, at: u64) -> Result<Vec<usize>, DecodeError> {
    let count = read(r, "types")?;
    let mut types = Vec::new();
    for _ in 0..count {
        let back = read(r, "types")?;
        let ty = at.checked_sub(back).filter(|_| back > 0);
        types.push(ty.ok_or_else(|| invalid("types", back))? as usize);
    }
    Ok(types)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector() -> Description {
        let double = Call {
            combiner: 101,
            integers: vec![0x214],
            ..Call::default()
        };
        let vector = Call {
            combiner: 105,
            integers: vec![3, 1],
            addresses: vec![-1000],
            types: vec![0],
            ..Call::default()
        };
        Description {
            calls: vec![double, vector],
        }
    }

    #[test]
    fn descriptions_are_short_and_come_back() {
        let bytes = vector().encode();
        assert_eq!(bytes.len(), 18);
        assert_eq!(Description::decode(&bytes), Ok(vector()));
        let mut extremes = vector();
        extremes.calls[1].counts = vec![i64::MIN, i64::MAX, 0, -1, 63, 64, -64, -65];
        assert_eq!(Description::decode(&extremes.encode()), Ok(extremes));
    }

    #[test]
    fn what_is_cut_off_too_long_or_points_nowhere_is_refused() {
        let bytes = vector().encode();
        for end in 0..bytes.len() {
            assert!(Description::decode(&bytes[..end]).is_err(), "{end}");
        }
        assert_eq!(
            Description::decode(&[&bytes[..], &[0]].concat()),
            Err(DecodeError::Trailing(1))
        );
        let last = bytes.len() - 1;
        for back in [0, 2] {
            let mut wrong = bytes.clone();
            wrong[last] = back;
            assert_eq!(Description::decode(&wrong), Err(invalid("types", u64::from(back))));
        }
        assert!(Description::decode(&[0]).is_err(), "no call");
        assert!(Description::decode(&[0x81, 0x20]).is_err(), "too many calls");
        // Of numbers that do not fit, and lists without items.
        assert!(Description::decode(&[&[1, 1, 1][..], &[0xff; 9], &[2, 0, 0, 0]].concat()).is_err());
        assert!(Description::decode(&[&[1, 1][..], &[0xff; 9], &[1]].concat()).is_err());
        assert!(Description::decode(&vec![0; MAX_BYTES + 1]).is_err());
    }
}
