// SPDX-License-Identifier: Apache-2.0
//! Locks in words that several processes share, of which some may be lost.
//!
//! **The lock of a process** lets in whoever comes in the order in which they came, readers together. Each takes a
//! ticket. A writer enters when `write` has come to its ticket, a reader when `read` has, which it passes on at once.
//! Who leaves moves `write`, a writer both. Members say in their bytes what they are about, so that those who live can
//! go the steps of one that is lost ([`ProcessLock::recover`]).
//!
//! **Whoever locks all** ([`LockKind::All`]) has the lock of one process while it comes to the next one, and comes to
//! them in any order. Behind a writer that waits for other readers it could wait for ever: two that lock all, with a
//! writer between them at both locks, would each wait for what the other one has. So it takes no ticket and waits for
//! the writer that is in only, who has to come out whatever others do. It is counted before it is in, so that it waits
//! for one writer at most.
//!
//! **Locks of blocks** have the number of who has them, and are taken from it if it is lost.
//!
//! Words are found by their owner: rooms that share memory say where they lie.

// The real ones, or those of the model checker (`--cfg loom`), so that what is checked is what runs.
#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Words from the lock of a block to the next one: each is a cache line of its own.
pub const LINE: usize = 8;

/// Members that say in a word what they are about.
pub const EACH: usize = 8;
/// In the byte of a member: it waits with a ticket to read, or to write (or writes); it reads. Its ticket is above.
const READER: u64 = 1;
const WRITER: u64 = 2;
const READS: u64 = 3;
/// It reads without a ticket, or waits for that.
const ALL: u64 = READS | 1 << 2;

/// In the word about others, each in so many bits: how many on other nodes wait, and have it; how many have or want it
/// with all others. Behind them a bit: a writer is in.
const COUNT: u32 = 21;
const HAS_FAR: u64 = 1 << COUNT;
const HAS_ALL: u64 = 1 << (2 * COUNT);
const WRITES: u64 = 1 << (3 * COUNT);
const WAITS_FAR: u64 = HAS_FAR - 1;
/// Tickets that a byte tells apart.
const TOLD: u64 = 64;

/// How a process is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Together with others.
    Shared,
    /// The same, by one that has or will have the locks of all processes.
    All,
    /// Alone.
    Exclusive,
}

/// The lock of one process.
#[derive(Clone, Copy)]
pub struct ProcessLock<'a> {
    tickets: &'a AtomicU64,
    write: &'a AtomicU64,
    read: &'a AtomicU64,
    /// Counts of those who are on other nodes, and of those who lock all.
    others: &'a AtomicU64,
    /// Bytes of members on the node.
    members: &'a [AtomicU64],
}

