// SPDX-License-Identifier: Apache-2.0
//! What will happen next: a radix heap, and the messages from other local areas beside it.

use super::outcome::NONE;
use isthmus_schedule::step::{Rank, StepId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A message: who sends it, to whom, its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) slot: u16,
}

/// A time, and the record of what decided that something happens then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) time: u64,
    pub(super) cause: u32,
}

impl Moment {
    /// Nothing has happened yet.
    pub(super) const BEGIN: Self = Self { time: 0, cause: NONE };

    /// So many nanoseconds later, for the same reason.
    pub(super) fn after(self, nanoseconds: u64) -> Self {
        Self {
            time: self.time.saturating_add(nanoseconds),
            ..self
        }
    }
}

/// How long a process or a link is occupied, and the record of what decided the begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) cause: u32,
}

/// Something that will happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A message leaves its sender.
    Leave { rank: Rank, step: StepId },
    /// A message arrives.
    Arrive { from: Rank, to: Rank, slot: u16 },
    /// A step is complete.
    Done { rank: Rank, step: StepId },
}

/// When something will happen. `cause` is the record that ends then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) time: u64,
    pub(super) what: What,
    pub(super) cause: u32,
}

impl Event {
    pub(super) fn moment(&self) -> Moment {
        Moment {
            time: self.time,
            cause: self.cause,
        }
    }
}

/// A message from another local area: in order of arrival, then of when it was sent, then of the sender, then of the
/// sender's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delivery {
    pub(super) time: u64,
    pub(super) decided: u64,
    pub(super) from: Rank,
    pub(super) number: u64,
    pub(super) to: Rank,
    pub(super) slot: u16,
    pub(super) cause: u32,
}

const BUCKETS: usize = 65;

