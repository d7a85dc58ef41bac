// SPDX-License-Identifier: Apache-2.0
//! One-sided communication in messages: frames of the protocol [`RMA`](crate::frame::protocol::RMA).
//!
//! `tag` says what a frame is ([`What`]). The upper half of `token` is the context of the communicator of the window.
//! The lower half, `auxiliary` and the payload are, by kind:
//!
//! ```text
//!  kind       lower half of token      auxiliary            payload
//!  Lock       0 shared, 1 exclusive,   -                    -
//!             2 with all others
//!  Unlock     number of the question   -                    -                    answered by Done
//!  Flush      number of the question   -                    -                    answered by Done
//!  Operate    bytes of the payload     offset of the piece  an operation, with short data
//!  Data       -                        offset of the piece  long data of the last operation
//!  Answer     number of the question   offset of the piece  data that a get or fetch has asked for
//!  Done       number of the question   -                    -
//!  Failed     number of the question   -                    class: u32 | text     0: of an operation that asks nothing
//!  Look       -                        -                    -                    a lock is free again
//!  Bundle     bytes of the payload     offset of the piece  operations that ask nothing: see [`bundle`]
//!  Try        number of the question   as Lock              a lock, if it is free    answered by Done or Refused
//!  Refused    number of the question   -                    it is not
//!
//!  operation  0          2        4    8          12       16      24      32      40
//!             | what u16 | number | op | question | type n | first | place | count | length |
//!  48 | type: n bytes | data, if short |                                     little-endian
//! ```
//! `op`: handle of a predefined operation, or 0. `place`: bytes from the beginning of the target's part, or an address.
//! `type`: see [`datatype`](crate::datatype). `number`: the target keeps the type by this number, from 1 to
//! [`MOST_TYPES`], instead of what it has kept by it; without a type it is the one that was kept. 0: it is not kept.
//! What is kept has [`MOST_TYPE_BYTES`] at most, together. `length`: bytes of data that come, or are asked for.
//! `first`: the byte of the stream of the type with which they begin. Data are as their sender represents them, what
//! comes counts as at the origin, what is asked for as at the target. What a peer sends is applied in
//! the order in which it was sent. Puts and accumulates with all their data may have a question too, which is that of a
//! Flush behind them. The bit `common` of Operate, Data and Bundle says whether they follow an odd number
//! of fences.

pub mod bundle;

use crate::codec::{DecodeError, Reader, Writer};
use crate::datatype::MAX_BYTES;
use crate::reason::cut_to;

/// Bytes of an operation before its type.
pub const HEAD: usize = 48;
/// Most types that a target keeps of an origin in a window.
pub const MOST_TYPES: u16 = 16;
/// Most bytes of their descriptions, together.
pub const MOST_TYPE_BYTES: usize = 1 << 20;
/// Most bytes of data that travel with their operation.
pub const SHORT: usize = 8 << 10;
/// Longest operation with its short data.
pub const MAX_OPERATION: usize = HEAD + MAX_BYTES + SHORT;
/// Most bytes that a fetch without data asks for.
pub const PIECE: u64 = 64 << 10;
/// Longest text of a failure.
pub const MAX_TEXT: usize = 1024;

/// What a frame is. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[expect(missing_docs, reason = "the module has them")]
pub enum What {
    Lock = 1,
    Unlock = 2,
    Flush = 3,
    Operate = 4,
    Data = 5,
    Answer = 6,
    Done = 7,
    Failed = 8,
    Look = 9,
    Bundle = 10,
    Try = 11,
    Refused = 12,
}

impl What {
    /// The one with this tag, if there is one.
    pub fn from_tag(tag: i32) -> Option<Self> {
        Some(match tag {
            1 => Self::Lock,
            2 => Self::Unlock,
            3 => Self::Flush,
            4 => Self::Operate,
            5 => Self::Data,
            6 => Self::Answer,
            7 => Self::Done,
            8 => Self::Failed,
            9 => Self::Look,
            10 => Self::Bundle,
            11 => Self::Try,
            12 => Self::Refused,
            _ => return None,
        })
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Does {
    /// Replaces data.
    Put = 1,
    /// Asks for data.
    Get = 2,
    /// Changes elements.
    Accumulate = 3,
    /// Changes elements and asks what was there.
    Fetch = 4,
    /// Replaces an element if it is as expected: the data are the new one and the expected one. Asks what was there.
    Swap = 5,
}

impl Does {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Put,
            2 => Self::Get,
            3 => Self::Accumulate,
            4 => Self::Fetch,
            5 => Self::Swap,
            _ => return None,
        })
    }
}

/// An operation. See the module for the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// What it does.
    pub does: Does,
    /// Handle of the operation on elements; 0: none.
    pub op: u32,
    /// Number by which answers come; 0: it asks nothing. Of a put or an accumulate: whether all so far is done.
    pub question: u32,
    /// See the module.
    pub first: u64,
    /// Where the first element has its origin.
    pub place: i64,
    /// Elements.
    pub count: u64,
    /// Bytes of data.
    pub length: u64,
    /// By which the datatype is kept; 0: it is not.
    pub number: u16,
    /// The datatype.
    pub datatype: &'a [u8],
    /// Data, if they are short.
    pub data: &'a [u8],
}

