// SPDX-License-Identifier: Apache-2.0
//! What is asked for, and what has become of it.

use isthmus_engine::{Binding, Request};
use isthmus_schedule::{Call, Operation};

use crate::comm::Comm;
use crate::planned::{Planned, Role};

/// When an operation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Before its function returns.
    Blocking,
    /// It has begun when its function returns.
    Nonblocking,
    /// It is started later, and again and again.
    Persistent,
}

/// What has become of an operation.
#[derive(Debug)]
pub enum Performed {
    /// It is over.
    Done,
    /// It has begun.
    Started(Request),
    /// It is to be started ([`Persistent`]).
    Prepared(Prepared),
}

impl Performed {
    /// One that has begun, if it is not over.
    pub(super) fn of(request: Option<Request>) -> Self {
        request.map_or(Self::Done, Self::Started)
    }
}

/// A collective operation with its buffers.
// In a box: it is too large to be handed through calls for nothing.
#[derive(Clone, Debug)]
pub struct Prepared(pub(super) Box<Planned>);

impl Prepared {
    /// An operation without a counts phase.
    pub fn new(call: Call, binding: Binding) -> Self {
        Self(Box::new(Planned::new(call, binding, Role::Member)))
    }

    /// An operation in which processes may act for others, to whom the sizes of the others' blocks travel first.
    pub fn with_counts(call: Call, binding: Binding, counts: Vec<u64>) -> Self {
        Self(Box::new(Planned::new(call, binding, Role::Counted(counts))))
    }

    /// An operation of others: this process gave MPI_PROC_NULL as root.
    pub fn bystander(operation: Operation) -> Self {
        Self(Box::new(Planned::new(
            Call::new(operation, 0),
            Binding::nothing(),
            Role::Bystander,
        )))
    }

    /// With what the program has said about the communicator.
    pub(super) fn on(self, comm: &Comm) -> Planned {
        if self.0.call.operation.reduces() && comm.hints().is_fixed() {
            return self.0.in_fixed_order();
        }
        *self.0
    }
}
