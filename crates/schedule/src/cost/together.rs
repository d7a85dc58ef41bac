// SPDX-License-Identifier: Apache-2.0
//! What the members of a node do together in its memory ([`node`](crate::node)).

use super::{Council, Phase, Way};
use crate::together::{ALONE, combining};

impl Council<'_> {
    /// One step of all members for so many bytes. Everybody copies what he gives into cells, and what he takes out of them. Who gives
    /// only waits for nobody; for the parts of a long result everybody waits for all, twice.
    pub(super) fn together(&self, way: Way, bytes: u64) -> Phase {
        let (links, all) = (self.network.links(), u64::from(self.members));
        let copy = links.copy.at(bytes);
        let combined = copy.saturating_mul(2).saturating_add(combining(links, bytes, all));
        let (process, work, rounds, waits) = match way {
            Way::Down => (copy, copy.saturating_mul(all), 1, all - 1),
            Way::Up => (copy, copy.saturating_mul(all), 1, 1),
            Way::Combine if bytes <= ALONE => (combined, copy.saturating_mul(all - 1).saturating_add(combined), 1, 1),
            Way::Combine => (combined, combined.saturating_mul(all), 2, 2 * all),
        };
        // What is given is taken after it was given; long blocks pass in pieces.
        let given = if bytes <= ALONE { copy } else { copy / 2 };
        let latency = self.network.link(self.tier).latency.saturating_add(self.waking());
        let mut phase = Phase {
            name: format!("{}: together {} among {all}", self.level().name(), way.name()),
            depth: latency
                .saturating_mul(rounds)
                .saturating_add(given)
                .saturating_add(process),
            process,
            tier: self.tier,
            steps: 1,
            ..Phase::default()
        };
        phase.share(self, work.saturating_add(self.waking().saturating_mul(waits)));
        phase
    }
}
