// SPDX-License-Identifier: Apache-2.0
//! Remote service requests: frames of the protocols [`REQUESTS`](crate::frame::protocol::REQUESTS) and
//! [`ANSWERS`](crate::frame::protocol::ANSWERS), and global pointers. Answers have a protocol of their own, so that
//! none waits behind requests that wait for credit.
//!
//! Requests. The lower eight bits of `tag` say what a frame is ([`What`]), the others name the handler: numbers that
//! the sender gives to names, from 1 on. The upper half of `token` is the number of the question, 0 if nobody waits for
//! the end. The lower half is the length of all pieces, and `auxiliary` the offset of this one.
//!
//! ```text
//!  kind      handler        question    payload
//!  Name      the next one   0           its name
//!  Request   a known one    0 or more   data
//!  Point     a known one    0 or more   target, 24 bytes | data
//!  Flush     0              1 or more   -                            answered when all before it is done
//!
//!  target    0               4   8          16        24
//!            | region        | 0 | address  | length  |              little-endian
//! ```
//! Answers. `tag` says what a frame is ([`Answer`]); `token` and `auxiliary` as above.
//!
//! ```text
//!  kind      question           payload
//!  Reply     its number         what the handler has replied
//!  Failed    its number, or 0   class: u32 | text, in one piece
//! ```
//! A global pointer is bytes that programs send to each other, the same on all machines.
//!
//! ```text
//!  0      4       8     16     20       24        32       40
//!  | mark | check | job | rank | region | address | length |         little-endian
//! ```
//! `check`: FNV-1a of the bytes behind it. `job`: FNV-1a of the name of the job, 64 bits. `region` 0: no memory.

use crate::codec::{DecodeError, Reader, Writer};
use crate::word;

/// Most bytes of a request, with its target, and of a reply: what fits into the credit of a protocol whatever else has
/// come back in portions.
pub const MAX_BYTES: usize = 4 << 20;
/// Longest name of a handler, in bytes of the program. It travels as a text of [`word`], which is longer where the name
/// is not UTF-8.
pub const MAX_NAME: usize = 128;
/// Most names that a process gives to another one.
pub const MAX_NAMES: usize = 1024;
/// Bytes of a target.
pub const TARGET_BYTES: usize = 24;
/// Bytes of a global pointer.
pub const POINTER_BYTES: usize = 40;

/// First bytes of a global pointer.
const MARK: u32 = u32::from_le_bytes(*b"iGP1");

/// What a frame of a sender is. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[expect(missing_docs, reason = "the module has them")]
pub enum What {
    Name = 1,
    Request = 2,
    Point = 3,
    Flush = 4,
}

impl What {
    /// What a tag says, and the number of the handler.
    pub fn from_tag(tag: i32) -> Option<(Self, u32)> {
        let what = match tag & 0xff {
            1 => Self::Name,
            2 => Self::Request,
            3 => Self::Point,
            4 => Self::Flush,
            _ => return None,
        };
        let handler = u32::try_from(tag >> 8).ok().filter(|&n| n as usize <= MAX_NAMES)?;
        Some((what, handler))
    }

    /// The tag that says this; the handler is at most [`MAX_NAMES`].
    pub fn tag(self, handler: u32) -> i32 {
        (handler as i32) << 8 | self as i32
    }
}

/// What a frame of a receiver is. See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
#[expect(missing_docs, reason = "the module has them")]
pub enum Answer {
    Reply = 1,
    Failed = 2,
}

impl Answer {
    /// The one with this tag, if there is one.
    pub fn from_tag(tag: i32) -> Option<Self> {
        match tag {
            1 => Some(Self::Reply),
            2 => Some(Self::Failed),
            _ => None,
        }
    }
}

/// A token: the question and the bytes of all pieces.
pub fn token(question: u32, bytes: u32) -> u64 {
    u64::from(question) << 32 | u64::from(bytes)
}

/// The two halves of a token: the question, and the bytes of all pieces.
pub fn halves(token: u64) -> (u32, u32) {
    ((token >> 32) as u32, token as u32)
}

/// Whether this is the name of a handler.
pub fn is_name(bytes: &[u8]) -> bool {
    // What stands for a byte takes four.
    let most = 4 * MAX_NAME;
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= most);
    text.is_some_and(|text| (1..=MAX_NAME).contains(&word::to_bytes(text).len()))
}

/// Memory of the process that gets a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which registered memory; 0: none.
    pub region: u32,
    /// Where it begins at its owner.
    pub address: u64,
    /// Its bytes.
    pub length: u64,
}

