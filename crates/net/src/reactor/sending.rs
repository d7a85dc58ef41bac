// SPDX-License-Identifier: Apache-2.0
//! Bytes from the queues of a channel to its connections.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use isthmus_link::channel::{ConnectionId, SegmentPlace};
use isthmus_transport::Tuning;
use isthmus_wire::frame::{Header, Probe};
use isthmus_wire::segment::COMPRESSED;
use rustc_hash::FxHashMap;

use super::channel::Channel;
use super::hands::Hands;
use crate::compression::{Adaptive, SHORTEST};
use crate::link::{Arrival, Traffic};
use crate::outbox;
use crate::queues::{Body, Held, SEGMENT};
use crate::secure::Scratch;
use crate::writing::Feed;

/// Bytes sent to one peer before others get their turn: as many as one takes from a peer in its turn
/// (`READS` in `moving.rs`), 0.2 to 0.4 ms of work, which is what a short message waits for each long one beside it. A
/// turn ends before that where the socket is full, that is with 512 KiB unsent (`NOT_SENT_LOW_WATER`): over all links
/// that are slower than encryption, to which this makes no difference.
const TURN: usize = 1 << 20;
/// Most bytes of one channel that are copied so that the user has its memory back before they are acknowledged: what
/// is under way on a good line.
const COPIES: usize = 16 << 20;

/// What became of a turn.
pub(super) struct Sent {
    /// There is more, for another turn.
    pub(super) has_more: bool,
    /// These connections are dead, for these reasons.
    pub(super) broken: Vec<(ConnectionId, String)>,
}

/// Counts a segment, and makes it smaller if that pays.
fn press(
    presses: &mut FxHashMap<(u8, bool), Adaptive>,
    traffic: &mut Traffic,
    link: &dyn Fn() -> Option<f64>,
    (place, tuning): (&SegmentPlace, Tuning),
    held: Held,
) -> Held {
    traffic.classes[held.class as usize] += held.plain as u64;
    if held.plain < SHORTEST || tuning.compress == Some(false) {
        return held;
    }
    let Some(link) = link() else { return held };
    let key = match place {
        SegmentPlace::Ordered { queue, .. } => (*queue, false),
        SegmentPlace::Fragment { .. } => (0, true),
    };
    // A limit that the user set is as slow as a link.
    let link = tuning.rate.map_or(link, |rate| link.min(rate as f64));
    let press = presses.entry(key).or_default();
    let pressed = held.body.with(0, |bytes| press.press(bytes, held.long, link));
    let Some(bytes) = pressed.flatten() else {
        return held;
    };
    traffic.compressed.0 += bytes.len() as u64;
    traffic.compressed.1 += held.plain as u64;
    let range = 0..bytes.len();
    Held {
        body: Body::Owned(Arc::new(bytes), range),
        flags: COMPRESSED,
        ..held
    }
}

impl Channel {
    /// Sends what can be sent, for one turn.
    pub(super) fn send(&mut self, hands: &mut Hands) -> Sent {
        let now = hands.now();
        let mut turn = TURN;
        let mut broken = Vec::new();
        let mut any = false;
        let before = self.queues.waiting();
        while turn > 0 {
            let sent = self.send_round(&mut hands.scratch, now, &mut broken);
            turn = turn.saturating_sub(sent);
            any |= sent > 0;
            if sent == 0 || self.has_sent_all() {
                break;
            }
        }
        let left = before - self.queues.waiting();
        if left > 0 || any && self.is_inside() {
            hands.link.moved.store(true, Ordering::Relaxed);
        }
        self.glimpse(now);
        self.left(left, &mut hands.arrivals);
        self.give_back(&mut hands.arrivals);
        if let Some(at) = self.queues.next_at(now).filter(|at| *at > now) {
            hands.alarm(at);
        }
        if any {
            hands.will_report();
        }
        Sent {
            has_more: turn == 0 && !self.life.has_ended(),
            broken,
        }
    }

