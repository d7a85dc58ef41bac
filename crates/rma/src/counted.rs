// SPDX-License-Identifier: Apache-2.0
//! Operations within a node, counted without the engine: its counters get them when the window is freed.

use std::sync::atomic::{AtomicU64, Ordering};

use isthmus_core::world::{WindowCount, window_operation};
use isthmus_engine::{Engine, with_port};
use isthmus_wire::frame::protocol;

/// Operations and their bytes: puts, gets, accumulates.
#[derive(Default)]
pub(crate) struct Counted([[AtomicU64; 2]; 3]);

impl Counted {
    /// One more. Counts that threads spoil for each other are as good.
    #[inline]
    pub(crate) fn add(&self, what: WindowCount, bytes: u64) {
        let Some([operations, all]) = self.0.get(what as usize) else {
            return;
        };
        operations.store(operations.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        all.store(all.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }
    /// Gives what was counted to the engine.
    pub(crate) fn report(&self, engine: &mut Engine) {
        let kinds = [WindowCount::Put, WindowCount::Get, WindowCount::Accumulate];
        for (kind, counts) in kinds.into_iter().zip(&self.0) {
            let [operations, bytes] = counts.each_ref().map(|count| count.swap(0, Ordering::Relaxed));
            let operation = window_operation(engine, kind);
            with_port(engine, protocol::RMA, |port| {
                port.count_in_memory(operation, operations, bytes);
            });
        }
    }
}
