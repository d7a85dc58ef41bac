// SPDX-License-Identifier: Apache-2.0
//! Operations in messages of groups that share memory: each takes a turn there.

use isthmus_transport::meeting::Place;

use crate::{EngineError, Request};

/// Whose operation in messages takes a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Taker {
    /// The program's, if it is waited for as this request.
    Program(Option<Request>),
    /// The library's own, by which it makes a communicator or opens a file.
    Library(Request),
}

/// An operation in messages that is waited for, and its turn.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(super) request: Request,
    pub(super) place: Place,
    pub(super) step: u64,
    /// It was found to wait in vain.
    pub(super) ends: bool,
}

/// An operation in messages whose members do not all take part, and what to say of it.
pub(crate) struct InVain {
    pub(crate) request: Request,
    pub(super) place: Place,
    pub(crate) error: EngineError,
}
