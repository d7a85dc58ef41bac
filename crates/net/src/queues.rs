// SPDX-License-Identifier: Apache-2.0
//! What waits to be sent on one channel: per queue copied frames and user memory. Knows no clock.
//!
//! Every communicator that asks for a treatment of its own has a queue of its own; the others share the first one. Of
//! several queues the one of the better class goes first; of several of one class each has its turn. Within a queue
//! frames go before long messages, which are cut into fragments, so that a short message waits for one fragment at
//! most.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use isthmus_datatype::raw::ReadMemory;
use isthmus_link::channel::SegmentPlace;
use isthmus_link::sharing::{Takes, There};
use isthmus_transport::{Class, Lent, Path, Tuning};

/// Longest payload of a frame, and the eager limit: a rendezvous costs a round trip of tens of milliseconds, in which
/// a good line carries about a megabyte.
pub(crate) const FRAME: usize = 1 << 20;
/// Bytes of a segment: the unit in which work is spread over connections. Its header and TLS add 0.1 %.
pub(crate) const SEGMENT: usize = 64 << 10;
/// Frames shorter than this are collected into one segment.
const SHORT: usize = 8 << 10;
/// Every so many turns a queue that was passed over goes first, lest it waits for ever.
const PATIENCE: u32 = 16;
/// Time that a queue with a limited rate may save up: pieces leave late when the thread has other work.
const SAVED: Duration = Duration::from_millis(20);

/// Bytes of a segment, until it is acknowledged.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Owned(Arc<Vec<u8>>, Range<usize>),
    /// Of the user, until its message was reported as sent, or its peer is lost.
    Memory(Lent<ReadMemory>, u64, usize),
}

impl Body {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Owned(_, range) => range.len(),
            Self::Memory(_, _, length) => *length,
        }
    }

    /// Shows the bytes from this one on to `read`; `None`: the user has taken its memory back.
    pub(crate) fn with<R>(&self, from: usize, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self {
            Self::Owned(bytes, range) => Some(read(&bytes[range.start + from..range.end])),
            Self::Memory(memory, offset, length) => {
                let at = *offset as isize + from as isize;
                memory.with(|memory| memory.with(at, length - from, read))
            }
        }
    }
}

/// The queue of frames that name requests only: short, without an order, and others wait for them. They go first.
pub(crate) const CONTROL: u8 = 0;
/// The queue of all contexts that want no treatment of their own.
pub(crate) const COMMON: u8 = 1;
/// The queue of protocols beside messages: what they ask and answer does not wait behind the data of messages.
pub(crate) const PROTOCOLS: u8 = 2;

/// What is kept of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) body: Body,
    /// Of the segment's header.
    pub(crate) flags: u8,
    /// Bytes without compression.
    pub(crate) plain: usize,
    /// The long message that it is a part of; `None`: frames.
    pub(crate) long: Option<u64>,
    /// The user has its memory back.
    pub(crate) copied: bool,
    pub(crate) class: Class,
}

impl Held {
    /// Bytes of frames that the main thread accounts for.
    pub(crate) fn frames(&self) -> usize {
        if self.long.is_none() { self.plain } else { 0 }
    }
}

/// A long message on its way.
#[derive(Debug)]
pub(crate) struct Long {
    /// Receiver's request.
    pub(crate) token: u64,
    /// From its origin.
    pub(crate) memory: Lent<ReadMemory>,
    /// Bytes.
    pub(crate) length: u64,
    /// Reported when the memory is not needed any more.
    pub(crate) sent_token: u64,
}

