// SPDX-License-Identifier: Apache-2.0
//! Two ways of doing the same with long data between processes that share memory, and which of them is quicker.
//!
//! [`Delivery`]: the receiver *pulls* the message out of the sender's memory (one copy, by the system, of which the
//! transport may let the sender do a part), or the message *streams* through a ring (two copies, side by side). Which
//! is quicker depends on what caches the two cores share, and changes when one of the processes moves: it is tried out.
//! Of messages of about one length the first [`BLOCK`] go one way, the next ones the other; the median of the times of
//! each way counts, the first ones of a row not at all (they find the caches as the other way left them). One that
//! takes twice as long as the way it is compared with ends the trial: cores that share no cache move a message through
//! a ring in four times the time, and more. The quicker way is kept until trials have cost (what they took longer) no
//! more than one part in [`AT_MOST`] of the time of all messages, for [`LEAST_PAUSE`] to [`LONGEST_PAUSE`] messages.
//! Either way is right for any message, so nothing but time depends on the choice, and only the receiver makes it. Of a
//! long block of a collective operation a *stream* is the way through cells; one member chooses, and tells the others.
//!
//! [`Store`]: long results come out of cells through the caches, or *past* them, which saves reading what they replace.
//! Where the last cache holds the results of all processes that saving is none, and memory is slower than the cache
//! (bcast of 1 MiB to 8 ranks on two cores with 32 MiB: 310 us past it, 165 through it); where it does not, past them
//! is two to three times as quick. What one process stores takes room and time of others, so one of them tries it out
//! for all, by the time of whole operations. (Each by the time of its own copies was tried: past the caches is quick
//! for whoever is alone with it.)

/// How a long message comes to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// In data frames.
    Stream,
    /// The receiver copies it out of the sender's memory.
    Pull,
}

/// How long results are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// Past the caches.
    Past,
    /// Through the caches, which keep them as far as there is room.
    Through,
}

/// Two ways of which one may be quicker.
pub trait Choice: Copy + Eq + std::fmt::Debug {
    /// What is done until the other one was clearly quicker.
    const USUAL: Self;
    /// The other one.
    const OTHER: Self;
}

impl Choice for Delivery {
    const USUAL: Self = Self::Pull;
    const OTHER: Self = Self::Stream;
}

impl Choice for Store {
    const USUAL: Self = Self::Past;
    const OTHER: Self = Self::Through;
}

fn other<W: Choice>(way: W) -> W {
    if way == W::USUAL { W::OTHER } else { W::USUAL }
}

/// What is to be done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn<W = Delivery> {
    /// The way it takes.
    pub way: W,
    /// Tell [`Ways::took`] how long it took.
    pub timed: bool,
}

/// Messages in a row that try one way.
pub const BLOCK: u32 = 8;
/// How many of them are timed.
const SAMPLES: usize = BLOCK as usize - 1;
/// How many of these do not count: caches are still as the other way left them. (16 ranks that store 1 MiB each through
/// a cache of 32 MiB: 600 us, 570, 560, and 440 in the end.)
const SETTLING: usize = 2;
/// Messages between a trial that changed the way and the next: one that was disturbed does not count for long.
pub const FIRST_PAUSE: u32 = 32;
/// The fewest after any other. Processors move: what was quicker may take four times as long from one message to the
/// next, and then it is not long until that is noticed.
pub const LEAST_PAUSE: u32 = 128;
/// What trials of the slower way take more than the quicker one would have, as a part of the time of all messages: one
/// in so many.
pub const AT_MOST: u64 = 256;
/// Most messages between two trials: the slower way has 8 of 4,096.
pub const LONGEST_PAUSE: u32 = 4096;
/// The other way replaces the usual one if it takes less than this share of its time, in percent: the rest is noise. (A
/// ring takes time of two cores, and room in their caches, which has other uses.)
const CLEARLY: u64 = 90;
/// Messages up to this many bytes, and up to 2, 4, 8 … times as many, are tried out apart.
const SHORTEST: u64 = 16 << 10;
/// The last class has no end.
const CLASSES: usize = 10;

/// Which way is quicker to one process from another one, by the length of messages.
#[derive(Clone, Debug)]
pub struct Ways<W = Delivery> {
    classes: [Trial<W>; CLASSES],
}

impl<W: Choice> Default for Ways<W> {
    fn default() -> Self {
        Self {
            classes: std::array::from_fn(|_| Trial::default()),
        }
    }
}

impl<W: Choice> Ways<W> {
    /// The way of the next message, of so many bytes.
    pub fn next(&mut self, bytes: u64) -> Turn<W> {
        self.classes[class(bytes)].next()
    }

