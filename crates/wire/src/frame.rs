// SPDX-License-Identifier: Apache-2.0
//! The header in front of every message between two MPI processes.
//!
//! ```text
//!  byte 0        1        2                 4                          8
//!      +--------+--------+-----------------+--------------------------+
//!    0 | kind   | flags  | form, check     | context                  |
//!      +--------+--------+-----------------+--------------------------+
//!    8 | source: rank in the communicator  | tag (signed)             |
//!      +-----------------------------------+--------------------------+
//!   16 | length: bytes of the whole message (see each kind)           |
//!      +--------------------------------------------------------------+
//!   24 | token: names a request of one of the two sides               |
//!      +--------------------------------------------------------------+
//! ```
//! `form`, one bit: 1 if the message is packed data in the common form, else 0 (the representation of the sender).
//! `check`, the other 15 bits of that field: a sum of everything else, so that a header in which anything was changed
//! is found out. Little-endian. `Cts` and `Data` do not need context, source and tag; the eight bytes of `context` and
//! `source` carry [`Header::auxiliary`] there (receiver's token, offset of the fragment). `flags` of `Cts`: [`BULK`],
//! [`ROOM`].

/// Size of an encoded [`Header`] in bytes.
pub const HEADER_BYTES: usize = 32;

/// What a frame is.
///
/// | kind | payload | `length` | `token` | `auxiliary` |
/// |---|---|---|---|---|
/// | Eager | the message | bytes of the message | sender's request, to be named by `Cancel`; 0: never | – |
/// | EagerSync | the message | bytes of the message | sender's request, to be named by `Ack` | – |
/// | Rts | transport's own handle and a byte: 1 if the sender can as well send frames at once, else 0; or nothing | bytes of the message | sender's request | – |
/// | Announce | – | bytes of the message | sender's request | – |
/// | Cts | – | bytes the receiver wants (less than offered when it truncates) | sender's request | receiver's request, or its name for the message |
/// | Data | fragment | bytes of the fragment | as in `Cts` | offset of the fragment in the packed message |
/// | Ack | – | 0 | sender's request | – |
/// | Pulled | – | bytes taken | sender's request | – |
/// | Cancel | – | 0 asks for the message; 1 it is gone for good; 2 it stays after all | sender's request, as in the message's first frame | context of the message, behind which it must stay |
/// | CancelReply | – | 1 if the message was thrown away, 0 if it had matched | sender's request | – |
/// | Probe | bytes without meaning | how many | see [`Probe`] | [`Probe`] |
/// | Assist | – | bytes of the message | address of the message at its sender | address of the message at its receiver; the tag is the number of the copy |
/// | Padding | bytes without meaning | how many | 0 | – |
/// | Protocol | what the protocol says, or a piece of it | bytes of it | the protocol's | the protocol's, plus the offset of the piece; the tag is the protocol's |
/// | Credit | – | cost of the messages that no longer wait at the receiver | 0 | – |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A whole message, not asked for.
    Eager = 1,
    /// A whole message of a synchronous send: the receiver answers [`Kind::Ack`] when it has matched.
    EagerSync = 2,
    /// Request to send: a message that waits at the sender.
    Rts = 3,
    /// Clear to send: the receiver has matched an `Rts` and wants the data.
    Cts = 4,
    /// A fragment of a message that was cleared.
    Data = 5,
    /// A synchronous message was matched.
    Ack = 6,
    /// The receiver has copied the message out of the sender's memory by itself.
    Pulled = 7,
    /// The sender wants a message back that was not matched yet.
    Cancel = 8,
    /// Answer to `Cancel`.
    CancelReply = 9,
    /// The receiver has matched messages whose memory it lent: the sender may send that much unasked again.
    Credit = 10,
    /// Measures a connection; made and taken by the transports themselves.
    Probe = 11,
    /// The receiver copies a message out of the sender's memory, and asks it to copy a part into its own; made and
    /// taken by the transport inside a node.
    Assist = 12,
    /// Moves what follows to another place in the sender's pages; made and taken by the transport inside a site.
    Padding = 13,
    /// A short message that waits at the sender for want of credit: as `Rts`, but the receiver asks for it as soon as
    /// it has room.
    /// `flags`: 1 if the send is synchronous.
    Announce = 14,
    /// Of a protocol beside messages, whose number is in `flags`: see [`protocol`].
    Protocol = 15,
}

