// SPDX-License-Identifier: Apache-2.0
//! What the coordinator and an agent say to each other, over the standard input and output of ssh.
//!
//! ```text
//!  coordinator                               agent
//!     |    <---  Hello (version, host, ...)     |      the agent runs
//!     | Offer (hash, size, name)       --->     |      one per file to stage
//!     |    <---  File (hash, wanted|path|why)   |
//!     | Chunk (bytes) ...              --->     |      until `size` bytes; then File (path) comes back
//!     | Start (programs, count, ...)   --->     |
//!     |    <---  Queued ...                      |      while a scheduler lets the subjob wait
//!     |    <---  Started | Refused              |      Refused also when the scheduler ends the subjob later
//!     |    <---  Arrived ([hello ...])          |      processes are inside MPI_Init
//!     | Commit (places, certificates)  --->     |      the barrier opens
//!     |    <---  Output, Exited, Finished       |
//!     | Gone (ranks, reason)           --->     |      processes have died: the others of their world hear who
//!     | Dismiss                        --->     |      every process of the job has said Finished
//!     | End                            --->     |      kill what is left, clean up
//!     |    <---  Gone                           |      nothing is left
//! ```
//!
//! On the stream each message is `length: u32`, `kind: u8`, fields, as in [`crate::codec`]. `text` and
//! `bytes` are `length: u32` and that many bytes; `[x]` is `count: u32` and items.
//!
//! | coordinator to agent | kind | fields |
//! |---|---|---|
//! | `Offer` | 1 | hash 32, size u64, name text |
//! | `Chunk` | 2 | bytes |
//! | `Start` | 3 | job text, subjob u32, first u32, count u32, of u32, programs \[section ([`Section`])\], environment \[text text\], directory text, fallback u8, below text, reach u8 (0 node, 1 site, 2 wide, 3 gateway), input u8 (0 none, 1 one, 2 all), index u32, stdin text, stdout text, stderr text, silence u32, allocated u8 and then an allocation ([`Allocation`]), vendor text, files text, shared \[text\] |
//! | `Commit` | 4 | name text, title text, subjob u32, secret 32, authority bytes, certificates \[bytes\], places, links, paths |
//! | `Input` | 5 | bytes (none: end of input) |
//! | `OutputCredit` | 6 | bytes u32 |
//! | `Dismiss` | 7 | |
//! | `Abort` | 8 | code u32, reason text |
//! | `Signal` | 9 | number u32 |
//! | `End` | 10 | |
//! | `Ping` | 11 | number u64 |
//! | `Gateway` | 12 | a message to the gateway ([`crate::gateway::ToGateway`]); the first one starts it |
//! | `Launch` | 13 | \[host text, processes u32\] |
//! | `LauncherEnded` | 14 | how u8, number u32, said text |
//! | `Gone` | 15 | number u32, goes on u8, world 16 bytes, first u32, count u32, reason text |
//! | `Hold` | 16 | secret 32, seconds u32 |
//! | `Resume` | 17 | secret 32, launcher u32, standings u64, outputs u64 |
//! | `Answer` | 18 | index u32, answer ([`crate::question`]) |
//! | `Neighbour` | 19 | number u32, bytes (none: end of its input) |
//!
//! | agent to coordinator | kind | fields |
//! |---|---|---|
//! | `Hello` | 65 | version u32, host text, architecture text, addresses \[text\], processors u32 |
//! | `File` | 66 | hash 32, state u8 (0 wanted, 1 here, 2 failed), path or reason text |
//! | `Started` | 67 | \[part ([`NodeProcesses`])\] |
//! | `Refused` | 68 | reason text, hint text |
//! | `Arrived` | 69 | \[index u32, pid u32, port u16, representation 8, vendor u32 (rank + 1, 0 none), signing request bytes\] |
//! | `Output` | 70 | index u32, stream u8 (1 output, 2 error, 3 trace: [`crate::trace`]), bytes |
//! | `InputCredit` | 71 | bytes u32 |
//! | `Exited` | 72 | \[index u32, how u8 (0 status, 1 signal), number u32\] |
//! | `Finished` | 73 | index u32, counters |
//! | `Aborted` | 74 | index u32, code u32, reason text |
//! | `Pong` | 75 | number u64, clock u64 (ns since 1970) |
//! | `Gone` | 76 | |
//! | `Queued` | 77 | scheduler u8, id text, why text, start u64 (seconds since 1970, 0: not known) |
//! | `Suspended` | 78 | u8 (1 stopped, 0 goes on) |
//! | `Beside` | 84 | scheduler u8 |
//! | `Gateway` | 79 | a message from the gateway ([`crate::gateway::FromGateway`]) |
//! | `Traffic` | 80 | first u32, \[traffic ([`crate::boot::LinkTraffic`])\] |
//! | `Time` | 85 | first u32, time ([`crate::time`]) |
//! | `Waiting` | 82 | index u32, what ([`crate::waiting`]) |
//! | `Conditions` | 83 | \[index u32, pid u32, stopped u8, swapped u64 (bytes)\] |
//! | `Made` | 86 | directory text, own u8, minutes u32, files u64, bytes u64, \[path text, size u64, number u64\] |
//! | `Asked` | 87 | index u32, question ([`crate::question`]) |
//! | `LauncherEnded` | 81 | how u8, number u32, said text |
//! | `Neighbour` | 88 | number u32, bytes (none: it has ended) |
//! | `NeighbourTook` | 89 | number u32, bytes u32 |
//!
//! `Launch` and `LauncherEnded` are between the agent that submitted a subjob to a scheduler and those on its nodes,
//! which it treats as a coordinator does.
//!
//! A *neighbour* is an agent that another one of the same machine has started beside itself, for a subjob that is
//! added to the job. `Neighbour` carries what it reads and writes, messages as they stand here, in pieces that need not
//! be whole messages. The first piece for a number starts it; no number is used twice on a connection. Of what a
//! neighbour is sent at most [`NEIGHBOUR_WINDOW`] bytes are not confirmed by `NeighbourTook`. It ends with the
//! connection that carries it.
//!
//! `Hold` lets the agent and its processes outlive the connection. `Resume` is the first message on the one that
//! follows it; the agent answers with `Hello`, all that tells how the subjob stands, and the
//! output whose receipt is not known.

