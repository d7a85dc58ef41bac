// SPDX-License-Identifier: Apache-2.0
//! What a simulation shows.

use crate::check::Crossings;
use isthmus_topology::Level;

/// No record.
pub(super) const NONE: u32 = u32::MAX;

/// What a [`Record`] is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `rank` is busy with sending to `peer`.
    Send,
    /// A message of `rank` to `peer` occupies its link.
    Link,
    /// `rank` is busy with receiving from `peer`.
    Receive,
    /// `rank` combines or copies.
    Compute,
}

impl Kind {
    /// Name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Link => "link",
            Self::Receive => "receive",
            Self::Compute => "compute",
        }
    }
}

/// Something that took time. Times are nanoseconds from the start of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// What it is about.
    pub kind: Kind,
    /// Level of the message; computing: node.
    pub level: Level,
    /// Whose.
    pub rank: u32,
    /// The other process; computing: `rank`.
    pub peer: u32,
    /// Index of the record whose end made this one begin when it did; `u32::MAX`: none.
    pub cause: u32,
    /// Bytes.
    pub bytes: u64,
    /// Begin.
    pub begin: u64,
    /// End.
    pub end: u64,
}

/// What went over one link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkUse {
    /// Level.
    pub level: Level,
    /// Where it begins: number of the local area (wide area), of the machine (local area), of the node (machine), rank
    /// (node).
    pub from: u32,
    /// Where it ends: as `from` for the wide and the local area, else `u32::MAX`.
    pub to: u32,
    /// Messages.
    pub messages: u64,
    /// Bytes.
    pub bytes: u64,
    /// Nanoseconds for which it was occupied.
    pub busy: u64,
}

/// The result of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// When each rank was done, nanoseconds from the start of the call.
    pub finished: Vec<u64>,
    /// Messages and bytes per level.
    pub crossings: Crossings,
    /// All links that were used, slow levels first.
    pub links: Vec<LinkUse>,
    /// Everything that took place, at each local area in the order in which it was decided; empty if that was more than
    /// the limit.
    pub records: Vec<Record>,
    /// Whether there were more records than the limit.
    pub records_dropped: bool,
    /// Whether even those that the critical path might go through were more than the limit.
    pub path_dropped: bool,
    /// Events that were handled.
    pub events: u64,
    pub(super) path: Vec<Record>,
}

impl Outcome {
    /// When the last process was done, nanoseconds.
    pub fn time(&self) -> u64 {
        self.finished.iter().copied().max().unwrap_or(0)
    }

    /// The chain of causes that ends with the last process's end (of several, that of the lowest rank), first cause
    /// first. Each record ends where the next one begins: that of a link also includes the latency where the next one
    /// needed the message to arrive. The numbers of their causes mean nothing.
    pub fn critical_path(&self) -> &[Record] {
        &self.path
    }
}
