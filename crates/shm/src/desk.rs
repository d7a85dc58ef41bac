// SPDX-License-Identifier: Apache-2.0
//! The counters of rounds, and who sleeps at a place.
//!
//! Rounds take turns in memory for a few of them: round n is number n mod R there, in *turn* n / R. Two kinds of words, which only grow, say how
//! far members are:
//!
//! ```text
//!  arrived, per round in memory    members x (turn + 1)   all have arrived in this turn    each adds one, or one sets it for all
//!  left, per member                n                      it has left all rounds before n  it stores it
//! ```
//! A round n may be given in when all members have left round n - R and those before it. So *arrived* cannot run ahead of what a member waits for,
//! and who gives looks at the words of all members once in up to R rounds ([`Turns::is_free`]): a word that others write moves
//! between cores, and that is what short operations cost.
//!
//! **Sleeping.** A member that wants to sleep puts its slot into [`Sleepers`] (S1), fence (S2), and looks at the words once more
//! (S3). Whoever changes a word (C1), fence (C2), looks for sleepers (C3) and wakes them. If C3 does not see S1, then C2 comes before S2
//! in the order of sequentially consistent fences, and S3 sees C1.

use crate::bell::WORDS;
use crate::sync::{AtomicU64, Ordering, after_update};

/// How many members have arrived in the rounds of one place in memory, all turns together.
#[repr(transparent)]
pub(crate) struct Arrived(AtomicU64);

impl Arrived {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// For a new group; nobody uses it.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// One of several members that arrive.
    #[inline]
    pub(crate) fn one(&self) {
        self.0.fetch_add(1, Ordering::AcqRel);
        after_update();
    }

    /// The only member that gives anything: all arrive with it.
    #[inline]
    pub(crate) fn all(&self, turn: u64, members: u64) {
        self.0.swap((turn + 1).wrapping_mul(members), Ordering::AcqRel);
        after_update();
    }

    #[inline]
    pub(crate) fn is_complete(&self, turn: u64, members: u64) -> bool {
        self.0.load(Ordering::Acquire) >= (turn + 1).wrapping_mul(members)
    }
}

/// Up to which round a member has left them. A pair of cache lines of its own.
#[repr(C, align(128))]
pub(crate) struct Left([AtomicU64; 2]);

impl Left {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// For a new group; nobody uses it.
    pub(crate) fn reset(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    #[inline]
    fn store(&self, lane: usize, round: u64) {
        self.0[lane].swap(round, Ordering::AcqRel);
        after_update();
    }

    #[inline]
    fn load(&self, lane: usize) -> u64 {
        self.0[lane].load(Ordering::Acquire)
    }
}

/// What a member knows of the rounds of a lane.
#[derive(Clone, Copy, Default)]
pub(crate) struct Turns {
    /// It has left all rounds before this one.
    left: u64,
    /// Bit i: and round `left + i`. At most 64 rounds are under way.
    beyond: u64,
    /// All members had left all rounds before this one when they were last asked.
    all_left: u64,
}

impl Turns {
    /// Whether a member may give in a round, where `rounds` take turns.
    #[inline]
    pub(crate) fn is_free<'a>(
        &mut self,
        round: u64,
        rounds: u64,
        lane: usize,
        members: impl FnOnce() -> &'a [Left],
    ) -> bool {
        if round < self.all_left + rounds {
            return true;
        }
        self.all_left = members().iter().map(|left| left.load(lane)).min().unwrap_or(0);
        round < self.all_left + rounds
    }

    /// The member leaves a round. `mine`: its own word.
    #[inline]
    pub(crate) fn leave(&mut self, round: u64, lane: usize, mine: &Left) {
        self.beyond |= 1 << (round.wrapping_sub(self.left) % 64);
        let done = self.beyond.trailing_ones();
        if done > 0 {
            self.left += u64::from(done);
            self.beyond = self.beyond.checked_shr(done).unwrap_or(0);
            mine.store(lane, self.left);
        }
    }
}

/// Slots of processes that sleep, or are about to, while something at a place concerns them.
#[repr(C, align(128))]
pub(crate) struct Sleepers([AtomicU64; WORDS]);