impl<'a> Operation<'a> {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        w.u32(u32::from(self.does as u8) | u32::from(self.number) << 16);
        w.u32(self.op);
        w.u32(self.question);
        w.u32(self.datatype.len() as u32);
        w.u64(self.first);
        w.u64(self.place as u64);
        w.u64(self.count);
        w.u64(self.length);
        let mut bytes = w.into_body();
        bytes.extend_from_slice(self.datatype);
        bytes.extend_from_slice(self.data);
        bytes
    }

    /// Gives a question to an operation that is encoded, and asks for no data.
    pub fn ask(bytes: &mut [u8], question: u32) {
        if let Some(place) = bytes.get_mut(8..12) {
            place.copy_from_slice(&question.to_le_bytes());
        }
    }

    /// The question of an operation of which these are the first bytes; 0: it has none.
    pub fn question_of(bytes: &[u8]) -> u32 {
        let question = bytes.get(8..12).and_then(<[u8]>::first_chunk);
        question.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    /// Reads all of `bytes`. The data are none, or as many as the length says.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let word = r.u32("what")?;
        let (code, number) = (word as u16, (word >> 16) as u16);
        let invalid = |field, value| Err(DecodeError::Invalid { field, value });
        let Some(does) = u8::try_from(code).ok().and_then(Does::from_code) else {
            return invalid("what", code.into());
        };
        if number > MOST_TYPES {
            return invalid("number", number.into());
        }
        let (op, question) = (r.u32("op")?, r.u32("question")?);
        let described = r.u32("bytes of the type")? as usize;
        let first = r.u64("first")?;
        let place = r.u64("place")? as i64;
        let (count, length) = (r.u64("count")?, r.u64("length")?);
        let Some((datatype, data)) = r.rest().split_at_checked(described) else {
            return Err(DecodeError::Truncated { field: "type" });
        };
        let asks = matches!(does, Does::Get | Does::Fetch | Does::Swap);
        let whole = data.len() as u64 == length;
        if asks && question == 0 || !asks && question != 0 && !whole {
            return invalid("question", question.into());
        }
        if described > MAX_BYTES || data.len() > SHORT {
            return Err(DecodeError::TooLong(bytes.len() as u64));
        }
        if !data.is_empty() && data.len() as u64 != length {
            return invalid("length", length);
        }
        Ok(Self {
            does,
            op,
            question,
            first,
            place,
            count,
            length,
            number,
            datatype,
            data,
        })
    }
}

/// Why an operation has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Error class.
    pub class: u32,
    /// For people.
    pub text: String,
}

impl Failure {
    /// As bytes; a long text is cut.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = self.class.to_le_bytes().to_vec();
        bytes.extend_from_slice(cut_to(&self.text, MAX_TEXT).as_bytes());
        bytes
    }

    /// Reads all of `bytes`.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let class = r.u32("class")?;
        let text = r.rest();
        if text.len() > MAX_TEXT {
            return Err(DecodeError::TooLong(text.len() as u64));
        }
        let text = std::str::from_utf8(text).map_err(|_| DecodeError::NotText { field: "text" })?;
        Ok(Self {
            class,
            text: text.into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_survive_the_wire_and_lies_do_not() {
        let operation = Operation {
            does: Does::Fetch,
            op: 0x21,
            question: 7,
            first: 3,
            place: -8,
            count: 5,
            length: 4,
            number: 5,
            datatype: &[1, 2, 3],
            data: &[9; 4],
        };
        let bytes = operation.encode();
        assert_eq!(bytes.len(), HEAD + 7);
        assert_eq!((Operation::question_of(&bytes), Operation::question_of(&[])), (7, 0));
        assert_eq!(Operation::decode(&bytes), Ok(operation.clone()));
        for lie in [
            Operation {
                question: 0,
                ..operation.clone()
            },
            Operation {
                length: 5,
                ..operation.clone()
            },
            Operation {
                does: Does::Put,
                data: &[],
                ..operation.clone()
            },
            Operation {
                number: MOST_TYPES + 1,
                ..operation.clone()
            },
        ] {
            assert!(Operation::decode(&lie.encode()).is_err(), "{lie:?}");
        }
        let mut asks = Operation {
            does: Does::Put,
            question: 0,
            ..operation
        }
        .encode();
        assert_eq!(Operation::decode(&asks).map(|put| put.question), Ok(0));
        Operation::ask(&mut asks, 9);
        assert_eq!(Operation::decode(&asks).map(|put| put.question), Ok(9));
        Operation::ask(&mut [0; 11], 9);
        for length in 0..HEAD + 3 {
            assert!(Operation::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        let mut unknown = bytes;
        unknown[0] = 6;
        assert!(Operation::decode(&unknown).is_err());
    }

    #[test]
    fn failures_survive_the_wire_and_long_texts_are_cut() {
        let failure = Failure {
            class: 55,
            text: "ü".repeat(MAX_TEXT),
        };
        let bytes = failure.encode();
        assert_eq!(bytes.len(), 4 + MAX_TEXT);
        assert_eq!(Failure::decode(&bytes).map(|failure| failure.class), Ok(55));
        assert!(Failure::decode(&bytes[..3]).is_err() && Failure::decode(&bytes[..5]).is_err());
        assert!(Failure::decode(&[b'a'; 5 + MAX_TEXT]).is_err());
    }
}
