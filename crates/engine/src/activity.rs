// SPDX-License-Identifier: Apache-2.0
//! Operations of the library that are more than a plan: they send, receive and do other things in an order that shows
//! itself only on the way. Progress drives them, on whatever thread it is made.

use crate::{Completion, Engine, Request};

/// A state machine that uses the engine.
pub trait Activity: Send {
    /// Goes on as far as it can without waiting; gives its completion when it is over. Called in every round of
    /// progress.
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion>;

    /// Whether it calls functions of the program, which only threads of the program do.
    fn calls_user(&self) -> bool {
        false
    }
}

/// One that runs.
pub(crate) struct Running {
    request: Request,
    activity: Box<dyn Activity>,
}

impl Engine {
    /// Starts an activity; its completion is that of the request.
    pub fn start_activity(&mut self, activity: Box<dyn Activity>) -> Request {
        let request = self.user_request();
        let mut running = Running { request, activity };
        if let Some(completion) = running.activity.advance(self) {
            self.complete_user(request, completion);
        } else {
            self.activities.push(running);
        }
        self.work();
        request
    }

    /// Lets all of them go on; true if anything happened.
    pub(crate) fn advance_activities(&mut self) -> bool {
        let before = self.core.state.events();
        // Those that are started meanwhile come behind the others.
        let all = std::mem::take(&mut self.activities);
        let mut left = Vec::with_capacity(all.len());
        for mut running in all {
            let waits = self.core.state.is_foreign() && running.activity.calls_user();
            match running.activity.advance_unless(waits, self) {
                Some(completion) => self.complete_user(running.request, completion),
                None => left.push(running),
            }
        }
        left.append(&mut self.activities);
        self.activities = left;
        before != self.core.state.events()
    }
}

impl dyn Activity {
    fn advance_unless(&mut self, waits: bool, engine: &mut Engine) -> Option<Completion> {
        if waits { None } else { self.advance(engine) }
    }
}