/// Events of some local areas. At equal times, messages from other local areas come first, then what was decided first.
///
/// Bucket `i > 0` holds events whose time differs from `now` in bit `i - 1` and in no higher one, bucket 0 those at
/// `now`. Events of one time are always in one bucket, in the order in which they were pushed.
pub(super) struct Queue {
    now: u64,
    buckets: Vec<Vec<Event>>,
    /// Events of bucket 0 that have been taken.
    taken: usize,
    /// Bit i: bucket i + 1 is not empty.
    occupied: u64,
    /// Least time in the buckets after the first, where it is known.
    least: Option<u64>,
    deliveries: BinaryHeap<Reverse<Delivery>>,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self {
            now: 0,
            buckets: vec![Vec::new(); BUCKETS],
            taken: 0,
            occupied: 0,
            least: None,
            deliveries: BinaryHeap::new(),
        }
    }

    /// Adds an event, not before the last one that was taken.
    pub(super) fn push(&mut self, event: Event) {
        debug_assert!(event.time >= self.now, "time goes on");
        if self.place(event) > 0 {
            self.least = self.least.map(|least| least.min(event.time));
        }
    }

    fn place(&mut self, event: Event) -> usize {
        let bucket = (u64::BITS - (event.time ^ self.now).leading_zeros()) as usize;
        self.buckets[bucket].push(event);
        if bucket > 0 {
            self.occupied |= 1 << (bucket - 1);
        }
        bucket
    }

    pub(super) fn deliver(&mut self, delivery: Delivery) {
        self.deliveries.push(Reverse(delivery));
    }

    /// Time of the next event.
    pub(super) fn next_time(&mut self) -> Option<u64> {
        let delivery = self.deliveries.peek().map(|d| d.0.time);
        match (delivery, self.next_local()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn next_local(&mut self) -> Option<u64> {
        if self.taken < self.buckets[0].len() {
            return Some(self.now);
        }
        if self.occupied == 0 {
            return None;
        }
        if self.least.is_none() {
            let bucket = self.occupied.trailing_zeros() as usize + 1;
            self.least = self.buckets[bucket].iter().map(|e| e.time).min();
        }
        self.least
    }

    /// The next event, if it is not later than `until`.
    pub(super) fn pop(&mut self, until: u64) -> Option<Event> {
        let local = self.next_local();
        if let Some(Reverse(delivery)) = self.deliveries.peek() {
            if delivery.time <= until && local.is_none_or(|local| delivery.time <= local) {
                let Reverse(delivery) = self.deliveries.pop()?;
                return Some(delivery.event());
            }
        }
        let time = local.filter(|&time| time <= until)?;
        if self.taken == self.buckets[0].len() {
            self.advance(time);
        }
        self.taken += 1;
        Some(self.buckets[0][self.taken - 1])
    }

    /// Bucket 0 has been taken: goes on to the next time.
    fn advance(&mut self, time: u64) {
        self.now = time;
        self.taken = 0;
        self.least = None;
        self.buckets[0].clear();
        let bucket = self.occupied.trailing_zeros() as usize + 1;
        self.occupied &= self.occupied - 1;
        let mut events = std::mem::take(&mut self.buckets[bucket]);
        for event in events.drain(..) {
            self.place(event);
        }
        // Its memory is for the next ones.
        self.buckets[bucket] = events;
    }

    /// Visits the causes of all events that are to come.
    pub(super) fn causes(&mut self, visit: &mut impl FnMut(&mut u32)) {
        let taken = self.taken;
        self.buckets[0].iter_mut().skip(taken).for_each(|e| visit(&mut e.cause));
        self.buckets[1..].iter_mut().flatten().for_each(|e| visit(&mut e.cause));
        let mut deliveries = std::mem::take(&mut self.deliveries).into_vec();
        deliveries.iter_mut().for_each(|d| visit(&mut d.0.cause));
        self.deliveries = deliveries.into();
    }
}

impl Delivery {
    fn event(&self) -> Event {
        let Self { from, to, slot, .. } = *self;
        Event {
            time: self.time,
            what: What::Arrive { from, to, slot },
            cause: self.cause,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn next(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn events_come_in_order_of_time_and_of_decision() {
        let mut state = 88_172_645_463_325_252;
        let (mut queue, mut expected, mut now) = (Queue::new(), Vec::new(), 0);
        for number in 0..5000u32 {
            let time = now + next(&mut state) % [1, 3, 100, 1 << 20, 1 << 40][(next(&mut state) % 5) as usize];
            let what = What::Done { rank: 0, step: number };
            queue.push(Event { time, what, cause: 0 });
            expected.push((time, number));
            if next(&mut state) % 2 == 0 {
                expected.sort_unstable();
                let least = expected.remove(0);
                assert_eq!(queue.next_time(), Some(least.0));
                assert_eq!(least.0.checked_sub(1).and_then(|before| queue.pop(before)), None);
                let event = queue.pop(least.0).unwrap();
                assert_eq!(
                    (event.time, event.what),
                    (least.0, What::Done { rank: 0, step: least.1 })
                );
                now = least.0;
            }
        }
        expected.sort_unstable();
        for (time, step) in expected {
            let event = queue.pop(u64::MAX).unwrap();
            assert_eq!((event.time, event.what), (time, What::Done { rank: 0, step }));
        }
        assert_eq!((queue.pop(u64::MAX), queue.next_time()), (None, None));
    }

    #[test]
    fn messages_from_elsewhere_come_first() {
        let mut queue = Queue::new();
        let done = What::Done { rank: 0, step: 7 };
        queue.push(Event {
            time: 5,
            what: done,
            cause: 0,
        });
        for (time, decided, from) in [(9, 0, 1), (5, 2, 1), (5, 1, 3), (5, 1, 2)] {
            let (number, to, slot, cause) = (0, 0, 0, 0);
            queue.deliver(Delivery {
                time,
                decided,
                from,
                number,
                to,
                slot,
                cause,
            });
        }
        let senders: Vec<_> = std::iter::from_fn(|| queue.pop(5))
            .map(|event| match event.what {
                What::Arrive { from, .. } => from,
                _ => 0,
            })
            .collect();
        assert_eq!(senders, [2, 3, 1, 0]);
        assert_eq!(queue.next_time(), Some(9));
    }
}
