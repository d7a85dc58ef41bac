// SPDX-License-Identifier: Apache-2.0
//! Locks in words that all processes of a window share.
//!
//! ```text
//!  words                  content
//!  8 for each process     its lock: tickets, write, read | its attached memory: version, address, length; or in the
//!                        place of these the piece of shared memory in which lies what it has brought, its address, and
//!                        what of the piece is before it | how many on other nodes wait for its lock, and have it |
//!                        fences that it has ended
//!  8 for each 64 members  a byte for each of them that wants or has the lock of the process
//!  8 for each of 64       who changes elements of a block: rank + 1, or 0 | unused
//! ```
//! Each is a cache line of its own. A process that is alone on its node has one line for itself, and a word with a bit
//! for each block.
//!
//! **The lock of a process** (MPI_Win_lock) lets in whoever comes in the order in which they came, readers together.
//! Each takes a ticket. A writer enters when `write` has come to its ticket, a reader when `read` has, which it passes
//! on at once. Who leaves moves `write`, a writer both. Members say in their bytes what they are about, so that those
//! who live can go the steps of one that is lost ([`ProcessLock::recover`]).
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

/// Words of one of so many processes.
fn stride(processes: usize) -> usize {
    LINE + processes.div_ceil(EACH).next_multiple_of(LINE)
}

/// Words of a window of so many processes.
pub(crate) fn words(processes: usize) -> usize {
    stride(processes) * processes + LINE * BLOCK_LOCKS as usize
}

/// Members that say in a word what they are about.
const EACH: usize = 8;
/// In the byte of a member: it waits with a ticket to read, or to write (or writes); it reads. Its ticket is above.
const READER: u64 = 1;
const WRITER: u64 = 2;
const READS: u64 = 3;
/// Tickets that a byte tells apart.
const TOLD: u64 = 64;

/// The lock of one process.
#[derive(Clone, Copy)]
pub(crate) struct ProcessLock<'a> {
    tickets: &'a AtomicU64,
    write: &'a AtomicU64,
    read: &'a AtomicU64,
    /// How many on other nodes have a ticket and wait, and how many of them it has let in: the upper half.
    far: &'a AtomicU64,
    /// Bytes of members on the node.
    members: &'a [AtomicU64],
}

/// What is known of the memory that a process has attached: see `attach`.
#[derive(Clone, Copy)]
pub(crate) struct Notice<'a> {
    pub(crate) version: &'a AtomicU64,
    pub(crate) address: &'a AtomicU64,
    pub(crate) length: &'a AtomicU64,
}

/// The words of process `rank`, which there is, of so many.
pub(crate) fn line(words: &[AtomicU64], processes: usize, rank: u32) -> &[AtomicU64] {
    let stride = stride(processes);
    &words[stride * rank as usize..][..stride]
}

/// The lock in the words of a process.
pub(crate) fn of_process(line: &[AtomicU64]) -> ProcessLock<'_> {
    ProcessLock {
        tickets: &line[0],
        write: &line[1],
        read: &line[2],
        far: &line[6],
        members: &line[LINE..],
    }
}

/// The notice in the words of a process.
pub(crate) fn notice(line: &[AtomicU64]) -> Notice<'_> {
    Notice {
        version: &line[3],
        address: &line[4],
        length: &line[5],
    }
}

/// The memory that a process has brought when the window was made.
#[derive(Clone, Copy)]
pub(crate) struct Brought<'a> {
    /// Where it begins there.
    pub(crate) begins: &'a AtomicU64,
    /// The number of the piece of shared memory in which it lies; 0: in none.
    pub(crate) piece: &'a AtomicU64,
    /// Bytes of the piece before it.
    pub(crate) skip: &'a AtomicU64,
}

/// What a process says of memory that it has brought, in its words: those of a window to which nothing can be attached
/// have room for it.
pub(crate) fn brought(line: &[AtomicU64]) -> Brought<'_> {
    Brought {
        begins: &line[4],
        piece: &line[3],
        skip: &line[5],
    }
}

/// How many fences a process has come to the end of, in its words.
pub(crate) fn fences(line: &[AtomicU64]) -> &AtomicU64 {
    &line[7]
}

