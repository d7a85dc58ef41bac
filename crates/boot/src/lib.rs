// SPDX-License-Identifier: Apache-2.0
//! From environment to world: the only room that knows which transports exist.
//!
//! [`Running::start`] is MPI_Init below C: it greets the agent ([`rendezvous`]), waits for the world, chooses a
//! transport per peer (shared memory on the node, TCP inside the local area, TLS between sites) and makes the engine.
#![forbid(unsafe_code)]

pub mod abroad;
mod agreeing;
mod asking;
mod gates;
mod helper;
mod leader;
mod listening;
mod naming;
mod origin;
mod own_names;
mod questions;
mod reaching;
pub mod rendezvous;
mod routes;
mod running;
mod saying;
mod survey;
mod trace;
mod traffic;
mod vendor;

pub use asking::AskError;
pub use helper::Helper;
pub use leader::Leader;
pub use running::{Hearer, Running};

/// Why this process could not become, or remain, an MPI process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BootError {
    /// The environment contradicts itself: a mistake of whoever started the program.
    Environment(String),
    /// The agent of this machine misbehaves or is gone.
    Agent(String),
    /// The job was ended by somebody else.
    Aborted(String),
    /// This machine refused something: shared memory, a port, a thread.
    System(String),
}

impl BootError {
    pub(crate) fn agent(text: String) -> Self {
        Self::Agent(text)
    }
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Environment(text) | Self::System(text) => f.write_str(text),
            Self::Agent(text) => write!(f, "{text}; the launcher has ended or was killed"),
            Self::Aborted(text) => write!(f, "the job was ended: {text}"),
        }
    }
}

impl std::error::Error for BootError {}

/// Smallest stack with which a process can be one of MPI, bytes: starting needs more than 64 KiB of it, and then the
/// program wants some too.
const LEAST_STACK: u64 = 128 << 10;

/// Whether calls of the library have room on the stack: without it a process ends in a signal that says nothing.
pub(crate) fn check_stack() -> Result<(), BootError> {
    use rustix::process::{Resource, getrlimit};
    match getrlimit(Resource::Stack).current.filter(|limit| *limit < LEAST_STACK) {
        None => Ok(()),
        Some(limit) => Err(BootError::System(format!(
            "the stack of this process is limited to {limit} bytes, and MPI needs {LEAST_STACK} (ulimit -s 8192 raises \
             the limit)"
        ))),
    }
}
