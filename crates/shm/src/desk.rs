// SPDX-License-Identifier: Apache-2.0
//! The words of rounds, and who sleeps at a place.
//!
//! Rounds take turns in memory for a few of them: round n is number n mod R there. Two kinds of words say how far
//! members are:
//!
//! ```text
//!  arrived, per cell       its sign    what is given in this round is there         who gives stores it
//!  left, per member        n           it has left all rounds before n              it stores it, now and then
//! ```
//! The *sign* of a round is its stamp and its number. Every word has one writer at a time, and that of a short cell or
//! of a word lies beside its data: what a member waits for comes to its core in one transfer of a cache line. A round n
//! may be given in when all members have left round n - R and those before it. So *arrived* cannot run ahead of what a
//! member waits for, but where members call different operations; then nobody takes it for what it waits for. Who
//! gives looks at the words of all members once in up to R rounds ([`Turns::is_free`]). A member says only every few
//! rounds how far it has left them: who waits for it then waits for a member that is still to come to rounds that have
//! been given in.
//!
//! **Sleeping.** A member that wants to sleep puts its slot into [`Sleepers`] (S1), fence (S2), and looks at the words
//! once more (S3). Whoever changes a word (C1), fence (C2), looks for sleepers (C3) and wakes them. If C3 does not see
//! S1, then C2 comes before S2 in the order of sequentially consistent fences, and S3 sees C1.
//!
//! **Writing to what another member offers.** Whoever writes says so (W1), fence (W2), and looks whether the owner has
//! withdrawn its memory (W3). The owner says that it has (O1), fence (O2), and waits until nobody writes (O3). If W3
//! does not see O1, then O3 sees W1.

use crate::bell::WORDS;
use crate::sync::{AtomicU64, Ordering, after_update};
use isthmus_transport::slabs::{CellSize, Round};

/// Middle rounds under way: at most 64 (`Turns`). Where several members share a processor, who gives runs ahead until
/// none is free, and then all of them have to run. With 8, 8 members on two processors took 4.3 us for a broadcast of
/// 4096 bytes, with 32 2.4 us.
pub(crate) const MIDDLE_ROUNDS: usize = 32;
/// Long rounds under way.
pub(crate) const LONG_ROUNDS: usize = 8;

/// Of which round there is something in a cell: its sign, which is not 0. Of a cell of a word, which has no room for
/// more, also how many bytes there are: the highest bits.
#[repr(transparent)]
pub(crate) struct Arrived(AtomicU64);

const BYTES_SHIFT: u32 = 60;
const SIGN: u64 = (1 << BYTES_SHIFT) - 1;
/// Bits of a sign that are the number of the round.
const NUMBER_BITS: u32 = BYTES_SHIFT - u32::BITS;

/// The sign of a round: its number tells it from those before it in the same memory, its stamp from those of members
/// that have called something else.
#[inline]
pub(crate) fn sign(round: Round) -> u64 {
    u64::from(round.stamp) << NUMBER_BITS | (round.number + 1) & ((1 << NUMBER_BITS) - 1)
}

impl Arrived {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// For a new group; nobody uses it.
    pub(crate) fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// What the cell has in this round is there. The last of several cells needs [`Arrived::last`].
    #[inline]
    pub(crate) fn one(&self, sign: u64) {
        self.0.store(sign, Ordering::Release);
    }

    /// The same, before a look for sleepers.
    #[inline]
    pub(crate) fn last(&self, sign: u64) {
        self.0.swap(sign, Ordering::AcqRel);
        after_update();
    }

    /// [`Arrived::one`] in a cell of a word, of which so many bytes are given, at most 8.
    #[inline]
    pub(crate) fn one_of(&self, sign: u64, bytes: usize) {
        self.0.store(sign | (bytes as u64) << BYTES_SHIFT, Ordering::Release);
    }

    /// The same, before a look for sleepers.
    #[inline]
    pub(crate) fn last_of(&self, sign: u64, bytes: usize) {
        self.0.swap(sign | (bytes as u64) << BYTES_SHIFT, Ordering::AcqRel);
        after_update();
    }

