// SPDX-License-Identifier: Apache-2.0
//! Two ways for a long message between processes that share memory, and which of them is quicker.
//!
//! The receiver *pulls* the message out of the sender's memory (one copy, by the system, of which the transport may let the sender do a part), or the
//! message *streams* through a ring (two copies, side by side). Which is quicker depends on what caches the two cores share, and changes when one of
//! the processes moves: it is tried out. Of messages of about one length the first [`BLOCK`] go one way, the next ones the other; the median of
//! the times of each way counts, the first of a row not at all (it finds the caches as the other way left them). One that takes twice as long as the
//! way it is compared with ends the trial: cores that share no cache move a message through a ring in four times the time, and more. The quicker way
//! is kept until trials have cost no more than one part in [`AT_MOST`] of the time of all messages, for [`FIRST_PAUSE`] to [`LONGEST_PAUSE`] messages.
//! Either way is right for any message, so nothing but time depends on the choice, and only the receiver makes it. Of a long block of a collective operation
//! a *stream* is the way through cells; one member chooses, and tells the others.

/// How a long message comes to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// In data frames.
    Stream = 0,
    /// The receiver copies it out of the sender's memory.
    Pull = 1,
}

impl Way {
    fn other(self) -> Self {
        match self {
            Self::Stream => Self::Pull,
            Self::Pull => Self::Stream,
        }
    }
}

/// What is to be done with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The way it takes.
    pub way: Way,
    /// Tell [`Ways::took`] how long it took.
    pub timed: bool,
}

/// Messages in a row that try one way.
pub const BLOCK: u32 = 4;
/// How many of them count.
const SAMPLES: usize = BLOCK as usize - 1;
/// Messages between a trial that changed the way and the next: one that was disturbed does not count for long. The fewest after any other.
pub const FIRST_PAUSE: u32 = 32;
/// Trials of the slower way take this part of the time of all messages: one in so many.
pub const AT_MOST: u64 = 256;
/// Most messages between two trials: the slower way has 4 of 4,096.
pub const LONGEST_PAUSE: u32 = 4096;
/// A ring replaces copies by the receiver if it takes less than this share of their time, in percent: the rest is noise, and a ring takes time of two
/// cores, and room in their caches.
const CLEARLY: u64 = 90;
/// Messages up to this many bytes, and up to 2, 4, 8 … times as many, are tried out apart.
const SHORTEST: u64 = 16 << 10;
/// The last class has no end.
const CLASSES: usize = 10;

/// Which way is quicker to one process from another one, by the length of messages.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    classes: [Trial; CLASSES],
}

impl Ways {
    /// The way of the next message, of so many bytes.
    pub fn next(&mut self, bytes: u64) -> Turn {
        self.classes[class(bytes)].next()
    }

    /// A message of so many bytes that was to be timed took so long.
    pub fn took(&mut self, way: Way, bytes: u64, nanoseconds: u64) {
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
struct Trial {
    quicker: Way,
    /// Messages until the next trial.
    rest: u32,
    /// Messages between the trials.
    pause: u32,
    /// Messages of the trial that have been given their way.
    tried: u32,
    times: [[u64; SAMPLES]; 2],
    known: [usize; 2],
}

impl Default for Trial {
    fn default() -> Self {
        Self {
            quicker: Way::Pull,
            rest: 0,
            pause: FIRST_PAUSE / 2,
            tried: 0,
            times: [[0; SAMPLES]; 2],
            known: [0; 2],
        }
    }
}

impl Trial {
    fn next(&mut self) -> Turn {
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
            way: if row == 0 { self.quicker } else { self.quicker.other() },
            timed: place > 0,
        }
    }

    fn took(&mut self, way: Way, time: u64) {
        let known = &mut self.known[way as usize];
        if *known == SAMPLES {
            return;
        }
        self.times[way as usize][*known] = time;
        *known += 1;
        if self.known == [SAMPLES; 2] {
            return self.decide();
        }
        let first = self.quicker;
        if way == first || self.known[first as usize] < SAMPLES {
            return;
        }
        let usual = self.median(first);
        if time > usual.saturating_mul(2) && self.tried > BLOCK {
            let cost = time.saturating_mul(u64::from(self.tried - BLOCK));
            self.tried = 0;
            self.keep(usual, cost);
        }
    }

    fn decide(&mut self) {
        let old = self.quicker;
        let (now, other) = (self.median(old), self.median(old.other()));
        let enough = if old == Way::Pull { CLEARLY } else { 100 };
        if other < now.saturating_mul(enough) / 100 {
            self.quicker = old.other();
            self.pause = FIRST_PAUSE;
            self.rest = FIRST_PAUSE;
        } else {
            self.keep(now, other.saturating_mul(u64::from(BLOCK)));
        }
    }

    /// The way stays the same, whose messages take so long, until what the trial of the other one has taken is a small part.
    fn keep(&mut self, usual: u64, cost: u64) {
        let messages = cost.saturating_mul(AT_MOST) / usual.max(1);
        let fewest = FIRST_PAUSE.max(self.pause);
        self.pause = messages.try_into().unwrap_or(u32::MAX).clamp(fewest, LONGEST_PAUSE);
        self.rest = self.pause;
    }

    fn median(&self, way: Way) -> u64 {
        let mut times = self.times[way as usize];
        times.sort_unstable();
        times[SAMPLES / 2]
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
            streamed += u32::from(turn.way == Way::Stream);
            if turn.timed {
                ways.took(turn.way, LENGTH, if turn.way == Way::Stream { stream } else { pull });
            }
        }
        streamed
    }