impl Target {
    /// As bytes.
    pub fn encode(&self) -> [u8; TARGET_BYTES] {
        let mut bytes = [0; TARGET_BYTES];
        bytes[..4].copy_from_slice(&self.region.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.address.to_le_bytes());
        bytes[16..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads the beginning of `bytes`; the rest are data.
    pub fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut r = Reader::new(bytes);
        let region = r.u32("region")?;
        let zero = r.u32("reserved")?;
        if zero != 0 {
            return Err(DecodeError::Invalid {
                field: "reserved",
                value: zero.into(),
            });
        }
        let target = Self {
            region,
            address: r.u64("address")?,
            length: r.u64("length")?,
        };
        Ok((target, r.rest()))
    }
}

/// A process and memory of it. See the module for the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// [`job_number`] of the name of its world.
    pub job: u64,
    /// Rank in that MPI_COMM_WORLD.
    pub rank: u32,
    /// The memory.
    pub target: Target,
}

impl Pointer {
    /// As bytes.
    pub fn encode(&self) -> [u8; POINTER_BYTES] {
        let mut w = Writer::default();
        w.u64(self.job);
        w.u32(self.rank);
        w.u32(self.target.region);
        w.u64(self.target.address);
        w.u64(self.target.length);
        let body = w.into_body();
        let mut bytes = [0; POINTER_BYTES];
        bytes[..4].copy_from_slice(&MARK.to_le_bytes());
        bytes[4..8].copy_from_slice(&check(&body).to_le_bytes());
        bytes[8..].copy_from_slice(&body);
        bytes
    }

    /// Reads the bytes; those of no pointer are found out.
    pub fn decode(bytes: &[u8; POINTER_BYTES]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(bytes);
        let invalid = |field, value: u32| {
            Err(DecodeError::Invalid {
                field,
                value: value.into(),
            })
        };
        let (mark, sum) = (r.u32("mark")?, r.u32("check")?);
        if mark != MARK {
            return invalid("mark", mark);
        }
        if sum != check(&bytes[8..]) {
            return invalid("check", sum);
        }
        let (job, rank, region) = (r.u64("job")?, r.u32("rank")?, r.u32("region")?);
        let target = Target {
            region,
            address: r.u64("address")?,
            length: r.u64("length")?,
        };
        Ok(Self { job, rank, target })
    }
}

/// What stands for the name of a job.
pub fn job_number(name: &str) -> u64 {
    let step = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    name.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn check(bytes: &[u8]) -> u32 {
    let step = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTER: Pointer = Pointer {
        job: 0x1234_5678_9abc_def0,
        rank: 7,
        target: Target {
            region: 3,
            address: 0x7fff_0000_1000,
            length: 4096,
        },
    };

    #[test]
    fn tags_say_what_and_whose() {
        for what in [What::Name, What::Request, What::Point, What::Flush] {
            assert_eq!(What::from_tag(what.tag(17)), Some((what, 17)));
        }
        for tag in [0, 5, -1, i32::MIN, What::Name.tag(MAX_NAMES as u32 + 1)] {
            assert_eq!(What::from_tag(tag), None, "{tag}");
        }
        assert_eq!(halves(token(7, 9)), (7, 9));
        assert!(is_name(b"work") && !is_name(b"") && !is_name(&[0xff]) && !is_name(&[b'a'; MAX_NAME + 1]));
        let latin = |bytes: usize| word::from_bytes(&vec![0xe9; bytes]);
        assert!(is_name(latin(MAX_NAME).as_bytes()) && !is_name(latin(MAX_NAME + 1).as_bytes()));
    }

    #[test]
    fn pointers_survive_the_wire_and_other_bytes_are_none() {
        let bytes = POINTER.encode();
        assert_eq!(Pointer::decode(&bytes), Ok(POINTER));
        for bit in 0..8 * POINTER_BYTES {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Pointer::decode(&changed).is_err(), "bit {bit}");
        }
        assert!(Pointer::decode(&[0; POINTER_BYTES]).is_err());
    }

    #[test]
    fn targets_stand_before_their_data() {
        let mut bytes = POINTER.target.encode().to_vec();
        bytes.extend_from_slice(b"data");
        assert_eq!(Target::decode(&bytes), Ok((POINTER.target, &b"data"[..])));
        for length in 0..TARGET_BYTES {
            assert!(Target::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
        bytes[5] = 1;
        assert!(Target::decode(&bytes).is_err());
    }
}
