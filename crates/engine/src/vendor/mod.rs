// SPDX-License-Identifier: Apache-2.0
//! The machine over a vendor MPI.

pub(crate) mod native;
pub(crate) mod native_collective;
pub(crate) mod native_step;

use std::sync::Arc;

use isthmus_datatype::raw::{OwnMemory, ReadMemory};
use isthmus_transport::native::{General, Native};

use crate::base::binding::{BoundBuffer, Side};
use crate::{Binding, EngineError, Operation, ReceiveBuffer, SendBuffer};

/// The machine over a vendor MPI: what an engine has of that.
#[derive(Default)]
pub(crate) struct Vendor {
    native: Option<Box<dyn Native>>,
    /// All processes of the job are that MPI's, and so are all communicators so far.
    alone: bool,
    /// Requests that are not complete.
    waiting: Vec<NativeTask>,
    /// Of these, sends.
    sends: usize,
    /// Messages that were taken out of the matching.
    taken: Vec<Option<u64>>,
    /// Communicators that are to be given back.
    freed: Arc<Freed>,
}

/// A request of the other MPI.
#[derive(Debug)]
pub(crate) struct NativeTask {
    /// Ours.
    index: u32,
    /// Its name there.
    request: u64,
    /// For the text of errors: bytes that fit.
    room: u64,
    held: Held,
}

/// What lives as long as the request.
#[derive(Debug)]
pub(crate) enum Held {
    #[expect(dead_code, reason = "held only, until the message has left")]
    Send(SendBuffer, ReadMemory),
    /// The message goes where it belongs.
    Placed,
    /// It goes to memory in between.
    Staged(ReceiveBuffer, OwnMemory),
    Collective(Running),
    Step(NativeStep),
}

/// A communicator of the other MPI; given back some time after it is dropped.
#[derive(Debug)]
pub struct NativeComm {
    name: u64,
    near: bool,
    freed: Arc<Freed>,
}

/// Communicators of the other MPI that nobody uses any more.
pub(crate) type Freed = std::sync::Mutex<Vec<u64>>;

/// An operation that was started.
#[derive(Debug)]
pub(crate) struct Running {
    /// The communicator there.
    comm: u64,
    context: u32,
    operation: Operation,
    sequence: u32,
    native: Box<NativeOperation>,
}

/// A collective operation as the other MPI is told it, and what it needs until it is over.
pub struct NativeOperation {
    general: General,
    binding: Binding,
    /// Memory that it writes, and how much of it belongs at the beginning of the program's.
    outcome: Option<(OwnMemory, u64)>,
}

/// What a step needs until it is over.
#[derive(Debug)]
pub(crate) struct NativeStep {
    /// The communicator there.
    comm: u64,
    /// The memory that is used, if the library owns it.
    _give: Option<BoundBuffer>,
    take: Option<Side>,
    /// What is read, where the data do not lie in one piece or overlap those that are written.
    _between: Option<OwnMemory>,
    /// What is written, where it does not belong into one piece of memory, and how much of it there is.
    outcome: Option<(OwnMemory, usize)>,
}

#[cold]
pub(crate) fn vendor_error(text: String) -> EngineError {
    EngineError::Vendor { text: text.into() }
}
