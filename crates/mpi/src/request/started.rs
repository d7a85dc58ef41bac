// SPDX-License-Identifier: Apache-2.0
//! Requests in their short form.

use isthmus_abi::Status;
use isthmus_engine::{Engine, Sent};

use super::Operation;
use crate::comm::Held;

/// What was started once, where threads take turns, and ends without anything to be called or copied: what most
/// requests are. [`find`](super::find) makes an [`Object`](super::Object) of it.
pub(super) struct Quick {
    pub(super) what: Started,
    pub(super) comm: Held,
}

/// The same as the variants of [`Operation`].
#[derive(Clone, Copy)]
pub(crate) enum Started {
    Sent(Sent),
    Receive(isthmus_engine::Request),
    Other(isthmus_engine::Request),
    /// An operation that was over at once, whose status is empty.
    Over,
}

impl Started {
    /// The short form of an operation of a group, or of one that is over. (A receive that comes this way may be one
    /// from anybody, which can be in doubt.)
    #[inline]
    pub(super) fn of(operation: &Operation) -> Option<Self> {
        match operation {
            Operation::Other(request) => Some(Self::Other(*request)),
            Operation::Done(status) if *status == Status::empty() => Some(Self::Over),
            _ => None,
        }
    }
}

impl From<Started> for Operation {
    fn from(started: Started) -> Self {
        match started {
            Started::Sent(sent) => Self::Sent(sent),
            Started::Receive(request) => Self::Receive(request),
            Started::Other(request) => Self::Other(request),
            Started::Over => Self::Done(Status::empty()),
        }
    }
}

impl Quick {
    pub(super) fn is_complete(&self, engine: &Engine) -> bool {
        match self.what {
            Started::Sent(_) | Started::Over => true,
            Started::Receive(request) | Started::Other(request) => engine.test(request).is_some(),
        }
    }
}
