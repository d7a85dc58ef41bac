// SPDX-License-Identifier: Apache-2.0
//! Locks in words that all processes of a window share.
//!
//! ```text
//!  words                  content
//!  8 for each process     its lock: tickets, write, read | its attached memory: version, address, length |
//!                        who waits on other nodes for its lock | fences that it has come to the end of
//!  8 for each of 64       who changes elements of a block: rank + 1, or 0 | unused
//! ```
//! Each is a cache line of its own. A process that is alone on its node has one line for itself, and a word with a bit
//! for each block.
//!
//! **The lock of a process** (MPI_Win_lock) lets in whoever comes in the order in which they came, readers together.
//! Each takes a ticket. A writer enters when `write` has come to its ticket, a reader when `read` has, which it passes
//! on at once. Who leaves moves `write`, a writer both.
//!
//! **Elements** are changed by accumulate and its kin under the locks of the blocks that they lie in, whichever way
//! they reach them: that is what makes them atomic.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::epoch::LockKind;

/// Words of a line.
const LINE: usize = 8;
/// Locks of blocks.
const BLOCK_LOCKS: u32 = 64;
/// Bytes of a block.
const BLOCK: u64 = 4096;

/// Words of a process that is alone on its node.
pub(crate) const OWN: usize = LINE + 1;

/// Words of a window of so many processes.
pub(crate) fn words(processes: usize) -> usize {
    LINE * (processes + BLOCK_LOCKS as usize)
}

/// The lock of one process.
#[derive(Clone, Copy)]
pub(crate) struct ProcessLock<'a> {
    tickets: &'a AtomicU64,
    write: &'a AtomicU64,
    read: &'a AtomicU64,
    /// How many on other nodes have a ticket and wait.
    pub(crate) far: &'a AtomicU64,
}

/// What is known of the memory that a process has attached: see `attach`.
#[derive(Clone, Copy)]
pub(crate) struct Notice<'a> {
    pub(crate) version: &'a AtomicU64,
    pub(crate) address: &'a AtomicU64,
    pub(crate) length: &'a AtomicU64,
}

/// The lock of process `rank`, which there is.
pub(crate) fn of_process(words: &[AtomicU64], rank: u32) -> ProcessLock<'_> {
    let line = &words[LINE * rank as usize..];
    ProcessLock {
        tickets: &line[0],
        write: &line[1],
        read: &line[2],
        far: &line[6],
    }
}

/// The notice of process `rank`, which there is.
pub(crate) fn notice(words: &[AtomicU64], rank: u32) -> Notice<'_> {
    let line = &words[LINE * rank as usize..];
    Notice {
        version: &line[3],
        address: &line[4],
        length: &line[5],
    }
}

/// How many fences process `rank`, which there is, has come to the end of.
pub(crate) fn fences(words: &[AtomicU64], rank: u32) -> &AtomicU64 {
    &words[LINE * rank as usize + 7]
}

impl ProcessLock<'_> {
    /// Joins those who want it.
    pub(crate) fn take_ticket(self) -> u64 {
        self.tickets.fetch_add(1, Ordering::AcqRel)
    }

    /// Enters if it is the ticket's turn.
    pub(crate) fn enter(self, kind: LockKind, ticket: u64) -> bool {
        match kind {
            LockKind::Exclusive => self.write.load(Ordering::Acquire) == ticket,
            LockKind::Shared => {
                let turn = self.read.load(Ordering::Acquire) == ticket;
                if turn {
                    self.read.fetch_add(1, Ordering::AcqRel);
                }
                turn
            }
        }
    }

    /// Leaves.
    pub(crate) fn leave(self, kind: LockKind) {
        if kind == LockKind::Exclusive {
            self.read.fetch_add(1, Ordering::AcqRel);
        }
        self.write.fetch_add(1, Ordering::AcqRel);
    }
}

/// The locks of the blocks of process `rank` from byte `start` up to `end`: a bit for each.
pub(crate) fn blocks(rank: u32, start: u64, end: u64) -> u64 {
    if start >= end {
        return 0;
    }
    let (first, last) = (start / BLOCK, (end - 1) / BLOCK);
    if last - first >= u64::from(BLOCK_LOCKS) - 1 {
        return u64::MAX;
    }
    // Neighbouring processes begin at different locks.
    let offset = u64::from(rank).wrapping_mul(17);
    (first..=last).fold(0, |all, block| {
        all | 1 << (block.wrapping_add(offset) % u64::from(BLOCK_LOCKS))
    })
}

