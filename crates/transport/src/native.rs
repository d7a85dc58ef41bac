// SPDX-License-Identifier: Apache-2.0
//! What a vendor MPI offers beyond frames: communicators of its own, with its own matching and its own
//! collective operations.
//!
//! A communicator of ours whose members all live in one job of such an MPI is one of that MPI's underneath. Names of
//! communicators and requests are numbers, never 0. Errors are texts for people: such an MPI does not recover.

use std::sync::Arc;

use isthmus_datatype::raw::{ReadMemory, WriteMemory};

use crate::Peer;

/// What has arrived, or has been found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Rank of the sender in the communicator.
    pub source: u32,
    /// Tag.
    pub tag: i32,
    /// Bytes; `None`: more than there was room for, and what fits has been delivered.
    pub bytes: Option<u64>,
    /// A receive that was cancelled.
    pub cancelled: bool,
    /// Name of a message that was taken out of the matching.
    pub message: u64,
}

/// Whose messages, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The communicator.
    pub comm: u64,
    /// Rank of the sender; `None`: any.
    pub source: Option<u32>,
    /// Tag; `None`: any.
    pub tag: Option<i32>,
}

/// Elements that the MPI can combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Element {
    Int8,
    Int16,
    Int32,
    Int64,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Float,
    Double,
}

impl Element {
    /// Bytes of one.
    pub fn width(self) -> u64 {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float => 4,
            Self::Int64 | Self::Uint64 | Self::Double => 8,
        }
    }
}

/// Operators that the MPI has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Sum,
    Product,
    Minimum,
    Maximum,
    BitAnd,
    BitOr,
    BitXor,
}

/// Collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as in MPI")]
pub enum Kind {
    Barrier,
    Bcast,
    Gather,
    Scatter,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    Scan,
    Exscan,
    ReduceScatterBlock,
    ReduceScatter,
    Gatherv,
    Scatterv,
    Allgatherv,
    Alltoallv,
}

/// Unequal blocks by rank: bytes (elements, for reduce_scatter), and bytes from the start of the buffer to where they
/// lie. Such an MPI reads them until the operation is over, so who starts it shares them.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "said above")]
pub struct UnequalBlocks {
    pub sizes: Arc<[i64]>,
    pub places: Arc<[i64]>,
}

/// A collective operation with everything that one can have. Its memory is used until it is over.
#[derive(Clone, Debug)]
pub struct General {
    /// Which.
    pub kind: Kind,
    /// The root, or 0.
    pub root: u32,
    /// Own rank in the communicator.
    pub rank: u32,
    /// Members of the communicator.
    pub members: u32,
    /// This process has given its data where the result comes, or the other way round at the root of a scatter.
    pub in_place: bool,
    /// Where data are read; bcast has them in `into`.
    pub from: Option<ReadMemory>,
    /// Where data are written.
    pub into: Option<WriteMemory>,
    /// Bytes of a block; of gatherv, scatterv and allgatherv of the own one. Reductions: elements, at most `i32::MAX`.
    pub count: u64,
    /// Reductions: of what, and how.
    pub reduction: Option<(Element, Operator)>,
    /// What is sent to each: scatterv at the root, alltoallv.
    pub given: UnequalBlocks,
    /// What is received from each: gatherv at the root, allgatherv (sum and places fit an `i32`), alltoallv.
    /// Reduce_scatter: elements for each, whose sum fits an `i32`.
    pub taken: UnequalBlocks,
}

/// A blocking collective operation. Its memory is used during the call only. Without data it is in place.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "as in MPI")]
pub enum Collective<'a> {
    /// One of those that are not called often with short data.
    General(&'a General),
    Barrier,
    Bcast {
        memory: WriteMemory,
        bytes: u64,
        root: u32,
    },
    Reduce {
        from: Option<ReadMemory>,
        /// At the root.
        into: Option<WriteMemory>,
        count: u64,
        element: Element,
        operator: Operator,
        root: u32,
    },
    Allreduce {
        from: Option<ReadMemory>,
        into: WriteMemory,
        count: u64,
        element: Element,
        operator: Operator,
    },
    /// `bytes` from each.
    Allgather {
        from: Option<ReadMemory>,
        into: WriteMemory,
        bytes: u64,
    },
    /// `bytes` from each to each.
    Alltoall {
        from: Option<ReadMemory>,
        into: WriteMemory,
        bytes: u64,
    },
}

/// A communicator that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Created {
    /// Its name.
    pub comm: u64,
    /// All members are on one node, so that [`Native::have_all_come`] knows.
    pub near: bool,
}

/// The functions. Nothing blocks but those that say so.
pub trait Native: Send {
    /// A communicator of these peers, in this order; collective over them, and blocks. `None`: they cannot have one,
    /// which all learn.
    fn create(&mut self, peers: &[Peer], tag: i32) -> Result<Option<Created>, String>;

    /// Gives a communicator back.
    fn release(&mut self, comm: u64);

    /// Starts to send; `None`: the memory is free again already.
    fn send(
        &mut self,
        comm: u64,
        memory: &ReadMemory,
        length: u64,
        to: u32,
        tag: i32,
        synchronous: bool,
    ) -> Result<Option<u64>, String>;

    /// Sends; blocks until the memory is free again, and nothing else of this process moves meanwhile.
    fn send_now(&mut self, comm: u64, memory: &ReadMemory, length: u64, to: u32, tag: i32) -> Result<(), String>;

    /// Receives; blocks in the same way.
    fn receive_now(&mut self, pattern: &Pattern, memory: &WriteMemory, length: u64) -> Result<Arrival, String>;

    /// Starts to receive and looks `rounds` times whether the message is there.
    fn receive(
        &mut self,
        pattern: &Pattern,
        memory: &WriteMemory,
        length: u64,
        rounds: u32,
    ) -> Result<Result<Arrival, u64>, String>;

    /// Whether a request is complete; then it is gone.
    fn test(&mut self, request: u64) -> Result<Option<Arrival>, String>;

    /// Asks to cancel a receive; [`Native::test`] says what has become of it.
    fn cancel(&mut self, request: u64);

    /// Looks for a message; `take`: and takes it out of the matching.
    fn probe(&mut self, pattern: &Pattern, take: bool) -> Result<Option<Arrival>, String>;

    /// Starts to receive a message that was taken out of the matching.
    fn receive_taken(&mut self, message: u64, memory: &WriteMemory, length: u64) -> Result<u64, String>;

    /// Notes that this process has come to the next collective operation of a communicator, whose members are on one
    /// node.
    fn come(&mut self, comm: u64);

    /// Whether all members have come as far, so that the operation will end. Of members on several nodes that is not
    /// known, so these only [start](Native::start) operations.
    fn have_all_come(&self, comm: u64) -> bool;

    /// The operation; blocks.
    fn collective(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String>;

    /// Starts an operation; [`Native::test`] tells its end. All members start those of a communicator, these and the
    /// blocking ones, in the same order.
    fn start(&mut self, comm: u64, operation: &General) -> Result<u64, String>;

    /// Comes and does it: for a process that nobody waits for.
    fn come_and_do(&mut self, comm: u64, operation: &Collective<'_>) -> Result<(), String> {
        self.come(comm);
        self.collective(comm, operation)
    }
}
