// SPDX-License-Identifier: Apache-2.0
//! Message matching and the point-to-point protocol as state machines without I/O.
//!
//! * [`matching`]: posted receives meet arriving messages, in MPI's order.
//! * [`calling`]: short messages that wait at their senders come as soon as there is room for them.
//! * [`credit`]: how much a sender may send unasked, so that unexpected messages take bounded memory.
//! * [`choice`]: which protocol a message uses.
//! * [`patience`]: how a thread waits for others, and whether somebody else wants its processor.
//! * [`ways`]: which way of a long message is quicker between processes that share memory.
#![forbid(unsafe_code)]

pub mod calling;
pub mod choice;
pub mod credit;
mod links;
pub mod matching;
pub mod patience;
pub mod ways;