/// The locks of a window's blocks.
#[derive(Clone, Copy)]
pub(crate) enum BlockLocks<'a> {
    /// A line for each, for all processes of a node.
    Lines(&'a [AtomicU64]),
    /// A bit for each, for threads of one process.
    Bits(&'a AtomicU64),
}

impl<'a> BlockLocks<'a> {
    /// Among all words of a node.
    pub(crate) fn of_node(words: &'a [AtomicU64]) -> Self {
        Self::Lines(&words[words.len().saturating_sub(LINE * BLOCK_LOCKS as usize)..])
    }

    /// Among those of a process that is alone.
    pub(crate) fn of_one(words: &'a [AtomicU64]) -> Self {
        Self::Bits(&words[LINE])
    }

    /// Takes one for process `me`, if nobody has it.
    pub(crate) fn enter(self, lock: u32, me: u32) -> bool {
        match self {
            Self::Lines(lines) => lines[LINE * lock as usize]
                .compare_exchange_weak(0, u64::from(me) + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok(),
            Self::Bits(word) => word.fetch_or(1 << lock, Ordering::Acquire) & 1 << lock == 0,
        }
    }

    /// Gives locks back that were taken.
    pub(crate) fn leave(self, mut which: u64) {
        let lines = match self {
            Self::Lines(lines) => lines,
            Self::Bits(word) => {
                word.fetch_and(!which, Ordering::Release);
                return;
            }
        };
        while which != 0 {
            lines[LINE * which.trailing_zeros() as usize].store(0, Ordering::Release);
            which &= which - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn fresh(processes: usize) -> Arc<Vec<AtomicU64>> {
        Arc::new((0..words(processes)).map(|_| AtomicU64::new(0)).collect())
    }

    #[test]
    fn a_writer_keeps_all_out_and_readers_come_together() {
        let words = fresh(2);
        let lock = of_process(&words, 1);
        let writer = lock.take_ticket();
        assert!(lock.enter(LockKind::Exclusive, writer));
        let readers = [lock.take_ticket(), lock.take_ticket()];
        let next = lock.take_ticket();
        let late = lock.take_ticket();
        assert!(!lock.enter(LockKind::Shared, readers[0]) && !lock.enter(LockKind::Exclusive, next));
        lock.leave(LockKind::Exclusive);
        assert!(lock.enter(LockKind::Shared, readers[0]) && lock.enter(LockKind::Shared, readers[1]));
        assert!(!lock.enter(LockKind::Exclusive, next), "readers are there");
        lock.leave(LockKind::Shared);
        assert!(!lock.enter(LockKind::Exclusive, next), "one reader is there");
        assert!(!lock.enter(LockKind::Shared, late), "it came after the writer");
        lock.leave(LockKind::Shared);
        assert!(lock.enter(LockKind::Exclusive, next));
        lock.leave(LockKind::Exclusive);
        assert!(lock.enter(LockKind::Shared, late));
    }

    #[test]
    fn a_lock_excludes_among_threads() {
        let words = fresh(1);
        let counted = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (words, counted) = (words.clone(), counted.clone());
                std::thread::spawn(move || {
                    for round in 0..2000 {
                        let lock = of_process(&words, 0);
                        let kind = if (thread + round) % 3 == 0 {
                            LockKind::Shared
                        } else {
                            LockKind::Exclusive
                        };
                        let ticket = lock.take_ticket();
                        while !lock.enter(kind, ticket) {
                            std::thread::yield_now();
                        }
                        let seen = counted.load(Ordering::Relaxed);
                        if kind == LockKind::Exclusive {
                            counted.store(seen + 1, Ordering::Relaxed);
                        } else {
                            assert_eq!(seen, counted.load(Ordering::Relaxed));
                        }
                        lock.leave(kind);
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("ended"));
        let exclusive = (0..4_u64).flat_map(|thread| (0..2000).map(move |round| thread + round));
        assert_eq!(
            counted.load(Ordering::Relaxed),
            exclusive.filter(|at| at % 3 != 0).count() as u64
        );
    }

    #[test]
    fn blocks_have_locks_of_their_own_and_long_ranges_all() {
        assert_eq!(blocks(0, 5, 5), 0);
        assert_eq!(blocks(0, 0, 4096), 1);
        assert_eq!(blocks(0, 4095, 4097), 3);
        assert_eq!(blocks(0, 63 * 4096, 65 * 4096), 1 << 63 | 1);
        assert_eq!(blocks(0, 10, 64 * 4096), u64::MAX);
        assert_eq!(blocks(9, 0, u64::MAX), u64::MAX);
        assert_ne!(blocks(0, 0, 1), blocks(1, 0, 1));
    }

    #[test]
    fn a_block_is_changed_by_one_at_a_time() {
        let (words, own) = (fresh(3), fresh(1));
        for locks in [BlockLocks::of_node(&words), BlockLocks::of_one(&own)] {
            assert!(!(0..100).all(|_| !locks.enter(7, 1)), "free");
            assert!((0..100).all(|_| !locks.enter(7, 2)), "taken");
            assert!((0..100).any(|_| locks.enter(8, 2)), "another one");
            locks.leave(1 << 7);
            assert!((0..100).any(|_| locks.enter(7, 2)), "free again");
            assert!((0..100).all(|_| !locks.enter(8, 1)), "taken");
        }
        assert!(words[..3 * LINE].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }
}
