// SPDX-License-Identifier: Apache-2.0
//! Requests in their short form, and how those end about which nothing is unusual.

use std::ffi::c_int;

use isthmus_abi::Status;
use isthmus_engine::{Engine, Look, Sent};

use crate::comm::Held;

/// What was started once, where threads take turns, and ends without anything to be called or copied: what most
/// requests are. `find` makes an `Object` of it.
pub(super) struct Quick {
    pub(super) what: Started,
    pub(super) comm: Held,
}

/// The same as the variants of `Operation`.
#[derive(Clone, Copy)]
pub(crate) enum Started {
    Sent(Sent),
    Receive(isthmus_engine::Request),
    Other(isthmus_engine::Request),
    /// An operation that was over at once, whose status is empty.
    Over,
    /// A receive from MPI_PROC_NULL.
    FromNobody,
}

impl Quick {
    pub(super) fn is_complete(&self, engine: &Engine) -> bool {
        match self.what {
            Started::Sent(_) | Started::Over | Started::FromNobody => true,
            Started::Receive(request) | Started::Other(request) => engine.core.test(request).is_some(),
        }
    }
}

/// What becomes of a request about which nothing is unusual.
pub(super) enum Simply {
    Ended(Status),
    /// It is under way, in its short form.
    Waits,
    /// Something is: ask [`try_end`].
    Unusual,
}

/// The status of a receive that is complete and without an error; the engine forgets it.
#[inline]
pub(super) fn received(engine: &mut Engine, request: isthmus_engine::Request) -> Simply {
    match engine.core.take_success(request) {
        Look::Ended { source, tag, bytes } => Simply::Ended(Status::new(source as c_int, tag, bytes as i64)),
        Look::Waits => Simply::Waits,
        Look::Unusual => Simply::Unusual,
    }
}

/// The same for an operation whose status is empty.
#[inline]
pub(super) fn sent(engine: &mut Engine, request: isthmus_engine::Request) -> Simply {
    match engine.core.take_success(request) {
        Look::Ended { .. } => Simply::Ended(Status::empty()),
        Look::Waits => Simply::Waits,
        Look::Unusual => Simply::Unusual,
    }
}
