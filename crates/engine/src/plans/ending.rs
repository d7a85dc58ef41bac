// SPDX-License-Identifier: Apache-2.0
//! Plans that end before their time.

use isthmus_protocol::matching::Context;
use isthmus_transport::Peer;

use crate::base::requests::Owner;
use crate::mismatch::asking::cannot_go_on;
use crate::mismatch::{Found, Host, Which};
use crate::p2p::State;
use crate::p2p::cancel::is_asked_back;
use crate::p2p::send::{abandon, forget};
use crate::p2p::state::withdraw;
use crate::plans::execution::Execution;
use crate::plans::execution::absent::{expect_nothing_of, has_answered, waits_for};
use crate::plans::{Hands, Plans};
use crate::{EngineError, Request};

/// Whether all members give up with it, each when it hears of it.
pub(super) fn ends_all(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Revoked | EngineError::PeerLost { goes_on: true, .. }
    )
}

impl Plans {
    /// Nothing more of the plan is possible.
    #[cold]
    pub(crate) fn fail(&mut self, with: &mut Hands<'_>, request: Request, error: EngineError) {
        let Some((Owner::Plans, index)) = with.core.owner(request) else {
            return;
        };
        if let Some(execution) = self.take(index) {
            let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
            completion.goes_wrong(error);
            self.run(with, index, execution);
        }
    }

    /// A member has said that it sends nothing in an operation: nobody waits for its message any longer. (What has
    /// come matches: such a message is not withdrawn.)
    #[cold]
    pub(crate) fn does_not_come(&mut self, with: &mut Hands<'_>, which: Which, member: u32) {
        let is_it = |e: &Option<Box<Execution>>| e.as_deref().is_some_and(|e| e.which() == which && !e.aborted());
        let Some(index) = self.running.iter().position(is_it) else {
            return;
        };
        let index = index as u32;
        let Some(mut execution) = self.take(index) else { return };
        for (step, request) in expect_nothing_of(&mut execution, member) {
            Self::note_short(with, index, &execution, step, 0);
            if abandon(with.core, request) {
                execution.stopped(step);
            }
        }
        self.run(with, index, execution);
    }

    /// Whether one of that operation runs.
    #[cold]
    pub(crate) fn runs(&self, which: Which) -> bool {
        self.running.iter().flatten().any(|e| e.which() == which)
    }

    /// A member for which this process waits has ended the operation: it sends nothing more than has come, and has
    /// `dropped` a message of this process that it did not expect. What is on its way comes.
    #[cold]
    pub(crate) fn is_over_at(&mut self, with: &mut Hands<'_>, found: &Found, dropped: bool) {
        let is_it =
            |e: &Option<Box<Execution>>| e.as_deref().is_some_and(|e| e.which() == found.which() && !e.aborted());
        let Some(index) = self.running.iter().position(is_it) else {
            return;
        };
        let index = index as u32;
        let Some(mut execution) = self.take(index) else { return };
        if let Some(member) = has_answered(&mut execution, found.peer()) {
            if dropped {
                let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
                completion.goes_wrong(EngineError::Untaken { member });
            }
            for (step, request) in waits_for(&execution, member) {
                if !withdraw(&mut with.core.state, request) {
                    continue;
                }
                forget(with.core, request);
                match execution.lacks(step, 0) {
                    Some(error) => {
                        let completion = with.core.state.requests_mut().slot_mut(index).completion_mut();
                        completion.goes_wrong(error);
                        execution.stopped(step);
                    }
                    // What is handed on has no length that this process knows.
                    None => {
                        execution.stopped(step);
                        let what = format!("rank {member} has given less than this process waits for");
                        let error = EngineError::Disagreement {
                            what: what.into(),
                            lengths: true,
                        };
                        Self::note_end(with, index, &execution, error);
                    }
                }
            }
        }
        self.run(with, index, execution);
    }

    /// Those in which this peer takes part. Not all of their members notice its loss by themselves, and those that do
    /// may have left others waiting.
    #[cold]
    pub(crate) fn with(&self, state: &State, peer: Peer) -> Vec<Request> {
        let running = (0..)
            .zip(&self.running)
            .filter_map(|(index, e)| Some((index, e.as_deref()?)));
        let with_it = running.filter(|(_, e)| !e.aborted() && e.channel().members.contains(peer));
        with_it.map(|(index, _)| state.requests().name(index)).collect()
    }

    /// Those of a communicator that is revoked.
    #[cold]
    pub(crate) fn of(&self, state: &State, context: Context) -> Vec<Request> {
        let running = (0..)
            .zip(&self.running)
            .filter_map(|(index, e)| Some((index, e.as_deref()?)));
        let of_it = running.filter(|(_, execution)| execution.channel().context == context);
        of_it.map(|(index, _)| state.requests().name(index)).collect()
    }

    /// A plan that follows from what members say fits their buffers, and memory, if that is true: those who wait for it
    /// are told.
    #[cold]
    pub(super) fn note_end(with: &mut Hands<'_>, index: u32, execution: &Execution, error: EngineError) {
        if execution.follows_exchange() && matches!(error, EngineError::Plan { .. } | EngineError::Memory { .. }) {
            cannot_go_on(&mut with.core.state, execution.which());
        }
        let error = match error {
            EngineError::Plan { .. } if execution.follows_exchange() => EngineError::Disagreement {
                what: "members have given different lengths for the same blocks".into(),
                lengths: true,
            },
            error => error,
        };
        with.core
            .state
            .requests_mut()
            .slot_mut(index)
            .completion_mut()
            .goes_wrong(error);
    }

    /// Ends what can be ended of a plan that has failed; the rest completes by itself.
    pub(super) fn abort(&self, with: &mut Hands<'_>, index: u32, execution: &mut Execution) {
        let error = with.core.state.requests().slot(index).completion().error.clone();
        let revoked = error == Some(EngineError::Revoked);
        let together = error.as_ref().is_some_and(ends_all);
        if together {
            with.core.state.agreement_mut().cut(execution.which());
        }
        if execution.channel().node.is_some() {
            // Who is told that the communicator is revoked needs no word in the memory.
            if let Some(error) = error.filter(|_| !revoked) {
                with.groups.leave_node(with.core, execution.channel(), &error);
            }
        }
        for (step, request) in execution.abort() {
            // All members give up at once. A message that a receiver has begun to take arrives: it waits for that.
            if together && is_asked_back(with.core, request) {
                continue;
            }
            if abandon(with.core, request) {
                execution.stopped(step);
            }
        }
    }
}
