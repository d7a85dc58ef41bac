// SPDX-License-Identifier: Apache-2.0
//! What a process waits for between post, start, complete and wait.

use std::sync::Mutex;

use isthmus_datatype::raw::OwnMemory;
use isthmus_engine::Request;

/// A word of a process, with a number, that is waited for.
pub(crate) struct Word {
    pub(crate) rank: u32,
    pub(crate) request: Request,
    pub(crate) number: OwnMemory,
}

/// What is waited for.
#[derive(Default)]
pub(crate) struct Partners {
    /// Words that processes are exposed.
    pub(crate) posts: Mutex<Vec<Word>>,
    /// Words that processes have completed.
    pub(crate) completions: Mutex<Vec<Word>>,
}
