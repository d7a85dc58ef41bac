// SPDX-License-Identifier: Apache-2.0
//! Message matching and the point-to-point protocol as state machines without I/O.
//!
//! * [`matching`]: posted receives meet arriving messages, in MPI's order.
//! * [`calling`]: short messages that wait at their senders come as soon as there is room for them.
//! * [`credit`]: how much a sender may send unasked, so that unexpected messages take bounded memory.
//! * [`channel`]: numbered segments that survive the connections that carry them.
//! * [`lived`]: a clock that stands still while its process had no processor.
//! * [`choice`]: which protocol a message uses.
//! * [`patience`]: how a thread waits for others, and whether somebody else wants its processor.
//! * [`meter`]: what arrivals say about a link: round trip, rate, and how sure that is.
//! * [`ways`]: which way of a long message is quicker between processes that share memory.
//! * [`trunk`]: many streams on one connection between two gateways.
#![forbid(unsafe_code)]

pub mod calling;
pub mod channel;
pub mod choice;
pub mod credit;
mod links;
pub mod lived;
pub mod matching;
pub mod meter;
pub mod patience;
pub mod trunk;
pub mod ways;