#[derive(Debug, Default)]
struct Queue {
    tuning: Tuning,
    frames: VecDeque<Arc<Vec<u8>>>,
    /// Bytes of the first frame that are gone.
    gone: usize,
    /// Of the next byte in the stream of frames.
    position: u64,
    longs: VecDeque<(u64, Long, u64)>,
    /// With a limited rate: when the next segment may leave.
    free_at: Duration,
    passed_over: u32,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.longs.is_empty()
    }

    /// Bytes of the next segment at most.
    fn piece(&self) -> usize {
        // Twenty pieces per second, as long as they are worth it.
        self.tuning
            .rate
            .map_or(SEGMENT, |rate| ((rate / 20) as usize).clamp(4096, SEGMENT))
    }

    /// The next segment, and the long message that it ends.
    fn take(&mut self, id: u8, limit: usize) -> Option<(SegmentPlace, Held, Option<u64>)> {
        if self.frames.is_empty() {
            return self.fragment(limit);
        }
        let (body, position) = (self.frame_bytes(limit)?, self.position);
        let length = body.len();
        self.position += length as u64;
        let held = Held {
            body,
            flags: 0,
            plain: length,
            long: None,
            copied: false,
            class: self.tuning.class,
        };
        Some((SegmentPlace::Ordered { queue: id, position }, held, None))
    }

    /// The next bytes of the stream of frames: a part of a long frame, or many short ones.
    fn frame_bytes(&mut self, limit: usize) -> Option<Body> {
        let first = self.frames.front()?;
        let left = first.len() - self.gone;
        if left > SHORT || self.frames.len() == 1 {
            let range = self.gone..self.gone + left.min(limit);
            let bytes = first.clone();
            self.gone = range.end;
            if self.gone == bytes.len() {
                self.frames.pop_front();
                self.gone = 0;
            }
            return Some(Body::Owned(bytes, range));
        }
        let mut out = Vec::with_capacity(limit.min(SEGMENT));
        while let Some(first) = self.frames.front() {
            let rest = &first[self.gone..];
            if !out.is_empty() && out.len() + rest.len() > limit {
                break;
            }
            out.extend_from_slice(rest);
            self.frames.pop_front();
            self.gone = 0;
        }
        let range = 0..out.len();
        Some(Body::Owned(Arc::new(out), range))
    }

    fn fragment(&mut self, limit: usize) -> Option<(SegmentPlace, Held, Option<u64>)> {
        let (id, long, offset) = self.longs.front_mut()?;
        let length = usize::try_from(long.length - *offset).map_or(limit, |left| left.min(limit));
        let held = Held {
            body: Body::Memory(long.memory.clone(), *offset, length),
            flags: 0,
            plain: length,
            long: Some(*id),
            copied: false,
            class: self.tuning.class,
        };
        let place = SegmentPlace::Fragment {
            token: long.token,
            offset: *offset,
        };
        *offset += length as u64;
        let over = (*offset == long.length).then_some(*id);
        if over.is_some() {
            self.longs.pop_front();
        }
        Some((place, held, over))
    }

    fn charge(&mut self, bytes: usize, now: Duration) {
        if let Some(rate) = self.tuning.rate {
            let time = Duration::from_secs_f64(bytes as f64 / rate.max(1) as f64);
            self.free_at = self.free_at.max(now.saturating_sub(SAVED)) + time;
        }
    }
}

/// All queues of a channel.
#[derive(Debug, Default)]
pub(crate) struct Queues {
    all: BTreeMap<u8, Queue>,
    /// Bytes of frames that wait.
    waiting: usize,
    longs: u64,
    last: u8,
    /// What kinds of connection there are: who asks for another kind makes do.
    pub(crate) there: There,
    /// Long messages all of which has left.
    pub(crate) over: Vec<u64>,
}

impl Queues {
    pub(crate) fn tune(&mut self, id: u8, tuning: Tuning) {
        self.all.entry(id).or_default().tuning = tuning;
    }

    /// Of the queue of the last segment.
    pub(crate) fn last_tuning(&self) -> Tuning {
        self.all.get(&self.last).map_or_else(Tuning::default, |q| q.tuning)
    }

    /// Connections that the communicators ask for: the most of them.
    pub(crate) fn streams(&self) -> Option<u16> {
        self.all.values().filter_map(|q| q.tuning.streams).max()
    }

    pub(crate) fn push_frame(&mut self, id: u8, bytes: Vec<u8>) {
        self.waiting += bytes.len();
        self.all.entry(id).or_default().frames.push_back(Arc::new(bytes));
    }

    /// Gives the number by which [`Held::long`] names it.
    pub(crate) fn push_long(&mut self, id: u8, long: Long) -> u64 {
        self.longs += 1;
        self.all.entry(id).or_default().longs.push_back((self.longs, long, 0));
        self.longs
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.values().all(Queue::is_empty)
    }

    /// Bytes of frames that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Whether any communicator makes way for others.
    pub(crate) fn any_bulk(&self) -> bool {
        self.all.values().any(|q| q.tuning.class == Class::Bulk)
    }