    #[test]
    fn the_quicker_way_is_taken() {
        for (stream, pull) in [(76_000, 150_000), (240_000, 160_000)] {
            let mut ways = Ways::default();
            assert_eq!(send(&mut ways, 2 * BLOCK, stream, pull), BLOCK);
            let expected = if stream < pull { FIRST_PAUSE } else { 0 };
            assert_eq!(send(&mut ways, FIRST_PAUSE, stream, pull), expected);
        }
    }

    #[test]
    fn trials_become_seldom_and_cost_little() {
        let mut ways = Ways::default();
        let messages = 1 << 20;
        let pulled = messages - send(&mut ways, messages, 100, 200);
        assert!(
            pulled >= BLOCK && u64::from(pulled) * 250 < u64::from(messages),
            "{pulled}"
        );
    }

    #[test]
    fn a_process_that_moves_is_noticed() {
        let mut ways = Ways::default();
        send(&mut ways, 100_000, 100_000, 200_000);
        send(&mut ways, LONGEST_PAUSE + 2 * BLOCK, 300_000, 200_000);
        let streamed = send(&mut ways, LONGEST_PAUSE, 300_000, 200_000);
        assert!(streamed <= 3 * BLOCK, "{streamed}");
    }

    #[test]
    fn one_disturbed_time_and_small_differences_change_nothing() {
        let mut ways = Ways::default();
        for message in 0..2 * BLOCK {
            let turn = ways.next(LENGTH);
            assert_eq!(turn.timed, message % BLOCK != 0);
            if turn.timed {
                let disturbed = message == 2;
                ways.took(turn.way, LENGTH, if disturbed { 9_000_000 } else { 100_000 });
            }
        }
        assert_eq!(ways.next(LENGTH).way, Way::Pull);
        // Trials before message 0 and 1,024.
        assert_eq!(send(&mut Ways::default(), 1040, 97_000, 100_000), 2 * BLOCK);
    }

    #[test]
    fn a_way_that_takes_much_longer_is_given_up_at_its_second_message() {
        let mut ways = Ways::default();
        // The first message of a row does not count.
        let pause = 5 * 2 * u32::try_from(AT_MOST).unwrap();
        assert_eq!(send(&mut ways, BLOCK, 500_000, 100_000), 0);
        assert_eq!(send(&mut ways, 2 + pause, 500_000, 100_000), 2);
        assert_eq!(send(&mut ways, BLOCK, 500_000, 100_000), 0);
        assert_eq!(send(&mut ways, 1, 500_000, 100_000), 1);
    }

    #[test]
    fn times_that_never_come_leave_the_way_as_it_is() {
        let mut ways = Ways::default();
        let mut streamed = 0;
        for _ in 0..10_000 {
            let turn = ways.next(LENGTH);
            streamed += u32::from(turn.way == Way::Stream);
            if turn.way == Way::Pull && turn.timed {
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
        let mut ways = Ways::default();
        send(&mut ways, 2 * BLOCK, 100, 200);
        assert_eq!(ways.next(LENGTH).way, Way::Stream);
        assert_eq!(ways.next(16 * LENGTH).way, Way::Pull);
    }

    #[test]
    fn any_times_are_taken() {
        let mut ways = Ways::default();
        send(&mut ways, 100, u64::MAX, 0);
        ways.took(Way::Pull, 0, u64::MAX);
    }
}
