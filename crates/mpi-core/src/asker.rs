// SPDX-License-Identifier: Apache-2.0
//! By whom members of communicators agree ([`crate::faults`]).

use isthmus_engine::Engine;
use isthmus_wire::question::{Ask, Said};

/// Who is asked.
pub trait Asker: Send + Sync {
    /// Asks; the number of the question. `None`: too many are open, and it is to be tried again later.
    ///
    /// # Errors
    /// Why nobody can be asked any more.
    fn ask(&self, ask: Ask) -> Result<Option<u64>, String>;

    /// Hears what has come, and gives the answer to a question if that is among it.
    fn look(&self, engine: &mut Engine, question: u64) -> Option<Result<Said, String>>;

    /// The answer to a question, if it has been heard.
    fn answered(&self, question: u64) -> Option<Result<Said, String>>;

    /// Nobody waits for the answer any more.
    fn forget(&self, question: u64);

    /// Hears what has come.
    fn hear(&self, engine: &mut Engine);
}
