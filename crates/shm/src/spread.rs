// SPDX-License-Identifier: Apache-2.0
//! Waiting processes of a job spread over the cores: not two on one while there are cores enough for all, and not more
//! than their share on one where there are not.
//!
//! Schedulers like to put a process that was woken onto the core of the one that woke it. Two processes that then
//! exchange messages both stay runnable, each polling while the other one could answer, and on a machine with other
//! work it can take seconds until one of them is moved. Where processes share cores, some milliseconds pass until a
//! core with nothing to do takes one of those that yield to each other elsewhere: each has run a moment ago, and counts
//! as one whose caches are worth more. So a process that polls in vain writes into its block which core it runs on, and
//! if there are too many processes of the job on the same one, it forbids itself that core for a moment, which moves
//! it, and allows it again. No process is bound to a core: jobs on the same node do not pile up on the first cores.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use crate::segment::{STATE_PRESENT, Segment};
use crate::sync::Ordering;

/// Polls in vain between two looks at the core, in one piece or in many: 6 µs of waiting. A look asks for the number of
/// the core, which takes no system call, and reads words that change only when somebody moves: a few percent of that.
/// It comes a thousand times as often as anybody may move ([`PAUSE`]), so half of it or ten times as much comes to the
/// same (`docs/measured/waiting.md`).
const POLLS: u32 = 512;

/// The same where each poll ends in a yield, at least, and for each process whose core is read. A yield takes 0.2 µs or
/// more, reading a word that another core has just written half of that: a look is a tenth of the time at most.
const YIELDS: u32 = 64;
const YIELDS_EACH: u32 = 8;

/// Shortest time between two moves: moving costs the contents of the caches.
const PAUSE: Duration = Duration::from_millis(5);

/// In a block: the process does not poll, or has not found out where it is. Cores are counted from 1.
const NOWHERE: u32 = 0;

/// Keeps a process away from the cores of the others.
pub(crate) struct Spread {
    polls: Cell<u32>,
    /// Polls from one look to the next.
    every: u32,
    /// `None`: there are no others.
    next: Cell<Option<Instant>>,
    /// Most processes that are on one core when they are spread evenly.
    share: u32,
}

