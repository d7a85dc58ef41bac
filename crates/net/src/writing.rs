// SPDX-License-Identifier: Apache-2.0
//! The sending half of one connection: what leaves next, as slices.

use std::time::Duration;

use isthmus_link::channel::{ConnectionId, Outgoing, Receipts, SegmentPlace};
use isthmus_link::sharing::Takes;
use isthmus_transport::{Class, Tuning};
use isthmus_wire::segment::{Kind, Segment};

use crate::queues::{Body, CONTROL, Held, Queues};
use crate::secure::{Broken, Seal, Source};

/// Bodies up to this many bytes leave in one TLS record with their headers.
const TOGETHER: usize = 8 << 10;

/// What is under way on a connection.
#[derive(Debug, Default)]
pub(crate) struct Writing {
    /// Headers and short bodies, from `gone` on.
    head: Vec<u8>,
    gone: usize,
    /// A long body after it, and how much of it is gone.
    body: Option<(Body, usize)>,
    /// The long message that the body belongs to.
    long: Option<u64>,
    /// Classes of what was put here since that was asked last.
    took: Classes,
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Classes(u8);

impl Classes {
    fn add(&mut self, class: Class) {
        self.0 |= 1 << class as u8;
    }

    /// The only class in it.
    pub(crate) fn only(self) -> Option<Class> {
        let all = [Class::Latency, Class::Normal, Class::Bulk];
        all.into_iter().find(|class| self.0 == 1 << *class as u8)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Writing {
    /// Says this before anything else.
    pub(crate) fn control(&mut self, bytes: &[u8]) {
        debug_assert!(self.body.is_none(), "between two segments");
        self.head.extend_from_slice(bytes);
    }

    /// Classes of messages that left here since this was asked last.
    pub(crate) fn classes(&mut self) -> Classes {
        std::mem::take(&mut self.took)
    }

    /// Whether nothing is half sent.
    pub(crate) fn is_between(&self) -> bool {
        self.body.is_none() && self.gone == self.head.len()
    }

    /// Whether a numbered segment has begun to leave and not left.
    pub(crate) fn is_inside(&self) -> bool {
        self.body.is_some()
    }

    /// The memory of this message is not to be touched any more: the same bytes lie here now.
    pub(crate) fn replace(&mut self, long: u64, body: &dyn Fn(&Body) -> Body) {
        if let Some((old, _)) = self.body.as_mut().filter(|_| self.long == Some(long)) {
            *old = body(old);
        }
    }

    fn put(&mut self, header: Segment, held: &Held) {
        self.head.extend_from_slice(&header.encode());
        let short = held.body.len() <= TOGETHER;
        let copied = short && held.body.with(0, |bytes| self.head.extend_from_slice(bytes)).is_some();
        if !copied {
            self.long = held.long;
            self.body = Some((held.body.clone(), 0));
        }
    }
}

/// Gives a connection what it is to send, for one turn.
pub(crate) struct Feed<'a> {
    pub(crate) id: ConnectionId,
    pub(crate) now: Duration,
    pub(crate) takes: Takes,
    /// New segments may leave: the peer has said what it has, or never had anything.
    pub(crate) ready: bool,
    pub(crate) writing: &'a mut Writing,
    pub(crate) receipts: &'a mut Receipts,
    pub(crate) out: &'a mut Outgoing<Held>,
    pub(crate) queues: &'a mut Queues,
    /// Frames that measure, encoded as segments.
    pub(crate) loose: &'a mut Vec<u8>,
    /// Bytes that may still be taken.
    pub(crate) allowance: usize,
    /// Makes segments smaller.
    pub(crate) press: &'a mut dyn FnMut(&SegmentPlace, Tuning, Held) -> Held,
}

impl Feed<'_> {
    /// Begins the next segment, if there is one.
    fn begin(&mut self) {
        self.writing.head.clear();
        self.writing.gone = 0;
        if self.allowance == 0 {
            return;
        }
        let room = |w: &Writing| w.body.is_none() && w.head.len() < TOGETHER;
        if self.receipts.is_owed() && (self.receipts.is_due(self.now) || self.has_more()) {
            let ack = Segment::control(Kind::Ack, self.receipts.say());
            self.writing.control(&ack.encode());
        }
        self.writing.head.append(self.loose);
        while self.ready && room(self.writing) && self.next_segment() {}
        let taken = self.writing.head.len() + self.writing.body.as_ref().map_or(0, |(b, _)| b.len());
        self.allowance = self.allowance.saturating_sub(taken);
    }

    fn has_more(&self) -> bool {
        self.ready && (!self.queues.is_empty() || self.out.waits_again())
    }

    fn next_segment(&mut self) -> bool {
        let again = self
            .out
            .first_again()
            .is_some_and(|p| self.takes.takes(p.payload.class));
        let piece = if again {
            self.out.send_again(self.id)
        } else {
            let Some((place, held)) = self.queues.take(self.takes, self.now) else {
                return false;
            };
            if !matches!(place, SegmentPlace::Ordered { queue: CONTROL, .. }) {
                self.writing.took.add(held.class);
            }
            let held = (self.press)(&place, self.queues.last_tuning(), held);
            self.out.send(self.id, place, held)
        };
        let Some(piece) = piece else { return false };
        let header = piece.header(piece.payload.body.len(), piece.payload.flags);
        self.writing.put(header, &piece.payload);
        true
    }
}

impl Source for Feed<'_> {
    fn next(&mut self, seal: &mut Seal<'_>) -> Result<usize, Broken> {
        if self.writing.is_between() {
            self.begin();
        }
        let Writing { head, gone, body, .. } = &*self.writing;
        let head = &head[*gone..];
        match body {
            None => seal(head, &[]),
            // What is half sent cannot be ended without its memory; the peer was lost when that was taken back.
            Some((body, gone)) => body
                .with(*gone, |bytes| seal(head, bytes))
                .unwrap_or(Err(Broken::Withdrawn)),
        }
    }

    fn consume(&mut self, n: usize) {
        let writing = &mut *self.writing;
        let head = n.min(writing.head.len() - writing.gone);
        writing.gone += head;
        if let Some((body, gone)) = &mut writing.body {
            *gone += n - head;
            if *gone == body.len() {
                writing.body = None;
                writing.long = None;
            }
        }
    }
}