impl<'a> ProcessLock<'a> {
    /// In words of its own for tickets, `write` and `read`, in one that counts others, and in a byte for each member of
    /// this node.
    pub fn new([tickets, write, read]: [&'a AtomicU64; 3], others: &'a AtomicU64, members: &'a [AtomicU64]) -> Self {
        Self {
            tickets,
            write,
            read,
            others,
            members,
        }
    }

    /// Joins those who want it; the ticket, if it takes one.
    pub fn take_ticket(self, kind: LockKind) -> u64 {
        match kind {
            LockKind::All => {
                self.others.fetch_add(HAS_ALL, Ordering::SeqCst);
                0
            }
            _ => self.tickets.fetch_add(1, Ordering::AcqRel),
        }
    }

    /// The same for member `me` of the node.
    pub fn join(self, me: u32, kind: LockKind) -> u64 {
        let ticket = self.take_ticket(kind);
        let what = match kind {
            LockKind::Shared => READER | (ticket % TOLD) << 2,
            LockKind::Exclusive => WRITER | (ticket % TOLD) << 2,
            LockKind::All => ALL,
        };
        self.say(me, what);
        ticket
    }

    /// Member `me` enters if it is its ticket's turn.
    pub fn let_in(self, me: u32, kind: LockKind, ticket: u64) -> bool {
        let entered = self.enter(kind, ticket);
        if entered && kind == LockKind::Shared {
            self.say(me, READS);
        }
        entered
    }

    /// Member `me` leaves.
    pub fn give_back(self, me: u32, kind: LockKind) {
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

    /// Somebody on another node waits.
    pub fn far_waits(self) {
        self.others.fetch_add(1, Ordering::SeqCst);
    }

    /// It has entered.
    pub fn far_enters(self) {
        self.others.fetch_add(HAS_FAR - 1, Ordering::SeqCst);
    }

    /// It has left.
    pub fn far_leaves(self) {
        self.others.fetch_sub(HAS_FAR, Ordering::SeqCst);
    }

    /// Whether anybody on another node waits.
    pub fn is_wanted_far(self) -> bool {
        self.others.load(Ordering::SeqCst) & WAITS_FAR > 0
    }

    /// Whether somebody who lives wants or has it, other than member `me`.
    pub fn is_used(self, me: u32, is_lost: &dyn Fn(u32) -> bool) -> bool {
        let wants = self.said().any(|(member, _)| member != me && !is_lost(member));
        wants || self.others.load(Ordering::SeqCst) & (HAS_ALL - 1) != 0
    }

    /// The same among those of this node.
    pub fn is_wanted_near(self, is_lost: &dyn Fn(u32) -> bool) -> bool {
        self.said().any(|(member, _)| !is_lost(member))
    }

    /// It is the turn of this ticket; `None`: of the next one that anybody takes. So many on other nodes wait to lock
    /// all, and nobody else has anything of it.
    pub fn restart(self, ticket: Option<u64>, all: u64) {
        let ticket = ticket.unwrap_or_else(|| self.tickets.load(Ordering::Acquire));
        self.write.store(ticket, Ordering::Release);
        self.read.store(ticket, Ordering::Release);
        let rest = |others: u64| Some(others & (HAS_ALL - 1) | all.wrapping_mul(HAS_ALL) & (WRITES - 1));
        let _ = self.others.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
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
    pub fn recover(self, is_lost: &dyn Fn(u32) -> bool) {
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
                READS if what == ALL => self.leave(LockKind::All),
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
    pub fn enter(self, kind: LockKind, ticket: u64) -> bool {
        match kind {
            LockKind::Exclusive => self.write.load(Ordering::Acquire) == ticket && self.keep_out(),
            LockKind::All => self.others.load(Ordering::SeqCst) & WRITES == 0,
            LockKind::Shared => {
                let turn = self.read.load(Ordering::Acquire) == ticket;
                if turn {
                    self.read.fetch_add(1, Ordering::AcqRel);
                }
                turn
            }
        }
    }

    /// Enters if it need not wait, and leaves nothing behind if it would have to.
    pub fn enter_at_once(self, kind: LockKind) -> bool {
        match kind {
            LockKind::Exclusive => {
                let alone = self.keep_out();
                let entered = alone && self.take_next(self.write);
                if alone && !entered {
                    self.others.fetch_and(!WRITES, Ordering::SeqCst);
                }
                entered
            }
            LockKind::Shared => {
                let entered = self.take_next(self.read);
                if entered {
                    self.read.fetch_add(1, Ordering::AcqRel);
                }
                entered
            }
            LockKind::All => {
                self.others.fetch_add(HAS_ALL, Ordering::SeqCst);
                let entered = self.enter(kind, 0);
                if !entered {
                    self.leave(kind);
                }
                entered
            }
        }
    }

    /// Takes the next ticket if its turn has come.
    fn take_next(self, turn: &AtomicU64) -> bool {
        let next = turn.load(Ordering::Acquire);
        let taken = self
            .tickets
            .compare_exchange(next, next + 1, Ordering::AcqRel, Ordering::Relaxed);
        taken.is_ok()
    }

    /// A writer whose turn it is enters, if nobody has or wants the lock with all others.
    fn keep_out(self) -> bool {
        let alone = |others: u64| (others < HAS_ALL).then_some(others | WRITES);
        let entered = self.others.fetch_update(Ordering::SeqCst, Ordering::Relaxed, alone);
        entered.is_ok()
    }

    /// Leaves.
    pub fn leave(self, kind: LockKind) {
        match kind {
            LockKind::All => {
                self.others.fetch_sub(HAS_ALL, Ordering::SeqCst);
                return;
            }
            LockKind::Exclusive => {
                self.others.fetch_and(!WRITES, Ordering::SeqCst);
                self.read.fetch_add(1, Ordering::AcqRel);
            }
            LockKind::Shared => {}
        }
        self.write.fetch_add(1, Ordering::AcqRel);
    }
}

/// Locks of blocks.
#[derive(Clone, Copy)]
pub enum BlockLocks<'a> {
    /// A line for each, for all processes of a node.
    Lines(&'a [AtomicU64]),
    /// A bit for each, for threads of one process.
    Bits(&'a AtomicU64),
}

impl BlockLocks<'_> {
    /// Takes one for process `me`, if nobody has it.
    pub fn enter(self, lock: u32, me: u32) -> bool {
        match self {
            Self::Lines(lines) => lines[LINE * lock as usize]
                .compare_exchange_weak(0, u64::from(me) + 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok(),
            Self::Bits(word) => word.fetch_or(1 << lock, Ordering::Acquire) & 1 << lock == 0,
        }
    }

    /// Takes one from a process that is lost and had it.
    pub fn take_over(self, lock: u32, me: u32, is_lost: &dyn Fn(u32) -> bool) -> bool {
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
    pub fn recover(self, is_lost: &dyn Fn(u32) -> bool) {
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
    pub fn leave(self, mut which: u64) {
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

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    /// Of 72 members.
    fn fresh() -> Arc<Vec<AtomicU64>> {
        Arc::new(words(4 + 9))
    }

    fn lock_in(words: &[AtomicU64]) -> ProcessLock<'_> {
        ProcessLock::new([&words[0], &words[1], &words[2]], &words[3], &words[4..])
    }

    #[test]
    fn a_writer_keeps_all_out_and_readers_come_together() {
        let words = fresh();
        let lock = lock_in(&words);
        let writer = lock.take_ticket(LockKind::Exclusive);
        assert!(lock.enter(LockKind::Exclusive, writer));
        let readers = [LockKind::Shared; 2].map(|kind| lock.take_ticket(kind));
        let next = lock.take_ticket(LockKind::Exclusive);
        let late = lock.take_ticket(LockKind::Shared);
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
    fn whoever_locks_all_waits_for_the_writer_that_is_in_and_for_no_other() {
        let words = fresh();
        let lock = lock_in(&words);
        let reader = lock.take_ticket(LockKind::Shared);
        assert!(lock.enter(LockKind::Shared, reader));
        let writers = [LockKind::Exclusive; 2].map(|kind| lock.take_ticket(kind));
        assert!(!lock.enter(LockKind::Exclusive, writers[0]), "a reader is there");
        let all = lock.take_ticket(LockKind::All);
        assert!(lock.enter(LockKind::All, all), "no writer is in");
        lock.leave(LockKind::Shared);
        assert!(
            !lock.enter(LockKind::Exclusive, writers[0]),
            "one that locks all is there"
        );
        lock.leave(LockKind::All);
        assert!(lock.enter(LockKind::Exclusive, writers[0]));
        let all = lock.take_ticket(LockKind::All);
        assert!(!lock.enter(LockKind::All, all), "a writer is in");
        lock.leave(LockKind::Exclusive);
        assert!(
            !lock.enter(LockKind::Exclusive, writers[1]),
            "who locks all has waited for one"
        );
        assert!(lock.enter(LockKind::All, all));
        lock.leave(LockKind::All);
        assert!(lock.enter(LockKind::Exclusive, writers[1]));
        lock.leave(LockKind::Exclusive);
        assert!(!lock.is_used(0, &|_| false));
    }

    #[test]
    fn a_lock_excludes_among_threads() {
        let words = fresh();
        let counted = Arc::new(AtomicU64::new(0));
        let threads: Vec<_> = (0..4_u64)
            .map(|thread| {
                let (words, counted) = (words.clone(), counted.clone());
                std::thread::spawn(move || {
                    for round in 0..2000 {
                        let lock = lock_in(&words);
                        let kind = match (thread + round) % 6 {
                            0 => LockKind::Shared,
                            3 => LockKind::All,
                            _ => LockKind::Exclusive,
                        };
                        let ticket = lock.take_ticket(kind);
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
        for (old, first, second, third) in all_of([LockKind::Shared, LockKind::Exclusive, LockKind::All]) {
            let words = fresh();
            let lock = lock_in(&words);
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
    fn all_of(kinds: [LockKind; 3]) -> impl Iterator<Item = (LockKind, LockKind, LockKind, LockKind)> {
        let kind = move |choice: usize, at: u32| kinds[choice / 3_usize.pow(at) % 3];
        (0..81).map(move |choice| (kind(choice, 0), kind(choice, 1), kind(choice, 2), kind(choice, 3)))
    }

    #[test]
    fn a_ticket_of_which_nobody_told_is_passed_when_those_who_wait_begin_anew() {
        let words = fresh();
        let lock = lock_in(&words);
        lock.take_ticket(LockKind::Exclusive);
        let ticket = lock.take_ticket(LockKind::Exclusive);
        lock.recover(&|member| member == 1);
        assert!(!lock.enter(LockKind::Exclusive, ticket) && !lock.is_wanted_near(&|member| member == 1));
        lock.take_ticket(LockKind::All);
        lock.restart(Some(ticket), 0);
        assert!(lock.enter(LockKind::Exclusive, ticket));
        lock.leave(LockKind::Exclusive);
        let next = lock.join(0, LockKind::Shared);
        assert!(lock.let_in(0, LockKind::Shared, next));
    }

    #[test]
    fn a_lost_reader_behind_many_others_is_found() {
        let words = fresh();
        let lock = lock_in(&words);
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
    fn a_block_is_changed_by_one_at_a_time() {
        let (lines, bits) = (words(LINE * 64), AtomicU64::new(0));
        for locks in [BlockLocks::Lines(&lines), BlockLocks::Bits(&bits)] {
            assert!(!(0..100).all(|_| !locks.enter(7, 1)), "free");
            assert!((0..100).all(|_| !locks.enter(7, 2)), "taken");
            assert!((0..100).any(|_| locks.enter(8, 2)), "another one");
            locks.leave(1 << 7);
            assert!((0..100).any(|_| locks.enter(7, 2)), "free again");
            assert!((0..100).all(|_| !locks.enter(8, 1)), "taken");
        }
        let locks = BlockLocks::Lines(&lines);
        assert!(!locks.take_over(8, 1, &|rank| rank != 2) && locks.take_over(8, 1, &|rank| rank == 2));
    }
}
