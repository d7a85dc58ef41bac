// SPDX-License-Identifier: Apache-2.0
//! Operations of the library that are more than a plan: they send, receive and do other things in an order that shows
//! itself only on the way. Progress drives them, on whatever thread it is made.

use crate::base::request::{Completion, Request};

/// A state machine that uses what drives it: an [`Engine`](crate::Engine).
pub trait Activity<With>: Send {
    /// Goes on as far as it can without waiting; gives its completion when it is over. Called in every round of
    /// progress.
    fn advance(&mut self, with: &mut With) -> Option<Completion>;

    /// Whether it calls functions of the program, which only threads of the program do.
    fn calls_user(&self) -> bool {
        false
    }
}

/// One that runs.
pub(crate) struct Running<With> {
    request: Request,
    activity: Box<dyn Activity<With>>,
}

impl<With> Running<With> {
    /// Its completion is that of the request.
    pub(crate) fn new(request: Request, activity: Box<dyn Activity<With>>) -> Self {
        Self { request, activity }
    }

    pub(crate) fn request(&self) -> Request {
        self.request
    }

    /// Goes on. `foreign`: on a thread that is not the program's.
    pub(crate) fn advance(&mut self, with: &mut With, foreign: bool) -> Option<Completion> {
        match foreign && self.activity.calls_user() {
            true => None,
            false => self.activity.advance(with),
        }
    }
}