    /// A part of a frame has left, and more of it is to come.
    fn is_inside(&self) -> bool {
        self.life.lines.values().any(|c| !c.writing.is_between())
    }

    /// Nothing is left for another round.
    fn has_sent_all(&self) -> bool {
        let waits = !self.queues.is_empty() || self.out.waits_again() || self.gauge.has_pieces();
        !waits && self.loose.is_empty() && !self.is_inside()
    }

    /// Every connection that has room takes something. How many bytes in all.
    fn send_round(&mut self, scratch: &mut Scratch, now: Duration, broken: &mut Vec<(ConnectionId, String)>) -> usize {
        let mut sent = 0;
        let many = self.life.lines.len() > 1;
        let shares = self.shares();
        if self.loose.is_empty() && self.queues.is_empty() {
            if let Some(size) = self.gauge.next_piece() {
                let header = Header::probe(Probe::Train, size, 0);
                self.push_loose(&outbox::encode(&header, &vec![0; size as usize]));
            }
        }
        let Self {
            life,
            out,
            queues,
            loose,
            traffic,
            presses,
            filling,
            ..
        } = self;
        let meter = &self.gauge.meter;
        let link = || {
            filling
                .rate()
                .or_else(|| meter.estimate().rate.map(|r| r.bytes_per_second as f64))
        };
        for ((id, connection), takes) in life.lines.iter_mut().zip(shares) {
            match connection.secure.flush() {
                Ok(true) => {}
                Ok(false) => continue,
                Err(e) => {
                    broken.push((*id, e.to_string()));
                    continue;
                }
            }
            let mut feed = Feed {
                id: *id,
                now,
                takes,
                ready: connection.line.is_ready(),
                writing: &mut connection.writing,
                receipts: &mut connection.reading.receipts,
                out: &mut *out,
                queues: &mut *queues,
                loose: &mut *loose,
                allowance: if many { SEGMENT } else { connection.secure.batch() },
                press: &mut |place, tuning, held| press(presses, traffic, &link, (place, tuning), held),
            };
            match connection.secure.write(scratch, &mut feed) {
                Ok(n) => sent += n,
                Err(e) => broken.push((*id, e.to_string())),
            }
        }
        traffic.sent += sent as u64;
        if self.queues.is_empty() && !self.out.waits_again() {
            self.filling.runs_dry();
        }
        if broken.is_empty() { sent } else { 0 }
    }

    /// Copies what is under way of long messages all of which has left, so that their senders can go on. Over short
    /// round trips it is acknowledged sooner than it is copied.
    fn give_back(&mut self, arrivals: &mut Vec<Arrival>) {
        let near = self.life.lines.values().all(|c| c.secure.near);
        for id in std::mem::take(&mut self.queues.over) {
            if near {
                continue;
            }
            let Some(unsent) = self.longs.get(&id) else { continue };
            let bytes = unsent.bytes as usize;
            if self.copied + bytes > COPIES {
                continue;
            }
            // Memory that was taken back stays out of reach.
            let copied = |body: &Body| match body {
                Body::Memory(..) => body.with(0, |bytes| Body::Owned(Arc::new(bytes.to_vec()), 0..bytes.len())),
                Body::Owned(..) => None,
            };
            let copy = |body: &Body| copied(body).unwrap_or_else(|| body.clone());
            for piece in self.out.kept().filter(|p| p.payload.long == Some(id)) {
                piece.payload.body = copy(&piece.payload.body);
                piece.payload.copied = true;
                self.copied += piece.payload.plain;
            }
            for connection in self.life.lines.values_mut() {
                connection.writing.replace(id, &copy);
            }
            if let Some(unsent) = self.longs.remove(&id) {
                let (peer, token) = (self.peer, unsent.token);
                arrivals.push(Arrival::Sent { peer, token });
            }
        }
    }
}
