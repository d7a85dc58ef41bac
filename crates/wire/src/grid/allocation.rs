// SPDX-License-Identifier: Apache-2.0
//! What is asked of a machine's scheduler, and which nodes a subjob got.
//!
//! ```text
//!  Allocation   scheduler u8 (1 Slurm, 2 Grid Engine, 3 PBS, 4 LSF), queue text, account text,
//!               limit u32 (seconds, 0 none), nodes u32 (0: the scheduler decides), exclusive u8, directives [text]
//!  Part         host text, addresses [text], processors u32, processes u32
//! ```
//! The node agent's first message to the agent that submitted it, after TLS has proven that agent's identity:
//! ```text
//!  NodeHello    kind u8 = 97, secret 32, node u32, nodes u32, slots u32, name text
//! ```

use super::{fixed, flag};
use crate::codec::{DecodeError, Reader, Writer};

/// Longest encoded [`NodeHello`], bytes; whoever sends more is no node of ours.
pub const MAX_NODE_HELLO: usize = 512;

const NODE_HELLO: u8 = 97;

/// A scheduler that Isthmus can submit to. Without one, processes are children of the agent ("fork").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheduler {
    /// Slurm.
    Slurm = 1,
    /// Grid Engine (Sun, Son of, Univa, Altair).
    GridEngine = 2,
    /// OpenPBS and PBS Professional.
    Pbs = 3,
    /// IBM Spectrum LSF.
    Lsf = 4,
}

impl Scheduler {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Slurm, Self::GridEngine, Self::Pbs, Self::Lsf];

    /// As it is written in a job description.
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Slurm => "slurm",
            Self::GridEngine => "grid-engine",
            Self::Pbs => "pbs",
            Self::Lsf => "lsf",
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let number = r.u8("scheduler")?;
        let found = Self::ALL.into_iter().find(|s| *s as u8 == number);
        found.ok_or_else(|| DecodeError::Invalid {
            field: "scheduler",
            value: u64::from(number),
        })
    }
}

/// For people.
impl std::fmt::Display for Scheduler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Slurm => "Slurm",
            Self::GridEngine => "Grid Engine",
            Self::Pbs => "PBS",
            Self::Lsf => "LSF",
        })
    }
}

/// What a subjob asks of the scheduler of its machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Which scheduler.
    pub scheduler: Scheduler,
    /// Queue or partition; empty for the default.
    pub queue: String,
    /// Account or project; empty for the default.
    pub account: String,
    /// Wall-clock limit in seconds; 0 for the queue's own.
    pub limit: u32,
    /// Number of nodes; 0: as many as the scheduler takes for the processes.
    pub nodes: u32,
    /// Whether nobody else may use the nodes.
    pub exclusive: bool,
    /// Further options of the scheduler's submit command, one word each.
    pub directives: Vec<String>,
}

impl Allocation {
    /// Nothing but the scheduler's defaults.
    pub fn new(scheduler: Scheduler) -> Self {
        Self {
            scheduler,
            queue: String::new(),
            account: String::new(),
            limit: 0,
            nodes: 0,
            exclusive: false,
            directives: Vec::new(),
        }
    }

    pub(super) fn write(&self, w: &mut Writer) {
        w.u8(self.scheduler as u8).text(&self.queue).text(&self.account);
        w.u32(self.limit).u32(self.nodes).u8(self.exclusive.into());
        w.list(&self.directives, |w, d| {
            w.text(d);
        });
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            scheduler: Scheduler::read(r)?,
            queue: r.text("queue")?,
            account: r.text("account")?,
            limit: r.u32("limit")?,
            nodes: r.u32("nodes")?,
            exclusive: flag(r, "exclusive")?,
            directives: r.list("directives", |r| r.text("directive"))?,
        })
    }
}

/// The part of a started subjob on one node; parts follow each other in the order of process indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeProcesses {
    /// Host name.
    pub host: String,
    /// Addresses of the node's interfaces, most promising first.
    pub addresses: Vec<String>,
    /// Processors that the node's agent may use; 0: not known.
    pub processors: u32,
    /// Number of processes of the subjob there.
    pub processes: u32,
}

impl NodeProcesses {
    pub(super) fn write(&self, w: &mut Writer) {
        w.text(&self.host).list(&self.addresses, |w, a| {
            w.text(a);
        });
        w.u32(self.processors).u32(self.processes);
    }

    pub(super) fn read(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            host: r.text("host")?,
            addresses: r.list("addresses", |r| r.text("address"))?,
            processors: r.u32("processors")?,
            processes: r.u32("processes")?,
        })
    }
}

/// What an agent on an allocated node says first to the agent that submitted it.
#[derive(Clone, PartialEq, Eq)]
pub struct NodeHello {
    /// Proves that the scheduler started it for this submission.
    pub secret: [u8; 32],
    /// Index of the node within the allocation.
    pub node: u32,
    /// Number of nodes of the allocation.
    pub nodes: u32,
    /// Processes that the scheduler has room for on this node; 0: not known.
    pub slots: u32,
    /// What the scheduler calls the node, or its host name.
    pub name: String,
}

impl std::fmt::Debug for NodeHello {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeHello")
            .field("node", &self.node)
            .field("nodes", &self.nodes)
            .field("slots", &self.slots)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl NodeHello {
    /// As it goes on the stream, with length prefix.
    pub fn encode(&self) -> Vec<u8> {
        let mut w = Writer::new(NODE_HELLO);
        fixed(&mut w, &self.secret)
            .u32(self.node)
            .u32(self.nodes)
            .u32(self.slots)
            .text(&self.name);
        w.into_framed()
    }

    /// Reads a body (without length prefix).
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let kind = r.u8("kind")?;
        if kind != NODE_HELLO {
            return Err(DecodeError::Invalid {
                field: "kind",
                value: u64::from(kind),
            });
        }
        let hello = Self {
            secret: r.fixed("secret")?,
            node: r.u32("node")?,
            nodes: r.u32("nodes")?,
            slots: r.u32("slots")?,
            name: r.text("name")?,
        };
        r.end()?;
        Ok(hello)
    }
}
