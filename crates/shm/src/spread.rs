// SPDX-License-Identifier: Apache-2.0
//! Not two waiting processes of a job on one core while there are cores enough for all.
//!
//! Schedulers like to put a process that was woken onto the core of the one that woke it. Two processes that then
//! exchange messages both stay runnable, each polling while the other one could answer, and on a machine with other
//! work it can take seconds until one of them is moved. So a process that polls in vain writes into its block which
//! core it runs on, and if another process of the job is on the same one, it forbids itself that core for a moment,
//! which moves it, and allows it again. No process is bound to a core: jobs on the same node do not pile up on the
//! first cores.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::segment::Segment;
use crate::sync::Ordering;

/// Polls in vain between two looks at the core: some 10 µs of waiting, in one piece or in many.
const POLLS: u32 = 512;

/// Shortest time between two moves: moving costs the contents of the caches.
const PAUSE: Duration = Duration::from_millis(5);

/// In a block: the process does not poll, or has not found out where it is. Cores are counted from 1.
const NOWHERE: u32 = 0;

/// Keeps a process away from the cores of the others.
pub(crate) struct Spread {
    polls: u32,
    /// None when there are fewer cores than processes: then sharing cannot be avoided.
    next: Option<Instant>,
    /// Other processes that may be on one core, when they are spread evenly; none when this process is the only one.
    neighbours: Option<u8>,
}

impl Spread {
    pub(crate) fn new(processes: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let sensible = processes > 1 && processes <= cores;
        Self {
            polls: 0,
            next: sensible.then(Instant::now),
            neighbours: neighbours(processes, cores),
        }
    }

    /// Whether there are cores enough for all processes.
    pub(crate) fn is_sensible(&self) -> bool {
        self.next.is_some()
    }

    /// Other processes that may be on the core of this one; `None`: there are no others.
    pub(crate) fn neighbours(&self) -> Option<u8> {
        self.neighbours
    }

    /// A poll found nothing.
    #[inline]
    pub(crate) fn idle(&mut self, segment: &Segment, slot: usize) {
        self.polls += 1;
        if self.polls >= POLLS {
            self.polls = 0;
            self.look(segment, slot);
        }
    }

    /// The process is about to sleep.
    pub(crate) fn sleeps(&self, segment: &Segment, slot: usize) {
        if self.next.is_some() {
            segment.block(slot).core.store(NOWHERE, Ordering::Relaxed);
        }
    }

    #[cold]
    fn look(&mut self, segment: &Segment, slot: usize) {
        let Some(next) = self.next else { return };
        let own = sched_getcpu();
        let core = &segment.block(slot).core;
        core.store(own as u32 + 1, Ordering::Relaxed);
        let others = (0..segment.geometry().processes()).filter(|&s| s != slot);
        let taken: Vec<u32> = others.map(|s| segment.block(s).core.load(Ordering::Relaxed)).collect();
        if !taken.contains(&(own as u32 + 1)) || Instant::now() < next {
            return;
        }
        self.next = Some(Instant::now() + PAUSE);
        leave(own, &taken);
        core.store(sched_getcpu() as u32 + 1, Ordering::Relaxed);
    }
}

/// Other processes on the fullest core, when so many are spread evenly.
fn neighbours(processes: usize, cores: usize) -> Option<u8> {
    let fullest = processes.div_ceil(cores.max(1));
    (processes > 1).then(|| u8::try_from(fullest - 1).unwrap_or(u8::MAX))
}

/// Moves this thread to a core that is not `own` and not in `taken` (counted from 1), if it may use one. Errors leave
/// it where it is.
fn leave(own: usize, taken: &[u32]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let mut free = CpuSet::new();
    for core in (0..CpuSet::MAX_CPU).filter(|&c| allowed.is_set(c)) {
        if core != own && !taken.contains(&(core as u32 + 1)) {
            free.set(core);
        }
    }
    if free.count() > 0 && sched_setaffinity(None, &free).is_ok() {
        let _ = sched_setaffinity(None, &allowed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_leaves_the_core_and_keeps_what_is_allowed() {
        let before = sched_getaffinity(None).expect("affinity");
        if before.count() < 2 {
            return;
        }
        let own = sched_getcpu();
        leave(own, &[]);
        assert_eq!(sched_getaffinity(None).expect("affinity"), before);
        // Every other core taken: it stays allowed everywhere.
        let all: Vec<u32> = (1..=CpuSet::MAX_CPU as u32).collect();
        leave(sched_getcpu(), &all);
        assert_eq!(sched_getaffinity(None).expect("affinity"), before);
    }

    #[test]
    fn processes_have_neighbours_where_there_are_not_cores_enough() {
        let cases = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (16, 2), (4096, 2), (2, 64)];
        let found = cases.map(|(processes, cores)| neighbours(processes, cores));
        let right = [None, Some(0), Some(1), Some(1), Some(2), Some(7), Some(255), Some(0)];
        assert_eq!(found, right);
    }

    #[test]
    fn more_processes_than_cores_share() {
        assert!(Spread::new(1 << 20).next.is_none());
        assert!(Spread::new(1).next.is_none());
    }
}
