// SPDX-License-Identifier: Apache-2.0
//! Numbers that may be changed while the engine runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// How a process waits and which messages it sends unasked. Every process may have its own.
#[derive(Debug)]
pub struct Tuning {
    eager: AtomicU64,
    polls: AtomicU64,
    spin: AtomicU64,
    yields: AtomicU64,
}

/// Which number of a [`Tuning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Knob {
    /// Longest message, bytes, that is sent before its receiver has asked for it, if the transport allows as much.
    Eager,
    /// How often a thread polls without pause while nobody else wants its processor: up to 25 us, what a message of 512
    /// KiB on a node takes.
    Polls,
    /// How many microseconds a thread polls, or lets others run, before it sleeps: longer than a message of 2 MiB
    /// inside a machine takes, short enough that waiting for anything slower costs little.
    Spin,
    /// How often a thread yields at most before it sleeps while others want its processor. The message it waits for is
    /// often there after one round through the processes of the core. (Measured: a barrier of 8 processes on 2 cores
    /// takes up to twice as long with 1, a third longer with 3; with other work on the machine 3 to 100 are alike.)
    Yields,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            eager: AtomicU64::new(u64::MAX),
            polls: AtomicU64::new(isthmus_settings::POLLS.default),
            spin: AtomicU64::new(isthmus_settings::SPIN.default),
            yields: AtomicU64::new(isthmus_settings::YIELDS.default),
        }
    }
}

impl Tuning {
    fn at(&self, knob: Knob) -> &AtomicU64 {
        match knob {
            Knob::Eager => &self.eager,
            Knob::Polls => &self.polls,
            Knob::Spin => &self.spin,
            Knob::Yields => &self.yields,
        }
    }

    /// The number.
    #[inline]
    pub fn get(&self, knob: Knob) -> u64 {
        self.at(knob).load(Ordering::Relaxed)
    }

    /// Changes the number; takes effect with the next message or the next wait.
    pub fn set(&self, knob: Knob, value: u64) {
        self.at(knob).store(value, Ordering::Relaxed);
    }
}
