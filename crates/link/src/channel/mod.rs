// SPDX-License-Identifier: Apache-2.0
//! A channel: what two processes at different sites say to each other, whatever becomes of the connections under it.
//!
//! ```text
//!   frames, long data ──> Outgoing: numbers, keeps ──> connection 1 ──> Deframer ──> Incoming: drops what it has,
//!                         until acknowledged      ──> connection 2 ──>               puts frames in order
//!                              ^                                                        │
//!                              └──────────────── Ack (per connection), Hello ───────────┘
//! ```
//! * Every segment has a number, unique in its direction, and goes on one connection. TCP keeps what is on one
//!   connection whole and in order, so an acknowledgement is a count of segments per connection.
//! * When a connection breaks, what was not acknowledged on it goes again, on any other; the
//!   [`Hello`](isthmus_wire::segment::Hello) on a new connection saves what had arrived. The receiver drops numbers
//!   that it has.
//! * Frames keep their order within a *queue* (the communicators of one class); fragments of long messages need no
//!   order, so they spread over connections without waiting for each other.
//!
//! Nothing here knows a clock or a socket: time is a duration since any beginning.

mod deframer;
mod incoming;
mod outgoing;
mod seen;
mod vigil;

pub use deframer::{Deframed, Deframer};
pub use incoming::{Incoming, REORDER_BYTES};
pub use outgoing::{Outgoing, Piece, SegmentPlace};
pub use seen::{MAX_GAPS, Seen};
pub use vigil::{ACK_BYTES, ACK_DELAY, Begun, Duty, Receipts, SILENCE, Vigil};

use isthmus_wire::segment::SegmentError;

/// Names a connection of a channel; never used twice.
pub type ConnectionId = u64;

/// The peer does not keep the rules of channels; nothing it says can be relied on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A header that makes no sense.
    Segment(SegmentError),
    /// A hello that makes no sense, a second one, or something else in its place.
    Hello,
    /// More was acknowledged than had been sent.
    Acknowledged {
        /// What the peer said.
        count: u64,
        /// What it could have got.
        sent: u64,
    },
    /// The number 0, or a new number for a place in a queue that was filled already.
    Number(u64),
    /// More that is out of order than may be kept.
    Disorder,
    /// Something came after the farewell.
    AfterFarewell,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Segment(e) => write!(f, "it sent a {e}"),
            Self::Hello => f.write_str("it began a connection in a way that makes no sense"),
            Self::Acknowledged { count, sent } => write!(f, "it acknowledged {count} segments of {sent}"),
            Self::Number(number) => write!(f, "it sent segment {number} to a place that was taken"),
            Self::Disorder => f.write_str("it sent more out of order than the limit allows"),
            Self::AfterFarewell => f.write_str("it went on after its farewell"),
        }
    }
}

impl std::error::Error for Violation {}
