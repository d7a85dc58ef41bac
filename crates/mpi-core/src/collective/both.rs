// SPDX-License-Identifier: Apache-2.0
//! Two parts of one operation, which are waited for together.

use isthmus_engine::{Activity, Completion, Engine, Request};

/// Over when both parts are; its error is that of the first that has one.
pub(super) struct Both {
    parts: [Option<Request>; 2],
    completion: Completion,
}

impl Both {
    pub(super) fn new(parts: [Request; 2]) -> Self {
        Self {
            parts: parts.map(Some),
            completion: Completion::default(),
        }
    }
}

impl Activity<Engine> for Both {
    fn advance(&mut self, engine: &mut Engine) -> Option<Completion> {
        for part in &mut self.parts {
            let Some(over) = part.and_then(|request| engine.core.take(request)) else {
                continue;
            };
            *part = None;
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
