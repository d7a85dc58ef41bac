// SPDX-License-Identifier: Apache-2.0
//! The parts of one operation in cells and in messages, which are waited for together.

use isthmus_engine::{Activity, Completion, Engine, EngineError, Request, give_up_plan};

/// Over when both parts are; its error is that of the first that has one.
pub(super) struct Both {
    parts: [Option<Request>; 2],
    completion: Completion,
}

impl Both {
    /// Of what goes in cells, and of messages.
    pub(super) fn new(parts: [Request; 2]) -> Self {
        Self {
            parts: parts.map(Some),
            completion: Completion::default(),
        }
    }
}

impl Activity<Engine> for Both {
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion> {
        for at in 0..self.parts.len() {
            let Some(over) = self.parts[at].and_then(|request| engine.core.take(request)) else {
                continue;
            };
            self.parts[at] = None;
            if let (0, Some(messages), Some(error)) = (at, self.parts[1], &over.error) {
                end_beside(engine, messages, error);
            }
            if self.completion.error.is_none() {
                self.completion.error = over.error;
            }
        }
        self.parts
            .iter()
            .all(Option::is_none)
            .then(|| std::mem::take(&mut self.completion))
    }
}

/// Whether messages follow after cells: where there was no error but that of a block of another length.
pub(super) fn go_on_after(error: Option<&EngineError>) -> bool {
    error.is_none_or(|error| matches!(error, EngineError::Truncate { .. }))
}

/// Cells have failed: messages beside them, which others may not send or receive any more, end too.
pub(super) fn end_beside(engine: &mut Engine, messages: Request, error: &EngineError) {
    if !go_on_after(Some(error)) {
        give_up_plan(engine, messages, error.clone());
    }
}