    /// Whether any communicator is of the class that is not to wait.
    pub(crate) fn any_latency(&self) -> bool {
        self.all.values().any(|q| q.tuning.class == Class::Latency)
    }

    /// Kinds of connection that communicators ask for.
    pub(crate) fn paths(&self) -> impl Iterator<Item = Path> {
        self.all.values().filter_map(|q| q.tuning.path)
    }

    /// Whether something may leave now; else when.
    pub(crate) fn next_at(&self, now: Duration) -> Option<Duration> {
        let waiting = self.all.values().filter(|q| !q.is_empty());
        waiting
            .map(|q| if q.tuning.rate.is_some() { q.free_at } else { now })
            .min()
    }

    /// The next segment.
    pub(crate) fn take(&mut self, takes: Takes, now: Duration) -> Option<(SegmentPlace, Held)> {
        let (last, mut best) = (self.last, None);
        for (id, queue) in &mut self.all {
            let ready = !queue.is_empty() && (queue.tuning.rate.is_none() || queue.free_at <= now);
            let taken = takes.takes(queue.tuning.class) || *id == CONTROL;
            if !ready || !taken || !takes.suits(queue.tuning.path, self.there) {
                continue;
            }
            let class = if *id == CONTROL || queue.passed_over >= PATIENCE {
                Class::Latency
            } else {
                queue.tuning.class
            };
            queue.passed_over += 1;
            // Frames before fragments; in turns.
            let rank = (class, *id != CONTROL, queue.frames.is_empty(), *id <= last, *id);
            if best.is_none_or(|b| rank < b) {
                best = Some(rank);
            }
        }
        let (.., id) = best?;
        self.last = id;
        let queue = self.all.get_mut(&id)?;
        queue.passed_over = 0;
        let (place, held, over) = queue.take(id, queue.piece())?;
        queue.charge(held.body.len(), now);
        self.waiting -= held.frames();
        self.over.extend(over);
        Some((place, held))
    }