    /// The way of a message of so many bytes that is no part of any trial.
    pub fn known(&self, bytes: u64) -> W {
        self.classes[class(bytes)].quicker
    }

    /// A message of so many bytes that was to be timed took so long.
    pub fn took(&mut self, way: W, bytes: u64, nanoseconds: u64) {
        // Lengths within a class differ by up to 2: times of a mebibyte are compared.
        let time = nanoseconds.saturating_mul(1 << 20) / bytes.max(1);
        self.classes[class(bytes)].took(way, time);
    }
}

fn class(bytes: u64) -> usize {
    let times = bytes.div_ceil(SHORTEST).max(1).next_power_of_two();
    (times.trailing_zeros() as usize).min(CLASSES - 1)
}

/// What is known for messages of about one length.
#[derive(Clone, Debug)]
struct Trial<W> {
    quicker: W,
    /// Messages until the next trial.
    rest: u32,
    /// Messages between the trials.
    pause: u32,
    /// Messages of the trial that have been given their way.
    tried: u32,
    /// Of the usual way and of the other one.
    times: [[u64; SAMPLES]; 2],
    known: [usize; 2],
}

fn index<W: Choice>(way: W) -> usize {
    usize::from(way != W::USUAL)
}

impl<W: Choice> Default for Trial<W> {
    fn default() -> Self {
        Self {
            quicker: W::USUAL,
            rest: 0,
            pause: FIRST_PAUSE / 2,
            tried: 0,
            times: [[0; SAMPLES]; 2],
            known: [0; 2],
        }
    }
}

impl<W: Choice> Trial<W> {
    fn next(&mut self) -> Turn<W> {
        if self.rest > 0 {
            self.rest -= 1;
            return Turn {
                way: self.quicker,
                timed: false,
            };
        }
        if self.tried == 0 {
            self.known = [0; 2];
        }
        let (row, place) = (self.tried / BLOCK, self.tried % BLOCK);
        self.tried += 1;
        if self.tried == 2 * BLOCK {
            // As if nothing changes: the last times are still to come, or never do.
            self.tried = 0;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.rest = self.pause;
        }
        Turn {
            way: if row == 0 { self.quicker } else { other(self.quicker) },
            timed: place > 0,
        }
    }

    fn took(&mut self, way: W, time: u64) {
        let known = &mut self.known[index(way)];
        if *known == SAMPLES {
            return;
        }
        self.times[index(way)][*known] = time;
        *known += 1;
        if self.known == [SAMPLES; 2] {
            return self.decide();
        }
        let first = self.quicker;
        if way == first || self.known[index(first)] < SAMPLES {
            return;
        }
        let usual = self.median(first);
        if time > usual.saturating_mul(2) && self.tried > BLOCK {
            let cost = (time - usual).saturating_mul(u64::from(self.tried - BLOCK));
            self.tried = 0;
            self.keep(usual, cost);
        }
    }

    fn decide(&mut self) {
        let old = self.quicker;
        let (now, new) = (self.median(old), self.median(other(old)));
        let enough = if old == W::USUAL { CLEARLY } else { 100 };
        if new < now.saturating_mul(enough) / 100 {
            self.quicker = other(old);
            self.pause = FIRST_PAUSE;
            self.rest = FIRST_PAUSE;
        } else {
            self.keep(now, new.saturating_sub(now).saturating_mul(u64::from(BLOCK)));
        }
    }

    /// The way stays the same, whose messages take so long, until what the trial of the other one has taken beyond that
    /// is a small part.
    fn keep(&mut self, usual: u64, cost: u64) {
        let messages = cost.saturating_mul(AT_MOST) / usual.max(1);
        self.pause = messages
            .try_into()
            .unwrap_or(u32::MAX)
            .clamp(LEAST_PAUSE, LONGEST_PAUSE);
        self.rest = self.pause;
    }

