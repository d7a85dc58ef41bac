// SPDX-License-Identifier: Apache-2.0
//! What was chosen for collective operations between sites, for people who ask why. Rank 0 of a communicator notes it:
//! the others choose alike.

use std::sync::{Arc, Mutex, PoisonError};

use isthmus_schedule::{Blocks, Call, Network, explain};
use isthmus_topology::Level;
use isthmus_wire::chosen::{Candidate, Chosen, MOST_CHOICES, MOST_WAYS};

/// Calls of which so much is alike count as one choice.
type Key = (isthmus_schedule::Operation, u32, u32);

/// The choices so far.
#[derive(Debug, Default)]
pub(crate) struct Choices(Mutex<Vec<(Key, Chosen)>>);

impl Choices {
    /// A call that rank 0 of its communicator starts. Only the first one of its kind is looked at.
    pub(crate) fn note(&self, call: &Call, network: &Arc<Network>) {
        let between_sites = network.tiers() > 0 && network.level(0) == Level::WideArea;
        let Blocks::Equal(units) = call.blocks else { return };
        if !between_sites {
            return;
        }
        let bytes = units.saturating_mul(call.unit_bytes);
        let key = (
            call.operation,
            bytes.checked_ilog2().map_or(0, |log| log + 1),
            network.size(),
        );
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, chosen)) = all.iter_mut().find(|(known, _)| *known == key) {
            chosen.calls += 1;
            return;
        }
        if all.len() < MOST_CHOICES {
            let ways = explain(call, network)
                .into_iter()
                .take(MOST_WAYS)
                .map(|candidate| Candidate {
                    name: candidate.algorithm.to_owned(),
                    cost: candidate.total,
                    opening: candidate.opening,
                    chosen: candidate.chosen,
                });
            let chosen = Chosen {
                operation: call.operation.name().to_owned(),
                bytes,
                members: network.size(),
                calls: 1,
                ways: ways.collect(),
            };
            all.push((key, chosen));
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> Vec<Chosen> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().map(|(_, chosen)| chosen.clone()).collect()
    }
}