    /// Forgets everything but the tuning; the memory of the user is not touched again.
    pub(crate) fn clear(&mut self) {
        self.waiting = 0;
        for queue in self.all.values_mut() {
            queue.frames.clear();
            queue.longs.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use isthmus_transport::Lease;

    use super::*;

    fn tuned(class: Class, rate: Option<u64>) -> Tuning {
        Tuning {
            class,
            rate,
            ..Tuning::default()
        }
    }

    fn sizes(queues: &mut Queues, count: usize) -> Vec<(SegmentPlace, usize)> {
        let one = |_| queues.take(Takes::ALL, Duration::ZERO).map(|(p, h)| (p, h.body.len()));
        (0..count).map_while(one).collect()
    }

    fn ordered(queue: u8, position: u64) -> SegmentPlace {
        SegmentPlace::Ordered { queue, position }
    }

    #[test]
    fn short_frames_leave_together_and_long_ones_in_parts() {
        let mut queues = Queues::default();
        (0..3).for_each(|_| queues.push_frame(COMMON, vec![1; 100]));
        queues.push_frame(COMMON, vec![2; SEGMENT + 5]);
        queues.push_frame(COMMON, vec![3; 7]);
        assert_eq!(queues.waiting(), 312 + SEGMENT);
        let first = sizes(&mut queues, 1);
        assert_eq!(first, [(ordered(COMMON, 0), 300)]);
        assert_eq!(
            sizes(&mut queues, 9),
            [
                (ordered(COMMON, 300), SEGMENT),
                (ordered(COMMON, 300 + SEGMENT as u64), 12)
            ]
        );
        assert!(queues.is_empty() && queues.waiting() == 0);
    }

    #[test]
    fn the_better_class_goes_first_and_nobody_waits_for_ever() {
        let mut queues = Queues::default();
        queues.tune(2, tuned(Class::Latency, None));
        queues.tune(3, tuned(Class::Bulk, None));
        (0..40).for_each(|_| queues.push_frame(3, vec![0; SHORT + 1]));
        (0..40).for_each(|_| queues.push_frame(COMMON, vec![0; SHORT + 1]));
        queues.push_frame(2, vec![0; 10]);
        queues.push_frame(CONTROL, vec![0; 32]);
        let order: Vec<u8> = sizes(&mut queues, 40)
            .iter()
            .filter_map(|(p, _)| match p {
                SegmentPlace::Ordered { queue, .. } => Some(*queue),
                SegmentPlace::Fragment { .. } => None,
            })
            .collect();
        assert_eq!(order[..2], [CONTROL, 2]);
        assert_eq!(order[2..].iter().filter(|q| **q == 3).count(), 2);
    }

    #[test]
    fn what_protocols_say_takes_turns_with_the_data_of_messages() {
        let mut queues = Queues::default();
        (0..40).for_each(|_| queues.push_frame(COMMON, vec![0; SHORT + 1]));
        queues.push_frame(PROTOCOLS, vec![0; SHORT + 1]);
        queues.push_frame(PROTOCOLS, vec![0; SHORT + 1]);
        let order = sizes(&mut queues, 4);
        let of_protocols = order.iter().map(|(place, _)| match place {
            SegmentPlace::Ordered { queue, .. } => *queue == PROTOCOLS,
            SegmentPlace::Fragment { .. } => false,
        });
        assert_eq!(of_protocols.collect::<Vec<_>>(), [false, true, false, true]);
    }

    #[test]
    fn a_limited_rate_is_kept() {
        let mut queues = Queues::default();
        queues.tune(3, tuned(Class::Normal, Some(1_000_000)));
        queues.push_frame(3, vec![0; 2_000_000]);
        let (mut now, mut bytes) = (Duration::from_secs(5), 0);
        let end = now + Duration::from_secs(1);
        while now < end {
            while let Some((_, held)) = queues.take(Takes::ALL, now) {
                bytes += held.body.len();
            }
            now = queues.next_at(now).unwrap();
        }
        assert!((990_000..1_080_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn who_asks_for_a_kind_of_connection_waits_for_it_where_there_is_one() {
        let mut queues = Queues::default();
        let tuning = Tuning {
            path: Some(Path::Gateway),
            ..Tuning::default()
        };
        queues.tune(2, tuning);
        let direct = Takes {
            path: Some(Path::Direct),
            ..Takes::ALL
        };
        let gateway = Takes {
            path: Some(Path::Gateway),
            apart: true,
            ..Takes::ALL
        };
        let mut taken = |takes: Takes, there: bool| {
            queues.push_frame(2, vec![0; 10]);
            queues.there.gateway = there;
            let first = queues.take(takes, Duration::ZERO).is_some();
            queues.clear();
            queues.push_frame(COMMON, vec![0; 10]);
            let common = queues.take(takes, Duration::ZERO).is_some();
            queues.clear();
            (first, common)
        };
        assert_eq!(taken(direct, false), (true, true), "there is nothing else");
        assert_eq!(taken(direct, true), (false, true));
        assert_eq!(taken(gateway, true), (true, false));
    }

    #[test]
    fn long_messages_are_cut_and_named() {
        let data = vec![7; 3 * SEGMENT / 2];
        let length = data.len();
        // SAFETY: `data` outlives every use below and is not written.
        let lease = Lease::new(unsafe { ReadMemory::new(data.as_ptr(), 0, length as isize) });
        let mut queues = Queues::default();
        let long = Long {
            token: 8,
            memory: lease.lent(),
            length: length as u64,
            sent_token: 77,
        };
        let id = queues.push_long(COMMON, long);
        queues.push_frame(COMMON, vec![1; 10]);
        assert_eq!(sizes(&mut queues, 1), [(ordered(COMMON, 0), 10)]);
        let but_latency = Takes {
            latency: false,
            ..Takes::ALL
        };
        let latency_only = Takes {
            normal: false,
            bulk: false,
            ..Takes::ALL
        };
        let (place, held) = queues.take(but_latency, Duration::ZERO).unwrap();
        assert_eq!(
            (place, held.long),
            (SegmentPlace::Fragment { token: 8, offset: 0 }, Some(id))
        );
        assert_eq!(held.body.with(SEGMENT - 1, <[u8]>::to_vec), Some(vec![7]));
        assert!(queues.take(latency_only, Duration::ZERO).is_none());
        let offset = SEGMENT as u64;
        assert_eq!(
            sizes(&mut queues, 9),
            [(SegmentPlace::Fragment { token: 8, offset }, SEGMENT / 2)]
        );
        assert!(queues.is_empty());
    }
}
