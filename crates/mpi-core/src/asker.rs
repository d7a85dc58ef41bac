// SPDX-License-Identifier: Apache-2.0
//! By whom members of communicators agree ([`crate::faults`]).

use isthmus_engine::Engine;
use isthmus_wire::agreeing::{Agree, Agreed};

/// Who is asked.
pub trait Asker: Send + Sync {
    /// Asks; the number of the question. `None`: too many are open, and it is to be tried again later.
    ///
    /// # Errors
    /// Why nobody can be asked any more.
    fn ask(&self, agree: Agree) -> Result<Option<u64>, String>;

    /// Hears what has come, and gives the answer to a question if that is among it.
    fn look(&self, engine: &mut Engine, question: u64) -> Option<Result<Agreed, String>>;

    /// Hears what has come.
    fn hear(&self, engine: &mut Engine);
}