    fn median(&self, way: W) -> u64 {
        let mut times = self.times[index(way)];
        let counted = &mut times[SETTLING..];
        counted.sort_unstable();
        counted[counted.len() / 2]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 1 << 20;

    /// Sends so many messages whose ways take these times; how many streamed.
    fn send(ways: &mut Ways, messages: u32, stream: u64, pull: u64) -> u32 {
        let mut streamed = 0;
        for _ in 0..messages {
            let turn = ways.next(LENGTH);
            streamed += u32::from(turn.way == Delivery::Stream);
            if turn.timed {
                ways.took(
                    turn.way,
                    LENGTH,
                    if turn.way == Delivery::Stream { stream } else { pull },
                );
            }
        }
        streamed
    }

    #[test]
    fn the_quicker_way_is_taken() {
        for (stream, pull) in [(76_000, 150_000), (240_000, 160_000)] {
            let mut ways = Ways::<Delivery>::default();
            assert_eq!(send(&mut ways, 2 * BLOCK, stream, pull), BLOCK);
            let expected = if stream < pull { FIRST_PAUSE } else { 0 };
            assert_eq!(send(&mut ways, FIRST_PAUSE, stream, pull), expected);
        }
    }

    #[test]
    fn trials_become_seldom_and_cost_little() {
        let mut ways = Ways::<Delivery>::default();
        let messages = 1 << 20;
        let pulled = messages - send(&mut ways, messages, 100, 200);
        assert!(
            pulled >= BLOCK && u64::from(pulled) * 250 < u64::from(messages),
            "{pulled}"
        );
    }

    #[test]
    fn a_process_that_moves_is_noticed() {
        let mut ways = Ways::<Delivery>::default();
        send(&mut ways, 100_000, 100_000, 200_000);
        send(&mut ways, LONGEST_PAUSE + 2 * BLOCK, 300_000, 200_000);
        let streamed = send(&mut ways, LONGEST_PAUSE, 300_000, 200_000);
        // Half as long again eight times in a thousand.
        assert!(streamed <= 4 * BLOCK, "{streamed}");
    }

    #[test]
    fn one_disturbed_time_and_small_differences_change_nothing() {
        let mut ways = Ways::<Delivery>::default();
        for message in 0..2 * BLOCK {
            let turn = ways.next(LENGTH);
            assert_eq!(turn.timed, message % BLOCK != 0);
            if turn.timed {
                let disturbed = message == 4;
                ways.took(turn.way, LENGTH, if disturbed { 9_000_000 } else { 100_000 });
            }
        }
        assert_eq!(ways.next(LENGTH).way, Delivery::Pull);
        // A trial that cost nothing is soon repeated.
        let messages = 5 * (2 * BLOCK + LEAST_PAUSE);
        assert_eq!(send(&mut Ways::default(), messages, 97_000, 100_000), 5 * BLOCK);
    }

    #[test]
    fn a_way_that_takes_much_longer_is_given_up_at_its_second_message() {
        let mut ways = Ways::<Delivery>::default();
        // The first message of a row does not count.
        let pause = (5 - 1) * 2 * u32::try_from(AT_MOST).unwrap();
        assert_eq!(send(&mut ways, BLOCK, 500_000, 100_000), 0);
        assert_eq!(send(&mut ways, 2 + pause, 500_000, 100_000), 2);
        assert_eq!(send(&mut ways, BLOCK, 500_000, 100_000), 0);
        assert_eq!(send(&mut ways, 1, 500_000, 100_000), 1);
    }

    #[test]
    fn times_that_never_come_leave_the_way_as_it_is() {
        let mut ways = Ways::<Delivery>::default();
        let mut streamed = 0;
        for _ in 0..10_000 {
            let turn = ways.next(LENGTH);
            streamed += u32::from(turn.way == Delivery::Stream);
            if turn.way == Delivery::Pull && turn.timed {
                ways.took(turn.way, LENGTH, 1);
            }
        }
        assert!(streamed > 0 && streamed < 10_000 / 16, "{streamed}");
    }

    #[test]
    fn lengths_are_tried_apart() {
        assert_eq!([0, 1, SHORTEST, SHORTEST + 1].map(class), [0, 0, 0, 1]);
        assert_eq!(
            [1 << 20, (1 << 20) + 1, 1 << 30, u64::MAX >> 1].map(class),
            [6, 7, 9, 9]
        );
        let mut ways = Ways::<Delivery>::default();
        send(&mut ways, 2 * BLOCK, 100, 200);
        assert_eq!(ways.next(LENGTH).way, Delivery::Stream);
        assert_eq!(ways.next(16 * LENGTH).way, Delivery::Pull);
    }

    #[test]
    fn what_is_usual_depends_on_the_choice() {
        let mut ways = Ways::<Store>::default();
        let turns: Vec<_> = (0..2 * BLOCK).map(|_| ways.next(LENGTH).way).collect();
        let rows = [[Store::Past; BLOCK as usize], [Store::Through; BLOCK as usize]];
        assert_eq!(turns, rows.concat());
    }

    #[test]
    fn any_times_are_taken() {
        let mut ways = Ways::<Delivery>::default();
        send(&mut ways, 100, u64::MAX, 0);
        ways.took(Delivery::Pull, 0, u64::MAX);
    }
}
