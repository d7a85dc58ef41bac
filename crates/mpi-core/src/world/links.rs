// SPDX-License-Identifier: Apache-2.0
//! What a world keeps of its links.

use std::sync::{Arc, OnceLock};

use isthmus_topology::{LinkEstimates, Measured};
use isthmus_wire::place::PlaceTable;

/// What this process has measured so far, as one entry per pair of local areas; if asked so, only what is settled.
pub type Measuring = Box<dyn Fn(bool) -> Vec<Measured> + Send + Sync>;

/// What a process knows of the links of the job.
pub(crate) struct WorldLinks {
    /// What the launcher said.
    pub(crate) initial: Arc<LinkEstimates>,
    pub(crate) agreed: OnceLock<Arc<LinkEstimates>>,
    pub(crate) measuring: Option<Measuring>,
}

impl WorldLinks {
    pub(crate) fn new(places: &PlaceTable, initial: LinkEstimates, measuring: Option<Measuring>) -> Self {
        let processors = places.nodes.iter().map(|node| node.processors);
        let fewest = processors.filter(|&n| n > 0).min().unwrap_or(u32::MAX);
        Self {
            initial: Arc::new(initial.with_processors(fewest)),
            agreed: OnceLock::new(),
            measuring,
        }
    }
}
