// SPDX-License-Identifier: Apache-2.0
//! The last question about several requests of which none had ended: whoever asks the same again, before anything has
//! happened, gets the same answer without a look at each of them. So loops over MPI_Testsome and MPI_Testany cost
//! next to nothing for each request.

use isthmus_abi::handles as h;
use isthmus_engine::Engine;

use super::REQUESTS;
use crate::process;
use crate::turns::{Guard, Turns};

/// Most requests of a question that is kept.
const MOST: usize = 4096;

/// Requests that were all under way, or null, and in their short form: only an event of the engine ends them.
struct Question {
    requests: Vec<h::Request>,
    events: u64,
    /// As the table of requests was.
    changes: u64,
}

static LAST: Turns<Question> = Turns::new(Question {
    requests: Vec::new(),
    events: 0,
    changes: 0,
});

fn last() -> Guard<'static, Question> {
    // SAFETY: functions about requests need MPI to be initialized; those here take it once and call nothing else
    // meanwhile.
    unsafe { LAST.lock() }
}

/// None of these has ended, and at least one is under way.
pub(super) fn note(engine: &Engine, slots: &[h::Request]) {
    if slots.len() > MOST || process::of_turns().is_none() {
        return;
    }
    let changes = REQUESTS.changes();
    let mut last = last();
    last.requests.clear();
    last.requests.extend_from_slice(slots);
    (last.events, last.changes) = (engine.core.events(), changes);
}

/// Whether that is still so.
#[inline]
pub(super) fn is_known(engine: &Engine, slots: &[h::Request]) -> bool {
    let last = last();
    last.events == engine.core.events()
        && !slots.is_empty()
        && last.requests == slots
        && last.changes == REQUESTS.changes()
        && process::of_turns().is_some()
}
