// SPDX-License-Identifier: Apache-2.0
//! What gatherv, scatterv, alltoallv and alltoallw tell each other before their data move: sizes of blocks.

use std::sync::Arc;

use isthmus_datatype::raw::OwnMemory;
use isthmus_datatype::{Basic, Datatype};
use isthmus_engine::{Binding, Block, BoundBuffer};
use isthmus_schedule::{Call, CountsPhase};

use crate::error::Result;

/// Where a counts phase puts what it has received.
pub(super) struct CountsMemory {
    receive: OwnMemory,
    units: u64,
}

impl CountsMemory {
    /// Gives the call what has come.
    pub(super) fn give(&self, call: &mut Call) {
        if self.units > 0 {
            let sizes = self.receive.content();
            let sizes = sizes.chunks_exact(8).filter_map(<[u8]>::first_chunk);
            call.learn(sizes.map(|b| u64::from_ne_bytes(*b)).collect::<Vec<u64>>());
        }
    }
}

pub(super) fn bind_counts(known: &[u64], phase: &CountsPhase) -> Result<(Binding, CountsMemory)> {
    let given = if phase.send.is_empty() { known } else { &phase.send };
    let bytes: Vec<u8> = given.iter().flat_map(|c| c.to_ne_bytes()).collect();
    let send = OwnMemory::with(&bytes);
    let memory = CountsMemory {
        receive: OwnMemory::new(0, 8 * phase.receive as isize),
        units: phase.receive,
    };
    let count = Datatype::of(Basic::Uint64);
    let binding = Binding::elements(
        BoundBuffer::one(Block::own(&send, &count, given.len() as u64)?),
        BoundBuffer::one(Block::own(&memory.receive, &count, phase.receive)?),
        count,
        Arc::new(|operand: &[u8], sum: &mut [u8], _, _| add(operand, sum)),
    );
    Ok((binding.on_any_thread(), memory))
}

/// Adds counts.
fn add(operand: &[u8], sum: &mut [u8]) {
    for (sum, operand) in sum.chunks_exact_mut(8).zip(operand.chunks_exact(8)) {
        if let (Some(a), Some(b)) = (sum.first_chunk::<8>(), operand.first_chunk::<8>()) {
            let total = u64::from_ne_bytes(*a).wrapping_add(u64::from_ne_bytes(*b));
            sum.copy_from_slice(&total.to_ne_bytes());
        }
    }
}
