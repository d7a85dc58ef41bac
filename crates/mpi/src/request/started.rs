// SPDX-License-Identifier: Apache-2.0
//! Requests in their short form.

use isthmus_engine::{Engine, Sent};

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
}

impl Quick {
    pub(super) fn is_complete(&self, engine: &Engine) -> bool {
        match self.what {
            Started::Sent(_) | Started::Over => true,
            Started::Receive(request) | Started::Other(request) => engine.test(request).is_some(),
        }
    }
}
