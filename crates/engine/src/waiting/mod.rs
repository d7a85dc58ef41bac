// SPDX-License-Identifier: Apache-2.0
//! One engine for all threads: locking, waiting, progress while the program computes.

pub(crate) mod bell;
pub(crate) mod inner;
pub(crate) mod keeper;
mod keeping;
pub(crate) mod pace;
pub(crate) mod patience;
pub(crate) mod shared;
pub(crate) mod waits;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use isthmus_protocol::patience::Patience;
use isthmus_wire::waiting::Item;

use crate::Engine;

/// Longest sleep: bounds the harm if a doorbell is ever lost; costs nothing.
pub(crate) const NAP: Duration = Duration::from_secs(1);

/// What the lock of a process guards: its engine, and who waits for it. Seen in this folder only.
pub(crate) struct Inner {
    engine: Engine,
    /// Threads of the library come too.
    guests: bool,
    /// How often a thread of the program has taken the engine; counted where there are guests.
    entries: u64,
    /// The transports are armed for the keeper.
    kept: bool,
    /// Threads that sleep.
    sleepers: u32,
    quiet: Quiet,
    /// Calls that found nothing and returned, one after the other, and what had happened when they began.
    looking: (Patience, u64),
    /// Who hears what comes from outside of MPI.
    listener: Option<Listener>,
    /// What sleepers wait for: made at the first sleep, since most processes of short jobs never sleep.
    descriptors: Option<Arc<[OwnedFd]>>,
}

/// What was told while nothing comes.
#[derive(Default)]
struct Quiet {
    /// Since when nothing has come to a thread that waits and has slept.
    since: Option<Instant>,
    /// When that was told last.
    last: Option<Instant>,
    /// What the watcher was told last.
    reported: Option<Vec<Item>>,
    /// Since when calls find nothing and return, and what had happened by then.
    tests: Option<(Instant, u64)>,
}

/// Hears what comes from outside of MPI.
struct Listener {
    descriptor: OwnedFd,
    hear: Box<dyn FnMut(&mut Engine) -> bool + Send>,
}