/// Numbers of protocols beside messages ([`Kind::Protocol`]). A new one has its number and its bytes here, and no
/// transport needs to know it.
pub mod protocol {
    /// A process calls another one about files. The lower half of `token` names the call, the upper half those among
    /// whom it is (0: their world, else the first context of the block of those who have met), `context` is its length:
    /// what follows as a message ([`file::Call`](crate::file::Call)).
    pub const FILES: u8 = 1;
    /// A member of a communicator that waits in a collective operation asks another one whether it is in the same, and
    /// is answered. `context` is the communicator's, the lower half of `token` the number of the operation, the upper
    /// half what is said (0: asks, 1: it is another one, 2: it has given up, 3: it is over, 4: nothing, only to make
    /// a connection), `tag` stands for the operation's name. Who has given up says which rank (`source`) has called
    /// which other one. No payload.
    pub const AGREEMENT: u8 = 2;
    /// One-sided communication: see [`rma`](crate::rma).
    pub const RMA: u8 = 3;
    /// A communicator is revoked: its context is `token`. Who hears it first passes it on to some of the other members.
    /// No payload.
    pub const REVOKE: u8 = 4;
    /// Letters that launchers write each other: see [`letter`](crate::letter). `token` names the errand, `tag` is 0
    /// for a letter and 1 for what became of it ([`Back`](crate::letter::Back)), which is the payload then. The
    /// upper half of the auxiliary is how many bytes all pieces have.
    pub const LETTERS: u8 = 5;
    /// Remote service requests: see [`requests`](crate::requests).
    pub const REQUESTS: u8 = 8;
    /// What they are answered, and those that wait for it: see [`requests`](crate::requests).
    pub const ANSWERS: u8 = 9;
    /// A process is done with frames of the protocol whose number is `token`: their sender may send frames of this
    /// cost again ([`auxiliary`](super::Header::auxiliary)). No payload.
    pub const CREDIT: u8 = 254;
    /// For tests.
    pub const TEST: u8 = 255;

    /// Whether its frames keep their order with the messages of their context. What one says of an operation is true of
    /// the messages that came before it: it must not overtake them.
    pub const fn is_among_messages(number: u8) -> bool {
        number == AGREEMENT
    }
}

/// Flag of [`Kind::Cts`]: the data may come in bulk.
pub const BULK: u8 = 1;
/// Flag of [`Kind::Cts`]: the message has not matched; it was announced, and there is room for it. A synchronous one is
/// acknowledged when it matches.
pub const ROOM: u8 = 2;
/// Flag of [`Kind::Announce`]: the sender waits to hear that the message has matched.
pub const SYNCHRONOUS: u8 = 1;

/// What a [`Kind::Probe`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Probe {
    /// Wants an answer at once; `token` names the question.
    Ask = 1,
    /// The answer; `token` as in the question.
    Answer = 2,
    /// Wants `token` bytes in frames of kind [`Probe::Train`]; 0: wants no more.
    Want = 3,
    /// Some of them; none in the first one.
    Train = 4,
}

impl Probe {
    /// The one with this code, if there is one.
    pub fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => Self::Ask,
            2 => Self::Answer,
            3 => Self::Want,
            4 => Self::Train,
            _ => return None,
        })
    }
}

impl Kind {
    /// The kind with this code, if there is one.
    #[inline]
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            1 => Self::Eager,
            2 => Self::EagerSync,
            3 => Self::Rts,
            4 => Self::Cts,
            5 => Self::Data,
            6 => Self::Ack,
            7 => Self::Pulled,
            8 => Self::Cancel,
            9 => Self::CancelReply,
            10 => Self::Credit,
            11 => Self::Probe,
            12 => Self::Assist,
            13 => Self::Padding,
            14 => Self::Announce,
            15 => Self::Protocol,
            _ => return None,
        })
    }
}

/// A decoded frame header. See the module for the layout.
// Fields that are neighbours in a word on the wire are none here: two that were just written would be read as one, for
// which processors wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Header {
    /// See [`Kind`].
    pub length: u64,
    /// See [`Kind`].
    pub token: u64,
    /// Rank of the sender in the communicator (for an intercommunicator: in its local group).
    pub source: u32,
    /// Context of the communicator: point-to-point and collective traffic have different ones.
    pub context: u32,
    /// Tag, never negative for messages of the user.
    pub tag: i32,
    /// What the frame is.
    pub kind: Kind,
    /// See [`BULK`], [`ROOM`], [`SYNCHRONOUS`], [`protocol`] and [`Header::payload_bytes`]; otherwise 0.
    pub flags: u8,
    /// The message is packed data in the form that is common to processes that represent data differently, whatever the
    /// representation of its sender.
    pub common: bool,
}

/// Why a header was refused. The connection that sent it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// No such kind.
    UnknownKind(u8),
    /// Its sum is wrong: something of it was changed after it was made.
    Check,
}

impl std::fmt::Display for HeaderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::UnknownKind(code) => write!(f, "frame of unknown kind {code}"),
            Self::Check => f.write_str("frame header whose check is wrong"),
        }
    }
}

impl std::error::Error for HeaderError {}

impl Header {
    /// A header without flags.
    #[inline]
    pub fn new(kind: Kind, context: u32, source: u32, tag: i32, length: u64, token: u64) -> Self {
        Self {
            kind,
            flags: 0,
            common: false,
            context,
            source,
            tag,
            length,
            token,
        }
    }

    /// A header of a kind that names only requests (`Cts`, `Data`, `Ack`, `Pulled`, `Cancel`, `CancelReply`).
    #[inline]
    pub fn control(kind: Kind, token: u64, auxiliary: u64, length: u64) -> Self {
        let context = (auxiliary & 0xffff_ffff) as u32;
        let source = (auxiliary >> 32) as u32;
        Self {
            kind,
            flags: 0,
            common: false,
            context,
            source,
            tag: 0,
            length,
            token,
        }
    }