impl Sleepers {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }

    /// For a new group.
    pub(crate) fn reset(&self) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// S1 and S2.
    pub(crate) fn add(&self, slot: usize) {
        self.0[slot / 64].fetch_or(1 << (slot % 64), Ordering::AcqRel);
        after_update();
    }

    /// Awake again.
    pub(crate) fn remove(&self, slot: usize) {
        self.0[slot / 64].fetch_and(!(1 << (slot % 64)), Ordering::Relaxed);
    }

    /// C3, after a change of a counter: those among the first `processes` slots who sleep.
    #[inline]
    pub(crate) fn each(&self, processes: usize, mut sleeps: impl FnMut(usize)) {
        for (number, word) in self.0[..processes.div_ceil(64)].iter().enumerate() {
            let mut bits = word.load(Ordering::Relaxed);
            while bits != 0 {
                sleeps(number * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(loom))]
    #[test]
    fn turns_follow_each_other() {
        let arrived = Arrived::new();
        for turn in 0..6 {
            assert!(!arrived.is_complete(turn, 2));
            if turn % 2 == 0 {
                arrived.one();
                assert!(!arrived.is_complete(turn, 2));
                arrived.one();
            } else {
                arrived.all(turn, 2);
            }
            assert!(arrived.is_complete(turn, 2));
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn rounds_are_left_in_any_order() {
        let words = [Left::new(), Left::new()];
        let mut turns = [Turns::default(); 2];
        let free = |turns: &mut [Turns; 2], round| turns[0].is_free(round, 4, 1, || &words);
        assert!(free(&mut turns, 3) && !free(&mut turns, 4));
        for round in [1, 2] {
            turns[0].leave(round, 1, &words[0]);
        }
        turns[1].leave(0, 1, &words[1]);
        assert!(!free(&mut turns, 4));
        turns[0].leave(0, 1, &words[0]);
        assert!(free(&mut turns, 4) && !free(&mut turns, 5));
        for round in 1..70 {
            turns[1].leave(round, 1, &words[1]);
        }
        assert!(free(&mut turns, 6) && !free(&mut turns, 7));
    }

    #[cfg(not(loom))]
    #[test]
    fn sleepers_are_found() {
        let sleepers = Sleepers::new();
        sleepers.add(3);
        sleepers.add(70);
        let found = |processes| {
            let mut found = Vec::new();
            sleepers.each(processes, |slot| found.push(slot));
            found
        };
        assert_eq!((found(64), found(128)), (vec![3], vec![3, 70]));
        sleepers.remove(3);
        assert_eq!(found(128), [70]);
    }

    #[cfg(loom)]
    mod models {
        use loom::cell::UnsafeCell;
        use loom::thread;
        use std::sync::Arc;

        use super::*;

        /// A place with two members, one cell each, one round at a time, and the sleepers.
        struct Hall {
            arrived: Arrived,
            left: [Left; 2],
            sleepers: Sleepers,
            cells: [UnsafeCell<u64>; 2],
        }

        fn hall() -> Arc<Hall> {
            Arc::new(Hall {
                arrived: Arrived::new(),
                left: [Left::new(), Left::new()],
                sleepers: Sleepers::new(),
                cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
            })
        }

        #[expect(unsafe_code, reason = "the model checker watches over these accesses")]
        fn write(hall: &Hall, cell: usize, value: u64) {
            // SAFETY: the checker reports accesses at the same time.
            hall.cells[cell].with_mut(|at| unsafe { *at = value });
        }

        #[expect(unsafe_code, reason = "the model checker watches over these accesses")]
        fn read(hall: &Hall, cell: usize) -> u64 {
            // SAFETY: the checker reports accesses at the same time.
            hall.cells[cell].with(|at| unsafe { *at })
        }

        fn rounds(hall: &Hall, me: usize) {
            let mut turns = Turns::default();
            for round in 0..2 {
                while !turns.is_free(round, 1, 0, || &hall.left) {
                    thread::yield_now();
                }
                write(hall, me, 10 * (round + 1) + me as u64);
                hall.arrived.one();
                while !hall.arrived.is_complete(round, 2) {
                    thread::yield_now();
                }
                assert_eq!(read(hall, 1 - me), 10 * (round + 1) + 1 - me as u64);
                turns.leave(round, 0, &hall.left[me]);
            }
        }

        #[test]
        fn cells_are_read_between_arrival_and_departure() {
            let mut model = loom::model::Builder::new();
            model.preemption_bound = Some(3);
            model.check(|| {
                let hall = hall();
                let other = thread::spawn({
                    let hall = Arc::clone(&hall);
                    move || rounds(&hall, 1)
                });
                rounds(&hall, 0);
                other.join().unwrap();
            });
        }

        #[test]
        fn what_one_gives_to_all_is_there() {
            loom::model(|| {
                let hall = hall();
                let giver = thread::spawn({
                    let hall = Arc::clone(&hall);
                    move || {
                        let mut turns = Turns::default();
                        write(&hall, 0, 7);
                        hall.arrived.all(0, 2);
                        turns.leave(0, 0, &hall.left[0]);
                        while !turns.is_free(1, 1, 0, || &hall.left) {
                            thread::yield_now();
                        }
                        write(&hall, 0, 8);
                    }
                });
                while !hall.arrived.is_complete(0, 2) {
                    thread::yield_now();
                }
                assert_eq!(read(&hall, 0), 7);
                Turns::default().leave(0, 0, &hall.left[1]);
                giver.join().unwrap();
            });
        }

        /// `change` makes what the sleeper waits for true.
        fn sleeper(change: fn(&Hall), waited_for: fn(&Hall) -> bool) {
            let hall = hall();
            let other = thread::spawn({
                let hall = Arc::clone(&hall);
                move || {
                    change(&hall);
                    let mut woken = false;
                    hall.sleepers.each(2, |slot| woken |= slot == 1);
                    woken
                }
            });
            hall.sleepers.add(1);
            let sleeps = !waited_for(&hall);
            let woken = other.join().unwrap();
            assert!(!sleeps || woken, "a member sleeps and nobody wakes it");
        }

        #[test]
        fn no_wake_up_is_lost() {
            loom::model(|| sleeper(|hall| hall.arrived.one(), |hall| hall.arrived.is_complete(0, 1)));
            loom::model(|| sleeper(|hall| hall.arrived.all(0, 2), |hall| hall.arrived.is_complete(0, 2)));
            let leave = |hall: &Hall| Turns::default().leave(0, 0, &hall.left[0]);
            loom::model(move || sleeper(leave, |hall| Turns::default().is_free(1, 1, 0, || &hall.left[..1])));
        }
    }
}
