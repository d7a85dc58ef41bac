// SPDX-License-Identifier: Apache-2.0
//! Shared memory between the processes of a node: rings, doorbells, cross-memory copies.
//!
//! The `n` processes of a job on one node have *slots* `0..n` and share one file in a memory file system,
//! the [segment](segment). It holds one *block* per process (its doorbell and who it is) and `n × n` *rings*, each
//! written by one process and read by one other:
//!
//! ```text
//!  +--------+---------+---------+-----+--------+-----+-----------+-----------+-----+-------------------+
//!  | header | block 0 | block 1 | ... | slab 0 | ... | ring 0<-0 | ring 0<-1 | ... | ring (n-1)<-(n-1) |
//!  +--------+---------+---------+-----+--------+-----+-----------+-----------+-----+-------------------+
//! ```
//!
//! A ring that was never used has no memory behind it. A frame is one record in the ring of its pair; the
//! store that publishes it is the only one the receiver waits for, and the receiver reads the
//! payload where it lies. Who the receiver has to look at, and when it has to be woken, is the [`bell`]'s business.
//! Long messages do not pass through the ring: the receiver copies them out of the sender's memory ([`pull`]), and a
//! sender that polls meanwhile copies a part of them ([`assist`]). Collective operations need no messages: groups meet
//! in [`slabs`], with counters that say who has come and gone ([`desk`]).
//!
//! # Access protocol
//!
//! All unsafe code of this room rests on these rules. "Owner" is the process with that slot.
//!
//! 1. The mapping lives as long as a value that has an address in it ([`segment`]). What leaves the room, cells of
//!    slabs, is borrowed from the [`ShmTransport`].
//! 2. Words that several processes touch at the same time (header counters, bells, ring words and counters) are
//!    only touched as atomics.
//! 3. The part of a ring between *consumed* and *written* belongs to the reader, the rest to the writer
//!    ([`ring`], rules R1-R6). Only the reader moves *consumed*, only the writer moves *written*, which
//!    is not stored anywhere: it is the first record whose word is still zero.
//! 4. The words before the geometry in the header, and the geometry itself, are written before the file gets its name
//!    and never again.
//! 5. The identity of a process in its block is written by its owner before it counts itself as joined with
//!    a release store of its state; others read it only after an acquire load of that state.
//! 6. A cell of a slab belongs to the member that gives until it has arrived in the round, then to nobody (all may
//!    read it) until all have left. The engine keeps the order; the counters make it visible to others. In this process
//!    nobody has a cell for writing while somebody has one at all: they are borrowed, for writing by the only one.
//! 7. Nothing read from shared memory is trusted as an address or a length: it is checked against the
//!    ring it came from, and a ring that fails the check is never read again. A
//!    process of the same user can still corrupt *data*; it cannot make this one touch memory outside the segment.
//!
//! # Death of a process
//!
//! No loop in this room waits for another process, except for a piece of a message that a process is about to write
//! ([`assist`]), and who waits for that looks whether the process still lives. A dead reader leaves its rings full
//! ([`SendError::WouldBlock`](isthmus_transport::SendError)), a dead writer leaves them empty; the agent ends the job.
//! The segment file loses its name as soon as the last process has mapped it, so nothing stays behind.

mod assist;
mod bell;
mod desk;
mod ring;
mod sync;

#[cfg(not(loom))]
mod brought;
#[cfg(not(loom))]
mod company;
#[cfg(not(loom))]
mod doorbell;
#[cfg(not(loom))]
mod error;
#[cfg(not(loom))]
mod file;
#[cfg(not(loom))]
mod geometry;
mod gone;
#[cfg(not(loom))]
mod known;
#[cfg(not(loom))]
mod pull;
#[cfg(not(loom))]
mod rounds;
#[cfg(not(loom))]
mod segment;
#[cfg(not(loom))]
mod sharing;
#[cfg(not(loom))]
mod slabs;
#[cfg(not(loom))]
mod slots;
#[cfg(not(loom))]
mod spread;
#[cfg(not(loom))]
mod together;
#[cfg(not(loom))]
mod transport;
#[cfg(not(loom))]
mod view;
#[cfg(not(loom))]
mod vigil;

#[cfg(not(loom))]
pub use assist::fuzz_desk;
#[cfg(not(loom))]
pub use brought::Brought;
#[cfg(not(loom))]
pub use company::Company;
#[cfg(not(loom))]
pub use error::ShmError;
#[cfg(not(loom))]
pub use geometry::{Geometry, MAX_PROCESSES};
#[cfg(not(loom))]
pub use transport::ShmTransport;