    /// Before it is there: how many bytes of a word will be.
    pub(crate) fn say(&self, bytes: usize) {
        let sign = self.0.load(Ordering::Relaxed) & SIGN;
        self.0.store(sign | (bytes as u64) << BYTES_SHIFT, Ordering::Relaxed);
    }

    /// How many bytes of a word there are, or will be.
    #[inline]
    pub(crate) fn said(&self) -> usize {
        (self.0.load(Ordering::Relaxed) >> BYTES_SHIFT) as usize
    }

    #[inline]
    pub(crate) fn is_there(&self, sign: u64) -> bool {
        self.0.load(Ordering::Acquire) & SIGN == sign
    }
}

/// Of a member: up to which round it has left them, whether it has given up, and which of its middle and long cells are
/// there. Cache lines of its own.
#[repr(C, align(128))]
pub(crate) struct Left {
    sizes: [AtomicU64; CellSize::COUNT],
    gave_up: AtomicU64,
    /// Nobody may write any more to what it has offered.
    withdrawn: AtomicU64,
    /// It writes to what another member has offered: its slot, from 1.
    writer: AtomicU64,
    _line: [u64; 1],
    pub(crate) long: [Arrived; LONG_ROUNDS],
    pub(crate) middle: [Arrived; MIDDLE_ROUNDS],
}

impl Left {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Self {
        Self {
            sizes: std::array::from_fn(|_| AtomicU64::new(0)),
            gave_up: AtomicU64::new(0),
            withdrawn: AtomicU64::new(0),
            writer: AtomicU64::new(0),
            _line: [0; 1],
            long: std::array::from_fn(|_| Arrived::new()),
            middle: std::array::from_fn(|_| Arrived::new()),
        }
    }

    /// For a new group; nobody uses it.
    /// Cells of sizes that were not used are as they were.
    pub(crate) fn reset(&self, middle: bool, long: bool) {
        self.sizes.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        self.gave_up.store(0, Ordering::Relaxed);
        self.withdrawn.store(0, Ordering::Relaxed);
        self.writer.store(0, Ordering::Relaxed);
        if middle {
            self.middle.iter().for_each(Arrived::reset);
        }
        if long {
            self.long.iter().for_each(Arrived::reset);
        }
    }

    /// The member takes part no longer; `no_memory`: because there was none for what all share.
    pub(crate) fn give_up(&self, no_memory: bool) {
        self.gave_up.swap(1 + u64::from(no_memory), Ordering::AcqRel);
        after_update();
    }

    /// Whether it takes part no longer, and if so, whether for want of memory.
    pub(crate) fn has_given_up(&self) -> Option<bool> {
        match self.gave_up.load(Ordering::Acquire) {
            0 => None,
            why => Some(why > 1),
        }
    }

    /// W1 to W3: this member, which has this slot, writes to what `owner` has offered until [`Left::has_written`].
    /// False: it must not, because that has withdrawn it.
    pub(crate) fn may_write(&self, slot: usize, owner: &Self) -> bool {
        self.writer.swap(slot as u64 + 1, Ordering::AcqRel);
        after_update();
        let may = owner.withdrawn.load(Ordering::Acquire) == 0;
        if !may {
            self.has_written();
        }
        may
    }

    #[cfg(test)]
    pub(crate) fn claim_to_write(&self, slot: usize) {
        self.writer.store(slot as u64 + 1, Ordering::Relaxed);
    }

    pub(crate) fn has_written(&self) {
        self.writer.store(0, Ordering::Release);
    }

    /// O1 and O2.
    pub(crate) fn withdraw(&self) {
        self.withdrawn.swap(1, Ordering::AcqRel);
        after_update();
    }

    /// O3: the slot of the member, by its own word, if it writes.
    pub(crate) fn writer(&self) -> Option<usize> {
        let slot = self.writer.load(Ordering::Acquire).checked_sub(1);
        slot.map(|slot| usize::try_from(slot).unwrap_or(usize::MAX))
    }

    #[inline]
    fn store(&self, size: usize, round: u64) {
        self.sizes[size].swap(round, Ordering::AcqRel);
        after_update();
    }

    /// Whether the member has said that it has left a round.
    pub(crate) fn has_left(&self, size: usize, round: u64) -> bool {
        self.load(size) > round
    }