impl ProcessLock<'_> {
    /// Joins those who want it.
    pub(crate) fn take_ticket(self) -> u64 {
        self.tickets.fetch_add(1, Ordering::AcqRel)
    }

    /// The same for member `me` of the node.
    pub(crate) fn join(self, me: u32, kind: LockKind) -> u64 {
        let ticket = self.take_ticket();
        let what = match kind {
            LockKind::Shared => READER,
            LockKind::Exclusive => WRITER,
        };
        self.say(me, what | (ticket % TOLD) << 2);
        ticket
    }

    /// Member `me` enters if it is its ticket's turn.
    pub(crate) fn let_in(self, me: u32, kind: LockKind, ticket: u64) -> bool {
        let entered = self.enter(kind, ticket);
        if entered && kind == LockKind::Shared {
            self.say(me, READS);
        }
        entered
    }

    /// Member `me` leaves.
    pub(crate) fn give_back(self, me: u32, kind: LockKind) {
        self.say(me, 0);
        self.leave(kind);
    }

    /// What a member says, in the place of what it has said.
    fn say(self, member: u32, what: u64) {
        let Some(word) = self.members.get(member as usize / EACH) else {
            return;
        };
        let shift = 8 * (member % EACH as u32);
        let before = word.load(Ordering::Relaxed) >> shift & 0xff;
        // Nobody else changes this byte.
        word.fetch_xor((before ^ what) << shift, Ordering::AcqRel);
    }

    /// Somebody on another node has a ticket and waits.
    pub(crate) fn far_waits(self) {
        self.far.fetch_add(1, Ordering::SeqCst);
    }

    /// It has entered.
    pub(crate) fn far_enters(self) {
        self.far.fetch_add((1 << 32) - 1, Ordering::SeqCst);
    }

    /// It has left.
    pub(crate) fn far_leaves(self) {
        self.far.fetch_sub(1 << 32, Ordering::SeqCst);
    }

    /// Whether anybody on another node waits.
    pub(crate) fn is_wanted_far(self) -> bool {
        self.far.load(Ordering::SeqCst) as u32 > 0
    }

    /// Whether somebody who lives wants or has it, other than member `me`.
    pub(crate) fn is_used(self, me: u32, is_lost: &dyn Fn(u32) -> bool) -> bool {
        let wants = self.said().any(|(member, _)| member != me && !is_lost(member));
        wants || self.far.load(Ordering::SeqCst) != 0
    }

    /// The same among those of this node.
    pub(crate) fn is_wanted_near(self, is_lost: &dyn Fn(u32) -> bool) -> bool {
        self.said().any(|(member, _)| !is_lost(member))
    }

    /// It is the turn of this ticket.
    pub(crate) fn restart(self, ticket: u64) {
        self.write.store(ticket, Ordering::Release);
        self.read.store(ticket, Ordering::Release);
    }

    /// Members that say something, with that.
    fn said(self) -> impl Iterator<Item = (u32, u64)> {
        let words = (0..).zip(self.members.iter());
        words.flat_map(|(at, word)| {
            let word = word.load(Ordering::Acquire);
            let bytes = (0..EACH as u32).map(move |byte| (at * EACH as u32 + byte, word >> (8 * byte) & 0xff));
            bytes.filter(|&(_, what)| what != 0)
        })
    }

    /// Goes the steps of members that are lost, as far as it is their turn. What one was about between two words of
    /// memory nobody knows.
    pub(crate) fn recover(self, is_lost: &dyn Fn(u32) -> bool) {
        for (member, what) in self.said().filter(|&(member, _)| is_lost(member)) {
            let ticket = what >> 2;
            let (write, read) = (self.write.load(Ordering::Acquire), self.read.load(Ordering::Acquire));
            let ahead = ticket.wrapping_sub(read) % TOLD;
            let waits = ahead < self.tickets.load(Ordering::Acquire).wrapping_sub(read);
            let turn = match what & 3 {
                READS => true,
                READER => ahead == 0 || !waits,
                _ => ticket.wrapping_sub(write) % TOLD == 0,
            };
            // One of those who see it does it.
            if !turn || !self.silence(member, what) {
                continue;
            }
            match what & 3 {
                READS => self.leave(LockKind::Shared),
                READER if waits => {
                    self.read.fetch_add(1, Ordering::AcqRel);
                    self.leave(LockKind::Shared);
                }
                READER => self.leave(LockKind::Shared),
                _ => self.leave(LockKind::Exclusive),
            }
        }
    }

    /// Takes back what a lost member says; false: another process has.
    fn silence(self, member: u32, what: u64) -> bool {
        let Some(word) = self.members.get(member as usize / EACH) else {
            return false;
        };
        let shift = 8 * (member % EACH as u32);
        let taken = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, |all| {
            (all >> shift & 0xff == what).then_some(all & !(0xff << shift))
        });
        taken.is_ok()
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

    /// Takes one from a process that is lost and had it.
    pub(crate) fn take_over(self, lock: u32, me: u32, is_lost: &dyn Fn(u32) -> bool) -> bool {
        let Self::Lines(lines) = self else { return false };
        let word = &lines[LINE * lock as usize];
        let had = word.load(Ordering::Acquire);
        let lost = had
            .checked_sub(1)
            .and_then(|rank| u32::try_from(rank).ok())
            .filter(|&rank| is_lost(rank));
        let mine = u64::from(me) + 1;
        let take = || word.compare_exchange(had, mine, Ordering::Acquire, Ordering::Relaxed);
        lost.is_some() && take().is_ok()
    }

    /// Gives back what processes had that are lost.
    pub(crate) fn recover(self, is_lost: &dyn Fn(u32) -> bool) {
        let Self::Lines(lines) = self else { return };
        for word in lines.iter().step_by(LINE) {
            let had = word.load(Ordering::Acquire);
            if had.checked_sub(1).is_some_and(|rank| is_lost(rank as u32)) {
                // Whoever waits for it may have been quicker.
                let _ = word.compare_exchange(had, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
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
        let lock = of_process(line(&words, 2, 1));
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
                        let lock = of_process(line(&words, 1, 0));
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
    fn what_lost_members_had_or_waited_for_goes_on_to_those_who_live() {
        let kinds = [LockKind::Shared, LockKind::Exclusive];
        for (old, first, second, third) in all_of(kinds) {
            let words = fresh(70);
            let lock = of_process(line(&words, 70, 69));
            // Tickets are beyond what a byte tells apart.
            for _ in 0..u64::from(old == LockKind::Shared) * 200 + 7 {
                let ticket = lock.join(5, old);
                assert!(lock.let_in(5, old, ticket));
                lock.give_back(5, old);
            }
            let has = lock.join(66, first);
            assert!(lock.let_in(66, first, has));
            let _waits = lock.join(3, second);
            let mine = lock.join(0, third);
            let is_lost = |member| member == 66 || member == 3;
            assert!(!lock.is_used(0, &is_lost) && lock.is_used(0, &|_| false));
            (0..3).for_each(|_| lock.recover(&is_lost));
            assert!(lock.let_in(0, third, mine), "{first:?} {second:?} {third:?}");
            lock.give_back(0, third);
            let next = lock.join(1, LockKind::Exclusive);
            assert!(lock.let_in(1, LockKind::Exclusive, next));
            lock.recover(&is_lost);
            assert_eq!(lock.said().map(|(member, _)| member).collect::<Vec<_>>(), [1]);
        }
    }

    /// All choices of four.
    fn all_of(kinds: [LockKind; 2]) -> impl Iterator<Item = (LockKind, LockKind, LockKind, LockKind)> {
        (0..16).map(move |bits: usize| {
            (
                kinds[bits & 1],
                kinds[bits >> 1 & 1],
                kinds[bits >> 2 & 1],
                kinds[bits >> 3 & 1],
            )
        })
    }

    #[test]
    fn a_ticket_of_which_nobody_told_is_passed_when_those_who_wait_begin_anew() {
        let words = fresh(2);
        let lock = of_process(line(&words, 2, 0));
        lock.take_ticket();
        let ticket = lock.take_ticket();
        lock.recover(&|member| member == 1);
        assert!(!lock.enter(LockKind::Exclusive, ticket) && !lock.is_wanted_near(&|member| member == 1));
        lock.restart(ticket);
        assert!(lock.enter(LockKind::Exclusive, ticket));
        lock.leave(LockKind::Exclusive);
        let next = lock.join(0, LockKind::Shared);
        assert!(lock.let_in(0, LockKind::Shared, next));
    }

    #[test]
    fn a_lost_reader_behind_many_others_is_found() {
        let words = fresh(2);
        let lock = of_process(line(&words, 2, 0));
        let old = lock.join(1, LockKind::Shared);
        assert!(lock.let_in(1, LockKind::Shared, old));
        for _ in 0..500 {
            let ticket = lock.join(0, LockKind::Shared);
            assert!(lock.let_in(0, LockKind::Shared, ticket));
            lock.give_back(0, LockKind::Shared);
        }
        let ticket = lock.join(0, LockKind::Exclusive);
        assert!(!lock.let_in(0, LockKind::Exclusive, ticket));
        lock.recover(&|member| member == 1);
        assert!(lock.let_in(0, LockKind::Exclusive, ticket));
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
        let locks = BlockLocks::of_node(&words);
        assert!(!locks.take_over(8, 1, &|rank| rank != 2) && locks.take_over(8, 1, &|rank| rank == 2));
        assert!(
            words[..3 * stride(3)]
                .iter()
                .all(|word| word.load(Ordering::Relaxed) == 0)
        );
    }
}
