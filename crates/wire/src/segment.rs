// SPDX-License-Identifier: Apache-2.0
//! What is on a connection between sites, once it is proven whose it is: segments of a channel.
//!
//! A channel uses any number of connections at a time, one after the other and side by side. What it carries is cut
//! into numbered segments; a segment that was sent on a connection that broke is sent again on another one, and the
//! receiver drops what it has already.
//! ```text
//!  byte 0        1        2        3        4                          8
//!      +--------+--------+--------+--------+--------------------------+
//!    0 | kind   | queue  | flags  | check  | length: bytes that follow|
//!      +--------+--------+--------+--------+--------------------------+
//!    8 | number                                                       |
//!      +--------------------------------------------------------------+
//!   16 | position                                                     |
//!      +--------------------------------------------------------------+
//!   24 | token                                                        |
//!      +--------------------------------------------------------------+
//! ```
//! Little-endian. Fields that a kind does not use are 0. `check` is a sum of all others, so that a header in which
//! anything was changed is found out. The first segment in each direction of a connection is a [`Kind::Hello`].
//!
//! With [`COMPRESSED`] in `flags` what follows is: length without compression 4 | filter 1 | a zstd frame.

/// Size of an encoded [`Segment`] header in bytes.
pub const SEGMENT_BYTES: usize = 32;
/// Longest that may follow a header, bytes.
pub const MAX_SEGMENT: usize = 512 << 10;
/// Most ranges in a [`Hello`]; what did not fit is sent again for nothing.
pub const MAX_RANGES: usize = 256;
/// In `flags`: what follows is compressed.
pub const COMPRESSED: u8 = 1;

/// What a segment is.
///
/// | kind | follows | `number` | `position` | `token` |
/// |---|---|---|---|---|
/// | Hello | ranges of a [`Hello`] | all below it have arrived | – | version, [`VERSION`] |
/// | Ordered | a part of the queue's stream of frames | of the segment, from 1 | of its first byte in the stream | – |
/// | Fragment | a part of a long message | of the segment | offset in the message | receiver's request |
/// | Ack | – | numbered segments that arrived on this connection | – | – |
/// | Ask | – | – | – | – |
/// | Streams | – | how many connections are wanted in all | – | – |
/// | Loose | one frame that may be lost | – | – | – |
/// | Farewell | – | – | – | – |
/// | GivenUp | – | – | – | – |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// What has arrived until now, on all connections.
    Hello = 1,
    /// Frames; in order within their queue.
    Ordered = 2,
    /// Data that were asked for; in any order.
    Fragment = 3,
    /// What has arrived on this connection.
    Ack = 4,
    /// Wants a [`Kind::Ack`] at once.
    Ask = 5,
    /// Whoever can dial is asked to.
    Streams = 6,
    /// Measures; not sent again.
    Loose = 7,
    /// All was acknowledged, and no more comes.
    Farewell = 8,
    /// Whoever says it does not rely on the other end any more, and takes nothing from it.
    GivenUp = 9,
}

impl Kind {
    fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Hello,
            2 => Self::Ordered,
            3 => Self::Fragment,
            4 => Self::Ack,
            5 => Self::Ask,
            6 => Self::Streams,
            7 => Self::Loose,
            8 => Self::Farewell,
            9 => Self::GivenUp,
            _ => return None,
        })
    }
}

/// Version of this layout, in the hello.
pub const VERSION: u64 = 4;

/// A decoded header. See the module for the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// What it is.
    pub kind: Kind,
    /// Which stream of frames it belongs to.
    pub queue: u8,
    /// See the module.
    pub flags: u8,
    /// Bytes that follow.
    pub length: u32,
    /// See [`Kind`].
    pub number: u64,
    /// See [`Kind`].
    pub position: u64,
    /// See [`Kind`].
    pub token: u64,
}

/// Why a header was refused. The connection that sent it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// No such kind.
    UnknownKind(u8),
    /// Its sum is wrong: something of it was changed after it was made.
    Check,
    /// A flag or byte that has no meaning is set.
    Reserved(u8),
    /// More than [`MAX_SEGMENT`] bytes, or bytes where none belong.
    Length(u32),
}

impl std::fmt::Display for SegmentError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownKind(code) => write!(f, "segment of unknown kind {code}"),
            Self::Check => f.write_str("segment whose check is wrong"),
            Self::Reserved(bits) => write!(f, "segment with reserved bits {bits:#04x}"),
            Self::Length(bytes) => write!(f, "segment with {bytes} bytes"),
        }
    }
}

impl std::error::Error for SegmentError {}

impl Segment {
    /// A header with nothing but a number.
    pub fn control(kind: Kind, number: u64) -> Self {
        Self {
            kind,
            queue: 0,
            flags: 0,
            length: 0,
            number,
            position: 0,
            token: 0,
        }
    }

    /// Whether the receiver counts and acknowledges it.
    pub fn is_numbered(&self) -> bool {
        matches!(self.kind, Kind::Ordered | Kind::Fragment)
    }

    /// Encodes into the layout of the module.
    pub fn encode(&self) -> [u8; SEGMENT_BYTES] {
        let mut out = [0; SEGMENT_BYTES];
        out[0] = self.kind as u8;
        out[1] = self.queue;
        out[2] = self.flags;
        out[4..8].copy_from_slice(&self.length.to_le_bytes());
        out[8..16].copy_from_slice(&self.number.to_le_bytes());
        out[16..24].copy_from_slice(&self.position.to_le_bytes());
        out[24..32].copy_from_slice(&self.token.to_le_bytes());
        out[3] = check(&out);
        out
    }