    #[inline]
    fn load(&self, size: usize) -> u64 {
        self.sizes[size].load(Ordering::Acquire)
    }
}

/// What a member knows of the rounds of a size.
#[derive(Clone, Copy, Default)]
pub(crate) struct Turns {
    /// It has left all rounds before this one, and has said so of those before that one.
    left: u64,
    said: u64,
    /// Bit i: and round `left + i`. At most 64 rounds are under way.
    beyond: u64,
    /// All members had left all rounds before this one when they were last asked.
    all_left: u64,
    /// It has passed a round since it last said how far it is, or one that it could not speak of yet.
    passes: bool,
}

impl Turns {
    /// Whether a member may give in a round, where `rounds` take turns.
    #[inline(always)]
    pub(crate) fn is_free<'a>(
        &mut self,
        round: u64,
        rounds: u64,
        size: usize,
        members: impl FnOnce() -> &'a [Left],
    ) -> bool {
        if round < self.all_left + rounds {
            return true;
        }
        self.all_left = members().iter().map(|left| left.load(size)).min().unwrap_or(0);
        round < self.all_left + rounds
    }

    /// Whether a round may be left already: not long before those in front of it.
    pub(crate) fn may_leave(&self, round: u64) -> bool {
        round - self.left < 64
    }

    /// The member leaves a round, where `rounds` take turns. `mine`: its own words, which are only needed now and then.
    /// True if it says so, and sleepers are to be looked for.
    #[inline(always)]
    pub(crate) fn leave<'a>(&mut self, round: u64, rounds: u64, size: usize, mine: impl FnOnce() -> &'a Left) -> bool {
        if round == self.left && self.beyond == 0 {
            // As nearly always.
            self.left += 1;
        } else {
            self.beyond |= 1 << (round.wrapping_sub(self.left) % 64);
            let done = self.beyond.trailing_ones();
            self.left += u64::from(done);
            self.beyond = self.beyond.checked_shr(done).unwrap_or(0);
        }
        let is_due = self.left >= self.said + (rounds / 4).max(1) || self.passes && self.left > self.said;
        if !is_due {
            return false;
        }
        // What it has passed may be among those beyond.
        self.passes &= self.beyond != 0;
        self.said = self.left;
        mine().store(size, self.left);
        true
    }

    /// The same of a round in which others may wait for what this member does not give: it says so as soon as it has
    /// left all rounds before.
    #[inline]
    pub(crate) fn pass<'a>(&mut self, round: u64, rounds: u64, size: usize, mine: impl FnOnce() -> &'a Left) -> bool {
        self.passes = true;
        self.leave(round, rounds, size, mine)
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

    /// C3, after a change of a counter: whether any of the first `processes` slots sleeps.
    #[inline]
    pub(crate) fn are_there(&self, processes: usize) -> bool {
        let words = &self.0[..processes.div_ceil(64)];
        words.iter().any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// Those of them who do.
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
    fn what_is_given_in_a_round_is_there_in_no_other() {
        let arrived = Arrived::new();
        let sign_of = |number, stamp| {
            let size = CellSize::Short;
            sign(Round { size, number, stamp })
        };
        for number in 0..6 {
            assert!(!arrived.is_there(sign_of(number, 0)));
            if number % 2 == 0 {
                arrived.one(sign_of(number, 0));
            } else {
                arrived.last(sign_of(number, 0));
            }
            let others = [(number + 1, 0), (number, 1), (number, u32::MAX)];
            assert!(arrived.is_there(sign_of(number, 0)));
            assert!(
                others
                    .iter()
                    .all(|&(number, stamp)| !arrived.is_there(sign_of(number, stamp)))
            );
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_word_says_how_long_it_is() {
        let arrived = Arrived::new();
        for (sign, bytes) in [(1, 8), (2, 0), (SIGN, 3)] {
            arrived.say(bytes);
            assert!(!arrived.is_there(sign) && arrived.said() == bytes);
            arrived.last_of(sign, arrived.said());
            assert!(arrived.is_there(sign) && !arrived.is_there(sign - 1) && arrived.said() == bytes);
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn rounds_are_left_in_any_order() {
        let words = [Left::new(), Left::new()];
        let mut turns = [Turns::default(); 2];
        let free = |turns: &mut [Turns; 2], round| turns[0].is_free(round, 4, 1, || &words);
        assert!(free(&mut turns, 3) && !free(&mut turns, 4));
        assert!(turns[0].may_leave(63) && !turns[0].may_leave(64));
        for round in [1, 2] {
            turns[0].leave(round, 4, 1, || &words[0]);
        }
        turns[1].leave(0, 4, 1, || &words[1]);
        assert!(!free(&mut turns, 4));
        turns[0].leave(0, 4, 1, || &words[0]);
        assert!(turns[0].may_leave(66) && !turns[0].may_leave(67));
        assert!(free(&mut turns, 4) && !free(&mut turns, 5));
        for round in 1..70 {
            turns[1].leave(round, 4, 1, || &words[1]);
        }
        assert!(free(&mut turns, 6) && !free(&mut turns, 7));
    }

    #[cfg(not(loom))]
    #[test]
    fn a_member_says_now_and_then_that_it_has_left() {
        let word = Left::new();
        let mut turns = Turns::default();
        let said: Vec<u64> = (0..9).filter(|&round| turns.leave(round, 16, 0, || &word)).collect();
        assert_eq!(said, [3, 7]);
        assert_eq!(word.load(0), 8);
    }

    #[cfg(not(loom))]
    #[test]
    fn a_member_that_passes_says_so_as_soon_as_it_can() {
        let word = Left::new();
        let mut turns = Turns::default();
        assert!(turns.pass(0, 64, 0, || &word) && word.has_left(0, 0) && !word.has_left(0, 1));
        assert!(!turns.pass(2, 64, 0, || &word), "round 1 goes on");
        assert!(turns.leave(1, 64, 0, || &word) && word.has_left(0, 2));
        assert!(
            !turns.leave(3, 64, 0, || &word) && !word.has_left(0, 3),
            "as usual again"
        );
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
            arrived: [Arrived; 2],
            left: [Left; 2],
            sleepers: Sleepers,
            cells: [UnsafeCell<u64>; 2],
        }

        fn hall() -> Arc<Hall> {
            Arc::new(Hall {
                arrived: [Arrived::new(), Arrived::new()],
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
                hall.arrived[me].last(round + 1);
                while !hall.arrived[1 - me].is_there(round + 1) {
                    thread::yield_now();
                }
                assert_eq!(read(hall, 1 - me), 10 * (round + 1) + 1 - me as u64);
                turns.leave(round, 1, 0, || &hall.left[me]);
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
                        hall.arrived[0].one(1);
                        turns.leave(0, 1, 0, || &hall.left[0]);
                        while !turns.is_free(1, 1, 0, || &hall.left) {
                            thread::yield_now();
                        }
                        write(&hall, 0, 8);
                    }
                });
                while !hall.arrived[0].is_there(1) {
                    thread::yield_now();
                }
                assert_eq!(read(&hall, 0), 7);
                Turns::default().leave(0, 1, 0, || &hall.left[1]);
                giver.join().unwrap();
            });
        }

        #[test]
        fn nobody_writes_to_what_was_withdrawn() {
            loom::model(|| {
                let hall = hall();
                let writer = thread::spawn({
                    let hall = Arc::clone(&hall);
                    move || {
                        if hall.left[1].may_write(1, &hall.left[0]) {
                            write(&hall, 0, 7);
                            hall.left[1].has_written();
                        }
                    }
                });
                hall.left[0].withdraw();
                while hall.left[1].writer().is_some() {
                    thread::yield_now();
                }
                // The owner's own again.
                write(&hall, 0, 8);
                writer.join().unwrap();
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
            loom::model(|| sleeper(|hall| hall.arrived[0].last(1), |hall| hall.arrived[0].is_there(1)));
            loom::model(|| sleeper(|hall| hall.arrived[0].last_of(1, 8), |hall| hall.arrived[0].is_there(1)));
            let leave = |hall: &Hall| _ = Turns::default().leave(0, 1, 0, || &hall.left[0]);
            loom::model(move || sleeper(leave, |hall| Turns::default().is_free(1, 1, 0, || &hall.left[..1])));
        }
    }
}
