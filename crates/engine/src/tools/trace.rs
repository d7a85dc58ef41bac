// SPDX-License-Identifier: Apache-2.0
//! Records of messages, collective operations and waits, for a picture of the whole job. Costs one branch a message
//! while nobody traces.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use isthmus_transport::Peer;
use isthmus_wire::frame::Header;
use isthmus_wire::trace::{Message, Record, What};
use rustc_hash::FxHashMap;

use crate::tools::observe::PlanEvent;

/// Records that wait at most to be taken, about 6 MiB; later ones are counted and dropped.
const MOST: usize = if cfg!(miri) { 1 << 6 } else { 1 << 16 };

#[derive(Debug)]
pub(super) enum Entry {
    Message(bool, Message),
    Plan(bool, PlanEvent),
    /// The call, the thread, and when the wait was over.
    Waited(&'static str, u32, Instant),
}

#[derive(Debug, Default)]
struct Entries {
    all: Vec<(Instant, Entry)>,
    lost: u64,
}

/// What was recorded, for a thread that takes it without the engine.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Entries>>);

/// What is recorded.
#[derive(Debug, Default)]
pub(crate) struct Tracer {
    pub(super) trace: Trace,
    /// Messages so far, per direction, peer and context.
    numbers: FxHashMap<(bool, Peer, u32), u64>,
}

impl Tracer {
    pub(super) fn push(&self, entry: Entry) {
        self.push_at(Instant::now(), entry);
    }

    fn push_at(&self, at: Instant, entry: Entry) {
        let mut entries = self.trace.entries();
        if entries.all.len() < MOST {
            entries.all.push((at, entry));
        } else {
            entries.lost += 1;
        }
    }

    /// A wait in this MPI function that began then is over.
    pub(super) fn waited(&self, began: Instant, call: &'static str) {
        self.push_at(began, Entry::Waited(call, thread(), Instant::now()));
    }

    #[cold]
    pub(super) fn message(&mut self, sent: bool, peer: Peer, header: &Header) {
        let number = self.numbers.entry((sent, peer, header.context)).or_default();
        *number += 1;
        let message = Message {
            peer: peer.number(),
            context: header.context,
            tag: header.tag,
            bytes: header.length,
            number: *number,
        };
        self.push(Entry::Message(sent, message));
    }
}

impl Trace {
    fn entries(&self) -> MutexGuard<'_, Entries> {
        // A panic elsewhere cannot leave them in a bad state: every change is one push or swap.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was recorded since the last time.
    pub fn take(&self) -> Vec<Record> {
        let Entries { all, lost } = std::mem::take(&mut *self.entries());
        // The clock of the wall may be set while the job runs: both are looked at anew each time.
        let (now, wall) = (Instant::now(), SystemTime::now());
        let wall = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let time = |at: Instant| {
            let ago = now.saturating_duration_since(at);
            wall.saturating_sub(ago).as_nanos().try_into().unwrap_or(u64::MAX)
        };
        let mut records = Vec::with_capacity(all.len() + 1);
        records.extend(all.into_iter().map(|(at, entry)| Record {
            time: time(at),
            what: what(at, entry),
        }));
        if lost > 0 {
            let time = time(now);
            records.push(Record {
                time,
                what: What::Lost(lost),
            });
        }
        records
    }
}

/// The number of the calling thread, counted from the first one that waits.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    thread_local!(static NUMBER: u32 = NEXT.fetch_add(1, Ordering::Relaxed));
    NUMBER.with(|n| *n)
}

fn what(at: Instant, entry: Entry) -> What {
    match entry {
        Entry::Message(true, message) => What::Sent(message),
        Entry::Message(false, message) => What::Arrived(message),
        Entry::Plan(true, plan) => What::Began {
            operation: plan.operation.to_owned(),
            context: plan.context,
            sequence: plan.sequence,
        },
        Entry::Plan(false, plan) => What::Ended {
            context: plan.context,
            sequence: plan.sequence,
        },
        Entry::Waited(call, thread, end) => What::Waited {
            call: call.to_owned(),
            thread,
            duration: end
                .saturating_duration_since(at)
                .as_nanos()
                .try_into()
                .unwrap_or(u64::MAX),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::frame::Kind;

    #[test]
    fn messages_are_numbered_and_their_records_bounded() {
        let mut tracer = Tracer::default();
        let header = |context, bytes| Header::new(Kind::Eager, context, 0, 7, bytes, 0);
        tracer.message(true, Peer::new(1), &header(0, 5));
        tracer.message(true, Peer::new(1), &header(2, 5));
        tracer.message(false, Peer::new(1), &header(0, 5));
        tracer.message(true, Peer::new(1), &header(0, 6));
        let numbers: Vec<(bool, u64)> = tracer
            .trace
            .take()
            .into_iter()
            .filter_map(|r| match r.what {
                What::Sent(m) => Some((true, m.number)),
                What::Arrived(m) => Some((false, m.number)),
                _ => None,
            })
            .collect();
        assert_eq!(numbers, [(true, 1), (true, 1), (false, 1), (true, 2)]);
        (0..MOST + 3).for_each(|_| tracer.message(true, Peer::new(1), &header(0, 0)));
        let records = tracer.trace.take();
        assert_eq!(records.len(), MOST + 1);
        assert_eq!(records.last().map(|r| r.what.clone()), Some(What::Lost(3)));
        assert!(tracer.trace.take().is_empty());
    }
}
