// SPDX-License-Identifier: Apache-2.0
//! What sites have told before others have told of the beginning.

use isthmus_wire::grid::FromAgent;
use isthmus_wire::question::MAX_OPEN;

/// What sites have told before others have told of the beginning.
#[derive(Debug, Default)]
pub(super) struct Early(pub(super) Vec<EarlyMessage>);

/// A message that waits for those of other sites.
#[derive(Debug)]
pub(super) struct EarlyMessage {
    pub(super) connection: usize,
    pub(super) site: usize,
    pub(super) message: FromAgent,
}

impl Early {
    /// Keeps what a site with so many processes tells.
    ///
    /// # Errors
    /// A process ends once, finishes once and aborts once; ends come in lists of some. It has so many questions at a
    /// time. It has told more.
    pub(super) fn keep(&mut self, told: EarlyMessage, processes: u32) -> Result<(), &'static str> {
        let asks = |message: &FromAgent| matches!(message, FromAgent::Asked { .. });
        let is_alike =
            |kept: &&EarlyMessage| kept.connection == told.connection && asks(&kept.message) == asks(&told.message);
        let kept = self.0.iter().filter(is_alike).count();
        let each = if asks(&told.message) { MAX_OPEN as u64 } else { 3 };
        if kept as u64 >= each * u64::from(processes) {
            return Err("it told more of its processes than there is");
        }
        self.0.push(told);
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