mod allocation;
mod from_agent;
mod hold;
mod launcher;
mod made;
mod start;
mod to_agent;
pub use allocation::{Allocation, MAX_NODE_HELLO, NodeHello, NodeProcesses, Scheduler};
pub use from_agent::{AgentHello, Arrival, FileState, FromAgent, Stream};
pub use hold::{Hold, MAX_RESUME, Resume};
pub use launcher::LauncherEnd;
pub use made::{Made, MadeFile, Where};
pub use start::{Input, Reach, Section, Start};
pub use to_agent::{Commit, ToAgent};

use crate::codec::{DecodeError, Reader, Writer};

/// Version of this protocol. The coordinator stages its own `isthmus`, so both ends normally agree.
pub const VERSION: u32 = 23;

/// Bytes of output of processes that an agent may have sent and the coordinator not yet printed.
pub const OUTPUT_WINDOW: u32 = 1 << 20;

/// Bytes of standard input that the coordinator may have sent and those who read it not yet taken.
pub const INPUT_WINDOW: u32 = 256 << 10;

/// Bytes that a neighbour may have been sent and not yet taken.
pub const NEIGHBOUR_WINDOW: u32 = 1 << 20;

/// Most neighbours that an agent has at once.
pub const MAX_NEIGHBOURS: usize = 64;

/// Longest `Chunk`, `Output` and `Input`, bytes.
pub const MAX_CHUNK: usize = 128 << 10;

/// Content hash (SHA-256) of a staged file.
pub type Hash = [u8; 32];

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It exited with this status.
    Status(u32),
    /// A signal killed it.
    Signal(u32),
}

impl Exit {
    /// As a shell would tell it: the status, or 128 + the signal.
    pub fn shell_status(self) -> i32 {
        match self {
            Self::Status(status) => status as i32,
            Self::Signal(signal) => 128 + signal as i32,
        }
    }

    pub(crate) fn write(self, w: &mut Writer) {
        match self {
            Self::Status(n) => w.u8(0).u32(n),
            Self::Signal(n) => w.u8(1).u32(n),
        };
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let (how, number) = (r.u8("how")?, r.u32("number")?);
        match how {
            0 => Ok(Self::Status(number)),
            1 => Ok(Self::Signal(number)),
            other => Err(DecodeError::Invalid {
                field: "how",
                value: u64::from(other),
            }),
        }
    }
}

fn fixed<'a>(w: &'a mut Writer, bytes: &[u8]) -> &'a mut Writer {
    for b in bytes {
        w.u8(*b);
    }
    w
}

fn flag(r: &mut Reader<'_>, field: &'static str) -> Result<bool, DecodeError> {
    match r.u8(field)? {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(DecodeError::Invalid {
            field,
            value: u64::from(other),
        }),
    }
}

#[cfg(test)]
mod tests;
