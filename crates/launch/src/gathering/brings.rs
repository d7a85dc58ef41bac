// SPDX-License-Identifier: Apache-2.0
//! What a part brings into its world.

use crate::Options;
use crate::console::Console;
use crate::trace::TraceFile;
use isthmus_job::Job;

/// All of it.
pub(super) struct Brings {
    pub(super) job: Job,
    pub(super) options: Options,
    pub(super) console: Box<dyn Console>,
    /// Begun before the part waits for others, so that its user hears at the terminal why there is none.
    pub(super) trace: Option<TraceFile>,
}
