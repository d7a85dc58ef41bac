// SPDX-License-Identifier: Apache-2.0
//! How far a simulation may go, and why it has no outcome.

/// How far a simulation may go, and where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Records that are kept (40 bytes each). If there are more, only those that a critical path may go through, and if
    /// even they are more, none.
    pub records: usize,
    /// Events after which the simulation gives up.
    pub events: u64,
    /// Bytes that a connection between two local areas carries before the first acknowledgement; twice as many before
    /// each further one. `None`: all connections have been used enough.
    pub window: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            records: 4 << 20,
            events: 1 << 30,
            window: None,
        }
    }
}

/// Why a simulation has no outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// More events than the limit.
    TooLong {
        /// The limit.
        events: u64,
    },
    /// A process waits for ever: its plan is wrong.
    Stuck {
        /// The first such process.
        rank: u32,
    },
}

impl std::fmt::Display for Stopped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooLong { events } => write!(f, "the simulation takes more than {events} events"),
            Self::Stuck { rank } => write!(f, "rank {rank} waits for ever in the simulation"),
        }
    }
}

impl std::error::Error for Stopped {}
