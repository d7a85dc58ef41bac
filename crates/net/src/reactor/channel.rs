// SPDX-License-Identifier: Apache-2.0
//! One wide-area channel: its connections, and what it has to send. Moving bytes is in `sending` and `reading`,
//! connections that come and go in `connections`.

use std::sync::Arc;

use isthmus_datatype::raw::WriteMemory;
use isthmus_link::channel::{Outgoing, Piece};
use isthmus_link::filling::Filling;
use isthmus_link::gauge::Gauge;
use isthmus_link::life::Life;
use isthmus_transport::{Lent, Peer};
use isthmus_wire::segment::{Kind, Segment};
use rustc_hash::FxHashMap;

use super::connection::Connection;
use crate::compression::Adaptive;
use crate::flow::Flow;
use crate::link::{Arrival, Traffic};
use crate::queues::{Held, Long, Queues};
use crate::receiver::Receiver;

/// A long message of which something was not acknowledged.
pub(super) struct Unsent {
    pub(super) token: u64,
    pub(super) bytes: u64,
}

pub(super) struct Channel {
    pub(super) peer: Peer,
    /// Its connections, and what becomes of it.
    pub(super) life: Life<Connection>,
    pub(super) queues: Queues,
    pub(super) out: Outgoing<Held>,
    pub(super) receiver: Receiver,
    /// Where the main thread counts what it has queued.
    pub(super) flow: Option<Arc<Flow>>,
    pub(super) longs: FxHashMap<u64, Unsent>,
    /// Bytes that were copied so that the user has its memory back.
    pub(super) copied: usize,
    /// Segments that are sent once: they measure.
    pub(super) loose: Vec<u8>,
    pub(super) gauge: Gauge,
    pub(super) filling: Filling,
    /// How messages are compressed: of frames and of long messages, by queue.
    pub(super) presses: FxHashMap<(u8, bool), Adaptive>,
    pub(super) traffic: Traffic,
}

impl Channel {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            life: Life::default(),
            queues: Queues::default(),
            out: Outgoing::default(),
            receiver: Receiver::default(),
            flow: None,
            longs: FxHashMap::default(),
            copied: 0,
            loose: Vec::new(),
            gauge: Gauge::default(),
            filling: Filling::default(),
            presses: FxHashMap::default(),
            traffic: Traffic::default(),
        }
    }

    /// Nothing waits and nothing is unacknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.out.is_empty()
    }

    /// A frame that measures goes next, and once.
    pub(super) fn push_loose(&mut self, frame: &[u8]) {
        let header = Segment {
            length: frame.len() as u32,
            ..Segment::control(Kind::Loose, 0)
        };
        self.loose.extend_from_slice(&header.encode());
        self.loose.extend_from_slice(frame);
    }

    /// These segments have arrived.
    pub(super) fn arrived(&mut self, pieces: Vec<Piece<Held>>, arrivals: &mut Vec<Arrival>) {
        let (peer, mut frames) = (self.peer, 0);
        for piece in pieces {
            let held = piece.payload;
            frames += held.frames();
            self.traffic.acknowledged += held.body.len() as u64;
            self.copied -= if held.copied { held.plain } else { 0 };
            let Some(id) = held.long else { continue };
            if let Some(unsent) = self.longs.get_mut(&id) {
                unsent.bytes -= held.plain as u64;
                if unsent.bytes == 0 {
                    arrivals.push(Arrival::Sent {
                        peer,
                        token: unsent.token,
                    });
                    self.longs.remove(&id);
                }
            }
        }
        self.release(frames, arrivals);
    }

    /// These bytes of frames have left the queues.
    pub(super) fn left(&self, bytes: usize, arrivals: &mut Vec<Arrival>) {
        if bytes > 0 && self.flow.as_ref().is_some_and(|flow| flow.left(bytes)) {
            arrivals.push(Arrival::Writable { peer: self.peer });
        }
    }

    fn release(&self, bytes: usize, arrivals: &mut Vec<Arrival>) {
        if bytes > 0 && self.flow.as_ref().is_some_and(|flow| flow.acknowledged(bytes)) {
            arrivals.push(Arrival::Writable { peer: self.peer });
        }
    }

    /// A frame of the program is to be sent.
    pub(super) fn push_frame(&mut self, flow: Arc<Flow>, queue: u8, bytes: Vec<u8>) {
        if self.life.has_ended() {
            flow.left(bytes.len());
            flow.acknowledged(bytes.len());
            return;
        }
        self.queues.push_frame(queue, bytes);
        self.flow = Some(flow);
    }

    /// A long message of the program is to be sent.
    pub(super) fn push_long(&mut self, queue: u8, long: Long) {
        if self.life.has_ended() {
            return;
        }
        let unsent = Unsent {
            token: long.sent_token,
            bytes: long.length,
        };
        let id = self.queues.push_long(queue, long);
        self.longs.insert(id, unsent);
    }

    /// Fragments with this token go there.
    pub(super) fn expect(&mut self, token: u64, memory: Lent<WriteMemory>, length: u64) {
        if !self.life.has_ended() {
            self.receiver.expect(token, memory, length);
        }
    }

    /// As if it had not been dialled, if there is nothing to send. False: there is.
    pub(super) fn forget_unused(&mut self) -> bool {
        self.queues.is_empty() && self.life.handle_unused()
    }

    pub(super) fn has_settled(&self) -> bool {
        self.life.has_settled(!self.queues.is_empty(), self.is_idle())
    }

    pub(super) fn has_closed(&self) -> bool {
        self.life.has_closed(!self.queues.is_empty(), self.is_idle())
    }
}
