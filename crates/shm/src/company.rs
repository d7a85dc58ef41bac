// SPDX-License-Identifier: Apache-2.0
//! Processes of one node that meet.

use std::sync::Arc;
use std::time::Duration;

use isthmus_transport::Processes;
use isthmus_wire::joining::Memory;

use crate::vigil::Vigil;

/// Those of a meeting that share the memory of one of them.
pub struct Company<'a> {
    /// Who they are, by rank in the meeting, in order: the first one's memory is used.
    pub members: Vec<(u32, &'a Memory)>,
    /// Which of these is this process.
    pub me: usize,
    /// Ranks of those that this process will talk to so.
    pub peers: Vec<u32>,
    /// How they are called.
    pub processes: Arc<Processes>,
    /// How long a launcher has time to tell of a death before this process tells it.
    pub grace: Duration,
}

/// What a transport of a meeting knows of it.
pub(crate) struct Met {
    /// By slot, the rank in the meeting.
    pub(crate) ranks: Vec<u32>,
    pub(crate) processes: Arc<Processes>,
    pub(crate) vigil: Vigil,
}

impl Met {
    /// The slot of the process with this rank; `None`: it is elsewhere.
    pub(crate) fn slot_of(&self, rank: u32) -> Option<usize> {
        self.ranks.binary_search(&rank).ok()
    }
}
