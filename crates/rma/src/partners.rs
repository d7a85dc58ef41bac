// SPDX-License-Identifier: Apache-2.0
//! What a process waits for between post, start, complete and wait.

use std::sync::Mutex;

use isthmus_engine::Request;

/// What is waited for.
#[derive(Default)]
pub(crate) struct Partners {
    /// Words that processes are exposed, by rank.
    pub(crate) posts: Mutex<Vec<(u32, Request)>>,
    /// Words that processes have completed.
    pub(crate) completions: Mutex<Vec<Request>>,
}
