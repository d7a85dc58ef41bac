// SPDX-License-Identifier: Apache-2.0
//! What became of a call.

use super::ask::Asked;
use super::budget::Coarse;
use isthmus_job::grid::Grid;
use isthmus_schedule::Network;
use isthmus_simulate::Outcome;
use std::sync::Arc;

/// A simulated call.
pub(super) struct Simulated {
    pub(super) asked: Asked,
    pub(super) grid: Grid,
    pub(super) network: Arc<Network>,
    pub(super) coarse: Option<Coarse>,
    pub(super) outcome: Outcome,
}