impl Spread {
    pub(crate) fn new(processes: usize) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self::over(processes, cores)
    }

    fn over(processes: usize, cores: usize) -> Self {
        let (share, all) = (count(processes.div_ceil(cores.max(1))), count(processes));
        Self {
            polls: Cell::new(0),
            every: match share {
                0 | 1 => POLLS,
                _ => YIELDS.max(YIELDS_EACH.saturating_mul(all)),
            },
            next: Cell::new((processes > 1 && cores > 1).then(Instant::now)),
            share: if processes > 1 { share } else { 0 },
        }
    }

    /// Whether there are others, and cores enough for all processes.
    pub(crate) fn is_sensible(&self) -> bool {
        self.share == 1
    }

    /// Other processes that may be on the core of this one, when they are spread evenly; `None`: there are no others.
    pub(crate) fn neighbours(&self) -> Option<u8> {
        let others = self.share.checked_sub(1)?;
        Some(u8::try_from(others).unwrap_or(u8::MAX))
    }

    /// A poll found nothing.
    #[inline]
    pub(crate) fn idle(&self, segment: &Segment, slot: usize) {
        self.polls.set(self.polls.get() + 1);
        if self.polls.get() >= self.every {
            self.polls.set(0);
            self.look(segment, slot);
        }
    }

    /// The process is about to sleep.
    pub(crate) fn sleeps(&self, segment: &Segment, slot: usize) {
        if self.next.get().is_some() {
            segment.block(slot).core.store(NOWHERE, Ordering::Relaxed);
        }
    }

    #[cold]
    fn look(&self, segment: &Segment, slot: usize) {
        let Some(next) = self.next.get() else { return };
        let own = sched_getcpu();
        let core = &segment.block(slot).core;
        // What does not change stays in the caches of those who read it.
        if core.load(Ordering::Relaxed) != own as u32 + 1 {
            core.store(own as u32 + 1, Ordering::Relaxed);
        }
        let core_of = |slot| {
            let block = segment.block(slot);
            let is_here = block.state.load(Ordering::Relaxed) == STATE_PRESENT;
            if is_here {
                block.core.load(Ordering::Relaxed)
            } else {
                NOWHERE
            }
        };
        let others = (0..segment.geometry().processes()).filter(|&s| s != slot);
        let taken: Vec<(usize, u32)> = others.map(|slot| (slot, core_of(slot))).collect();
        if !self.is_to_leave(slot, own, &taken) || Instant::now() < next {
            return;
        }
        self.next.set(Some(Instant::now() + PAUSE));
        leave(own, self.share, &taken);
        core.store(sched_getcpu() as u32 + 1, Ordering::Relaxed);
    }

    /// Whether there are too many processes on this core, and this one is to leave it: where several share a core the
    /// last of them, lest all leave at once. `taken`: slots of the others and their cores, counted from 1.
    fn is_to_leave(&self, slot: usize, own: usize, taken: &[(usize, u32)]) -> bool {
        let here = || taken.iter().filter(|(_, core)| *core == own as u32 + 1);
        let is_last = self.share == 1 || here().all(|(other, _)| *other < slot);
        here().count() >= self.share as usize && is_last
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Moves this thread from `own` to one of the cores with the fewest processes, if it may use one with fewer than
/// `share`. `taken`: the other processes with their cores, counted from 1. Errors leave it where it is.
fn leave(own: usize, share: u32, taken: &[(usize, u32)]) {
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let on = |core: usize| count(taken.iter().filter(|(_, taken)| *taken == core as u32 + 1).count());
    let cores: Vec<(usize, u32)> = (0..CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core) && core != own)
        .map(|core| (core, on(core)))
        .collect();
    let fewest = cores.iter().map(|(_, processes)| *processes).min();
    let Some(fewest) = fewest.filter(|fewest| *fewest < share) else {
        return;
    };
    let mut free = CpuSet::new();
    for (core, _) in cores.iter().filter(|(_, processes)| *processes == fewest) {
        free.set(*core);
    }
    if sched_setaffinity(None, &free).is_ok() {
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
        leave(own, 1, &[]);
        assert_eq!(sched_getaffinity(None).expect("affinity"), before);
        // Every other core taken: it stays allowed everywhere.
        let all: Vec<(usize, u32)> = (1..=CpuSet::MAX_CPU as u32).map(|core| (0, core)).collect();
        leave(sched_getcpu(), 1, &all);
        assert_eq!(sched_getaffinity(None).expect("affinity"), before);
    }

    #[test]
    fn processes_have_neighbours_where_there_are_not_cores_enough() {
        let cases = [(1, 2), (2, 2), (3, 2), (4, 2), (5, 2), (16, 2), (4096, 2), (2, 64)];
        let found = cases.map(|(processes, cores)| Spread::over(processes, cores).neighbours());
        let right = [None, Some(0), Some(1), Some(1), Some(2), Some(7), Some(255), Some(0)];
        assert_eq!(found, right);
    }

    #[test]
    fn a_core_each_is_sensible_where_there_are_cores_enough() {
        let cases = [(1, 2), (2, 2), (3, 2), (4, 2), (1 << 20, 64)];
        let found = cases.map(|(processes, cores)| Spread::over(processes, cores).is_sensible());
        assert_eq!(found, [false, true, false, false, false]);
    }

    #[test]
    fn of_too_many_on_a_core_the_last_leaves() {
        let two_each = Spread::over(4, 2);
        let three_here = [(0, 1), (1, 1), (3, 2)];
        assert!(two_each.is_to_leave(2, 0, &three_here));
        assert!(!two_each.is_to_leave(2, 0, &[(0, 1), (1, 2), (3, 2)]), "its share");
        assert!(
            !two_each.is_to_leave(0, 0, &[(1, 1), (2, 1), (3, 2)]),
            "another one is to leave"
        );
        let one_each = Spread::over(2, 2);
        assert!(one_each.is_to_leave(0, 5, &[(1, 6)]) && one_each.is_to_leave(1, 5, &[(0, 6)]));
        assert!(!one_each.is_to_leave(0, 5, &[(1, 5)]));
        assert!(!one_each.is_to_leave(0, 5, &[(1, NOWHERE)]));
    }
}