    /// A frame that measures.
    pub fn probe(what: Probe, length: u64, token: u64) -> Self {
        Self::control(Kind::Probe, token, what as u64, length)
    }

    /// The eight bytes of `context` and `source` read as one number (`Cts`, `Data`).
    #[inline]
    pub fn auxiliary(&self) -> u64 {
        u64::from(self.context) | (u64::from(self.source) << 32)
    }

    /// Number of payload bytes that follow this header on a byte stream.
    /// `Rts` carries the size of its payload in `flags`, so a handle has at most 254 bytes.
    #[inline]
    pub fn payload_bytes(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::EagerSync | Kind::Data | Kind::Probe | Kind::Padding | Kind::Protocol => self.length,
            Kind::Rts => u64::from(self.flags),
            Kind::Announce
            | Kind::Cts
            | Kind::Ack
            | Kind::Pulled
            | Kind::Cancel
            | Kind::CancelReply
            | Kind::Credit
            | Kind::Assist => 0,
        }
    }

    /// Encodes into the layout of the module.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        for (bytes, word) in out.chunks_exact_mut(8).zip(self.words()) {
            bytes.copy_from_slice(&word.to_ne_bytes());
        }
        out
    }

    /// Encodes to words whose bytes, as they lie in memory, are those of the header: who writes a word at a time need
    /// not wait for bytes that it has just written itself.
    #[inline(always)]
    pub fn words(&self) -> [u64; HEADER_BYTES / 8] {
        let first = u64::from(self.kind as u8) | u64::from(self.flags) << 8 | u64::from(self.common) << 16;
        let words = [
            first | u64::from(self.context) << 32,
            u64::from(self.source) | u64::from(self.tag as u32) << 32,
            self.length,
            self.token,
        ];
        let [first, rest @ ..] = words;
        let words = [first | check(words) << CHECK, rest[0], rest[1], rest[2]];
        words.map(u64::to_le)
    }

    /// Decodes; the limits on `length` are the caller's.
    #[inline]
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, HeaderError> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let kind = Kind::from_code(bytes[0]).ok_or(HeaderError::UnknownKind(bytes[0]))?;
        let u64_at = |at: usize| u64::from(u32_at(at)) | (u64::from(u32_at(at + 4)) << 32);
        let first = u64_at(0);
        let words = [first & !(0x7fff << CHECK), u64_at(8), u64_at(16), u64_at(24)];
        if first >> CHECK & 0x7fff != check(words) {
            return Err(HeaderError::Check);
        }
        Ok(Self {
            kind,
            flags: bytes[1],
            common: bytes[2] & 1 == 1,
            context: u32_at(4),
            source: u32_at(8),
            tag: u32_at(12) as i32,
            length: u64_at(16),
            token: u64_at(24),
        })
    }
}

/// These bytes with the check that belongs to them: for fuzz targets, which would not get past it.
pub fn checked(mut bytes: [u8; HEADER_BYTES]) -> [u8; HEADER_BYTES] {
    let mut words = [0; HEADER_BYTES / 8];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    words[0] &= !(0x7fff << CHECK);
    words[0] |= check(words) << CHECK;
    bytes[..8].copy_from_slice(&words[0].to_le_bytes());
    bytes
}

/// First bit of the check in the first word.
const CHECK: u32 = 17;

/// A sum of 15 bits over the words of a header, whose own bits are 0 there. It finds faults; somebody who means harm
/// can compute it too.
#[inline(always)]
fn check([a, b, c, d]: [u64; HEADER_BYTES / 8]) -> u64 {
    let all = a ^ b.rotate_left(17) ^ c.rotate_left(31) ^ d.rotate_left(47);
    // Multiplication by an odd constant close to 2^64 / golden ratio; the upper bits depend on all.
    all.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 49
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_survives_the_wire() {
        let mut header = Header::new(Kind::EagerSync, 7, 0xdead_beef, -2, 1 << 40, u64::MAX - 1);
        header.common = true;
        assert_eq!(Header::decode(&header.encode()), Ok(header));
        let cts = Header::control(Kind::Cts, 5, 0x0123_4567_89ab_cdef, 9);
        assert_eq!(
            Header::decode(&cts.encode()).unwrap().auxiliary(),
            0x0123_4567_89ab_cdef
        );
    }

    #[test]
    fn garbage_is_refused() {
        let mut bytes = Header::control(Kind::Ack, 0, 0, 0).encode();
        bytes[2] = 2;
        assert_eq!(Header::decode(&bytes), Err(HeaderError::Check));
        let good = Header::new(Kind::Eager, 7, 3, 5, 100, 9).encode();
        for bit in 0..8 * HEADER_BYTES {
            let mut changed = good;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&changed).is_err(), "bit {bit}");
            assert_eq!(checked(checked(changed)), checked(changed), "bit {bit}");
            assert!(Header::decode(&checked(changed)).is_ok() || bit < 8, "bit {bit}");
        }
        assert_eq!(Header::decode(&[0; 32]), Err(HeaderError::UnknownKind(0)));
    }
}
