// SPDX-License-Identifier: Apache-2.0
//! Memory of windows: what processes of one machine share, and reach of each other, without messages.
//!
//! One process [makes](Sharing::make) a piece of memory and tells the others its number; they [open](Sharing::open) it;
//! when all have it, whoever made it takes its [name](Sharing::unname) away, so that nothing of it outlives the last of
//! them, however that ends. Pieces of MPI_Alloc_mem keep their names until they are freed; the agent removes what is
//! left.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use isthmus_datatype::raw::{Promised, WriteMemory};

use crate::Peer;

/// A piece of memory that processes share, as long as the value lives.
pub trait SharedMemory: Send + Sync {
    /// Words at its beginning, which everybody touches as atomics only; zero at first.
    fn words(&self) -> &[AtomicU64];

    /// Where the rest begins, which belongs to the program while the piece is there; zero at first.
    fn address(&self) -> usize;

    /// Its bytes.
    fn bytes(&self) -> usize;

    /// The same as memory. Who has promised what the program does with it has promised to keep the piece, too.
    fn memory(&self, promise: Promised) -> WriteMemory;
}

/// Address and length of bytes in another process.
pub type Run = (u64, usize);

/// The memory of another process.
pub trait Reach: Send + Sync {
    /// Copies runs of it, which fill `into` exactly.
    fn read(&self, runs: &[Run], into: &mut [u8]) -> Result<(), Unreached>;

    /// Replaces runs of it by `from`, which fills them exactly.
    fn write(&self, runs: &[Run], from: &[u8]) -> Result<(), Unreached>;
}

/// Why memory of another process was not reached. The texts are for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// The process has ended.
    Gone(String),
    /// It has no such memory, or none that may be used so.
    Nowhere(String),
    /// The system does not let this process do that.
    Refused(String),
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(why) | Self::Nowhere(why) | Self::Refused(why) => f.write_str(why),
        }
    }
}

/// A transport between processes of one machine.
pub trait Sharing {
    /// A new piece of memory, all of which is really there, and the number by which others find it. The error is for
    /// people: which memory, and what to do.
    fn make(&mut self, words: usize, bytes: usize) -> Result<(u64, Arc<dyn SharedMemory>), String>;

    /// The piece that another process has made with the same sizes.
    fn open(&mut self, number: u64, words: usize, bytes: usize) -> Result<Arc<dyn SharedMemory>, String>;

    /// So many of the bytes of a piece without words that another process has made, behind the first `skip` of them.
    fn open_part(&mut self, number: u64, skip: u64, bytes: usize) -> Result<Arc<dyn SharedMemory>, String>;

    /// Most bytes of a piece that could do without being shared: when every process of the machine makes such a one,
    /// half of the room that is not taken is left, and half of all room always.
    fn spare(&self) -> u64;

    /// Nobody can open the piece any more that this process has made.
    fn unname(&mut self, number: u64);

    /// The memory of a process. Fails where the system does not let this process reach it.
    fn reach(&mut self, peer: Peer) -> Result<Arc<dyn Reach>, Unreached>;
}
