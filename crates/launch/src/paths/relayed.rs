// SPDX-License-Identifier: Apache-2.0
//! What gateways send to each other through the launcher, and how much of it may be on its way.

use isthmus_wire::gateway::{MAX_RELAY, RELAY_WINDOW, Relay};
use std::collections::BTreeMap;

/// Most bytes that may be on their way from one gateway to another through the launcher: its window, and what it sends
/// at once when that is nearly full.
pub(crate) const MOST_RELAYED: usize = RELAY_WINDOW as usize + 4 * MAX_RELAY;

/// What is on its way through the launcher: from which area to which, in which of its lives, and how many bytes.
#[derive(Debug, Default)]
pub(super) struct Relayed(BTreeMap<(u32, u32), (u32, u64)>);

impl Relayed {
    /// Whether a gateway may send this piece: the other one has taken enough of what came before.
    pub(super) fn takes(&mut self, from: u32, relay: &Relay) -> bool {
        let (epoch, bytes) = self.0.entry((from, relay.area)).or_default();
        if *epoch != relay.epoch {
            // The other one has begun anew: what was on its way to it is gone.
            (*epoch, *bytes) = (relay.epoch, 0);
        }
        *bytes += relay.bytes.len() as u64;
        // A piece without bytes would never be too much.
        *bytes <= MOST_RELAYED as u64 && !relay.bytes.is_empty()
    }

    /// The other one has taken so many bytes.
    pub(super) fn taken(&mut self, from: u32, to: u32, epoch: u32, taken: u32) {
        if let Some((_, bytes)) = self.0.get_mut(&(from, to)).filter(|(now, _)| *now == epoch) {
            *bytes = bytes.saturating_sub(u64::from(taken));
        }
    }
}
