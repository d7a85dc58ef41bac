// SPDX-License-Identifier: Apache-2.0
//! The checker: runs all members' plans in memory and proves what a collective operation promises.
//!
//! - every unit of every result is what MPI says, and nothing is read before it is written;
//! - every contribution is combined exactly once, in the order of ranks where the operator is not commutative, and
//!   with equal rounding on all members of an allreduce;
//! - steps that nothing orders never touch the same data, and never use the same slot of the same peer;
//! - with synchronous sends, any order of ready steps and a bounded window, nobody waits for ever;
//! - messages and bytes that crossed each level are counted, and messages are as many as the algorithm states
//!   ([`messages`](isthmus_schedule::messages)).
//!
//! Data are symbols ([`Token`](token)): which unit of whose buffer, combined from whom.

mod case;
mod graph;
mod groups;
mod process;
mod token;
mod world;

pub use case::{Case, Counts};
pub use graph::Graph;
pub use groups::Groups;
use isthmus_topology::Level;

/// What crossed each level, index [`Level::index`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Crossings {
    /// Messages.
    pub messages: [u64; Level::COUNT],
    /// Bytes.
    pub bytes: [u64; Level::COUNT],
}

impl Crossings {
    pub(crate) fn count(&mut self, level: Level, bytes: u64) {
        self.messages[level.index()] += 1;
        self.bytes[level.index()] += bytes;
    }
}

/// What a run showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Report {
    /// By the data themselves.
    pub data: Crossings,
    /// By the counts phase of gatherv and scatterv.
    pub counts: Crossings,
    /// Trips over each level: most messages of the level in one chain of causes among the data's steps, if a send
    /// does not wait for its receiver. Latency is about the sum of trips times one-way latencies.
    pub trips: [u32; Level::COUNT],
}

/// What a plan did wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(String);

impl Fault {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
    pub(crate) fn at(self, rank: u32, step: u32) -> Self {
        Self(format!("rank {rank}, step {step}: {}", self.0))
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}
