// SPDX-License-Identifier: Apache-2.0
//! The counters of rounds, and who sleeps at a place.
//!
//! A [`Desk`] serves one round after the other; *use* u is the u-th round there, counted from 0. Its counters only grow, and what
//! they say of a use follows from them, the number of the use and that of the members:
//!
//! ```text
//!  arrived    members x (u + 1)   all have arrived in use u     each adds one, or one adds all, with release
//!  left       members x u         use u is free                 each adds one, with release
//! ```
//! A counter cannot run ahead of what a member waits for: nobody arrives in use u + 1 before all have left use u.
//!
//! **Sleeping.** A member that wants to sleep puts its slot into [`Sleepers`] (S1), fence (S2), and looks at the counters once more
//! (S3). Whoever changes a counter (C1), fence (C2), looks for sleepers (C3) and wakes them. If C3 does not see S1, then C2 comes before S2
//! in the order of sequentially consistent fences, and S3 sees C1.

use crate::bell::WORDS;
use crate::sync::{AtomicU64, Ordering, after_update};

/// A counter with a pair of cache lines of its own.
#[repr(C, align(128))]
struct Counter(AtomicU64);

/// The counters of one round after the other.
#[repr(C)]
pub(crate) struct Desk {
    arrived: Counter,
    left: Counter,
}

impl Desk {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        let counter = || Counter(AtomicU64::new(0));
        Self {
            arrived: counter(),
            left: counter(),
        }
    }

    /// For a new group; nobody uses it.
    pub(crate) fn reset(&self) {
        for counter in [&self.arrived, &self.left] {
            counter.0.store(0, Ordering::Relaxed);
        }
    }

    /// Have all members left the use before?
    #[inline]
    pub(crate) fn is_free(&self, turn: u64, members: u64) -> bool {
        self.left.0.load(Ordering::Acquire) >= turn.wrapping_mul(members)
    }

    /// One member arrives, or one for all.
    #[inline]
    pub(crate) fn arrive(&self, members: u64) {
        self.arrived.0.fetch_add(members, Ordering::AcqRel);
        after_update();
    }

    #[inline]
    pub(crate) fn all_arrived(&self, turn: u64, members: u64) -> bool {
        self.arrived.0.load(Ordering::Acquire) >= (turn + 1).wrapping_mul(members)
    }

    #[inline]
    pub(crate) fn leave(&self) {
        self.left.0.fetch_add(1, Ordering::AcqRel);
        after_update();
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
    fn uses_follow_each_other() {
        let desk = Desk::new();
        for turn in 0..3 {
            assert!(desk.is_free(turn, 2) && !desk.all_arrived(turn, 2));
            desk.arrive(1);
            assert!(!desk.all_arrived(turn, 2));
            desk.arrive(1);
            assert!(desk.all_arrived(turn, 2));
            desk.leave();
            assert!(!desk.is_free(turn + 1, 2));
            desk.leave();
        }
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

        /// A place with two members, one cell each, one desk, and the sleepers.
        struct Hall {
            desk: Desk,
            sleepers: Sleepers,
            cells: [UnsafeCell<u64>; 2],
        }

        fn hall() -> Arc<Hall> {
            Arc::new(Hall {
                desk: Desk::new(),
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
            for turn in 0..2 {
                while !hall.desk.is_free(turn, 2) {
                    thread::yield_now();
                }
                write(hall, me, 10 * (turn + 1) + me as u64);
                hall.desk.arrive(1);
                while !hall.desk.all_arrived(turn, 2) {
                    thread::yield_now();
                }
                assert_eq!(read(hall, 1 - me), 10 * (turn + 1) + 1 - me as u64);
                hall.desk.leave();
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
                        write(&hall, 0, 7);
                        hall.desk.arrive(2);
                        hall.desk.leave();
                        while !hall.desk.is_free(1, 2) {
                            thread::yield_now();
                        }
                        write(&hall, 0, 8);
                    }
                });
                while !hall.desk.all_arrived(0, 2) {
                    thread::yield_now();
                }
                assert_eq!(read(&hall, 0), 7);
                hall.desk.leave();
                giver.join().unwrap();
            });
        }

        /// `change` makes what the sleeper waits for true.
        fn sleeper(change: fn(&Desk), waited_for: fn(&Desk) -> bool) {
            let hall = hall();
            let other = thread::spawn({
                let hall = Arc::clone(&hall);
                move || {
                    change(&hall.desk);
                    let mut woken = false;
                    hall.sleepers.each(2, |slot| woken |= slot == 1);
                    woken
                }
            });
            hall.sleepers.add(1);
            let sleeps = !waited_for(&hall.desk);
            let woken = other.join().unwrap();
            assert!(!sleeps || woken, "a member sleeps and nobody wakes it");
        }

        #[test]
        fn no_wake_up_is_lost() {
            loom::model(|| sleeper(|desk| desk.arrive(1), |desk| desk.all_arrived(0, 1)));
            loom::model(|| sleeper(Desk::leave, |desk| desk.is_free(1, 1)));
        }
    }
}