    /// Decodes and checks the length.
    pub fn decode(bytes: &[u8; SEGMENT_BYTES]) -> Result<Self, SegmentError> {
        let u64_at = |at: usize| {
            let mut out = [0; 8];
            out.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(out)
        };
        let kind = Kind::from_code(bytes[0]).ok_or(SegmentError::UnknownKind(bytes[0]))?;
        let length = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
        let carries = matches!(kind, Kind::Ordered | Kind::Fragment | Kind::Loose);
        let compressible = matches!(kind, Kind::Ordered | Kind::Fragment);
        let known = if compressible { COMPRESSED } else { 0 };
        if bytes[3] != check(bytes) {
            return Err(SegmentError::Check);
        }
        if bytes[2] & !known != 0 {
            return Err(SegmentError::Reserved(bytes[2] & !known));
        }
        let limit = match kind {
            Kind::Hello => MAX_RANGES * 16,
            _ if carries => MAX_SEGMENT,
            _ => 0,
        };
        if length as usize > limit || (carries && length == 0) {
            return Err(SegmentError::Length(length));
        }
        Ok(Self {
            kind,
            queue: bytes[1],
            flags: bytes[2],
            length,
            number: u64_at(8),
            position: u64_at(16),
            token: u64_at(24),
        })
    }
}

/// A sum over a header but for its own byte. It finds faults; somebody who means harm can compute it too.
fn check(bytes: &[u8; SEGMENT_BYTES]) -> u8 {
    let mut all = 0;
    for (chunk, turn) in bytes.chunks_exact(8).zip([0, 17, 31, 47]) {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        if turn == 0 {
            word[3] = 0;
        }
        all ^= u64::from_le_bytes(word).rotate_left(turn);
    }
    // As in the header of frames.
    (all.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8
}

/// What has arrived on all connections of a channel until now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// All numbers below it.
    pub below: u64,
    /// And those from the first up to, not including, the second of each; ascending, not touching.
    pub ranges: Vec<(u64, u64)>,
}

impl Hello {
    /// Header and body.
    pub fn encode(&self) -> Vec<u8> {
        let ranges = &self.ranges[..self.ranges.len().min(MAX_RANGES)];
        let head = Segment {
            length: (ranges.len() * 16) as u32,
            token: VERSION,
            ..Segment::control(Kind::Hello, self.below)
        };
        let mut out = head.encode().to_vec();
        for (from, to) in ranges {
            out.extend_from_slice(&from.to_le_bytes());
            out.extend_from_slice(&to.to_le_bytes());
        }
        out
    }

    /// From a header of kind [`Kind::Hello`] and its body; `None` when the two, or the ranges, make no sense.
    pub fn decode(head: &Segment, body: &[u8]) -> Option<Self> {
        if head.kind != Kind::Hello
            || head.token != VERSION
            || head.queue != 0
            || head.position != 0
            || head.length as usize != body.len()
            || body.len() % 16 != 0
        {
            return None;
        }
        let mut ranges = Vec::with_capacity(body.len() / 16);
        let mut last = head.number;
        for pair in body.chunks_exact(16) {
            let from = u64::from_le_bytes(pair[..8].try_into().ok()?);
            let to = u64::from_le_bytes(pair[8..].try_into().ok()?);
            if from <= last || to <= from {
                return None;
            }
            last = to;
            ranges.push((from, to));
        }
        Some(Self {
            below: head.number,
            ranges,
        })
    }

    /// Whether this number has arrived.
    pub fn has(&self, number: u64) -> bool {
        number < self.below || self.ranges.iter().any(|(from, to)| (*from..*to).contains(&number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_survive_the_wire() {
        let segment = Segment {
            kind: Kind::Fragment,
            queue: 3,
            flags: COMPRESSED,
            length: 77,
            number: u64::MAX,
            position: 1 << 40,
            token: 9,
        };
        assert_eq!(Segment::decode(&segment.encode()), Ok(segment));
        let hello = Hello {
            below: 7,
            ranges: vec![(9, 10), (12, 400)],
        };
        let bytes = hello.encode();
        let head = Segment::decode(bytes[..SEGMENT_BYTES].try_into().unwrap()).unwrap();
        assert_eq!(Hello::decode(&head, &bytes[SEGMENT_BYTES..]).as_ref(), Some(&hello));
        assert!(hello.has(6) && !hello.has(7) && hello.has(9) && !hello.has(10) && hello.has(399));
    }

    #[test]
    fn nonsense_is_refused() {
        let good = Segment {
            length: 5,
            ..Segment::control(Kind::Ordered, 1)
        };
        let with = |at: usize, value: u8| {
            let mut bytes = good.encode();
            bytes[at] = value;
            bytes[3] = check(&bytes);
            Segment::decode(&bytes)
        };
        for bit in 0..8 * SEGMENT_BYTES {
            let mut changed = good.encode();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Segment::decode(&changed).is_err(), "bit {bit}");
        }
        assert_eq!(with(0, 99), Err(SegmentError::UnknownKind(99)));
        assert_eq!(with(2, 2), Err(SegmentError::Reserved(2)));
        assert!(matches!(with(7, 1), Err(SegmentError::Length(_))));
        assert_eq!(with(4, 0), Err(SegmentError::Length(0)));
        assert_eq!(with(0, Kind::Ack as u8), Err(SegmentError::Length(5)));
        let head = Segment {
            length: 16,
            token: VERSION,
            ..Segment::control(Kind::Hello, 7)
        };
        let body = |from: u64, to: u64| [from.to_le_bytes(), to.to_le_bytes()].concat();
        for (from, to) in [(7, 9), (3, 4), (9, 9), (9, 8)] {
            assert_eq!(Hello::decode(&head, &body(from, to)), None, "{from} {to}");
        }
        assert_eq!(Hello::decode(&head, &[0; 15]), None);
    }
}
