// SPDX-License-Identifier: Apache-2.0
//! One peer's plain connection: what waits to be sent on it, and what comes.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use isthmus_transport::{Peer, Placement, Sink};
use isthmus_wire::frame::Header;
use rustix::io::Errno;

use crate::inbound::{Deliver, Inbound};
use crate::link::Early;
use crate::outbox::Outbox;
use crate::pages::Fill;
use crate::socket;
use crate::tcpinfo;

/// Longest payload of a frame.
pub(super) const FRAME: usize = 256 << 10;
/// Bytes of user data per Data frame.
const FRAGMENT: usize = 1 << 20;
/// Room behind what is read in place: for what comes after it, and no more of the next long payload than a header's
/// worth, since that is copied once more.
const AFTER: usize = 4 << 10;
/// Reads, and writes, of one connection before others get their turn: with [`SCRATCH`](super::SCRATCH) a megabyte, as
/// over TLS, which is 0.2 ms. It is a bound for a receiver that is slower than its sender: where it keeps up, the
/// socket is empty before, and 2, 8 and 32 cannot be told apart (`docs/measured/connections.md`).
const TURNS: usize = 8;

#[derive(Debug)]
pub(super) enum State {
    Idle,
    /// What is sent meanwhile is sent by the thread as soon as it can.
    Dialling(Arc<Early>),
    Open(OwnedFd),
    /// The peer said farewell, or we did and it hung up.
    Ended,
    Lost(String),
}

#[derive(Debug)]
pub(super) struct Channel {
    pub(super) peer: Peer,
    pub(super) state: State,
    pub(super) outbox: Outbox,
    pub(super) inbound: Inbound,
    /// Bytes that came when it was read last.
    pub(super) came: usize,
    /// More frames follow at once: short ones leave together.
    pub(super) gathers: bool,
    /// A frame was refused.
    pub(super) refused: bool,
    /// The poller also watches for room to write.
    pub(super) watching_write: bool,
    pub(super) farewell_said: bool,
}

struct ToSink<'a> {
    peer: Peer,
    sink: &'a mut dyn Sink,
}

impl Deliver for ToSink<'_> {
    fn frame(&mut self, header: &Header, payload: &[u8]) {
        self.sink.frame(self.peer, header, payload);
    }
    fn place(&mut self, header: &Header) -> Placement {
        self.sink.place(self.peer, header)
    }
    fn placed(&mut self, header: &Header) {
        self.sink.placed(self.peer, header);
    }
    fn received(&mut self, token: u64) {
        self.sink.received(self.peer, token);
    }
}

/// What became of reading.
pub(super) enum Read {
    Nothing,
    Something,
    /// The peer's stream is over.
    End,
    Failed(String),
}

impl Channel {
    pub(super) fn new(peer: Peer) -> Self {
        Self {
            peer,
            state: State::Idle,
            outbox: Outbox::new(FRAGMENT),
            inbound: Inbound::new(FRAME),
            came: 0,
            gathers: false,
            refused: false,
            watching_write: false,
            farewell_said: false,
        }
    }

    /// Whether frames wait for no other reason than that more follow.
    pub(super) fn has_gathered(&self) -> bool {
        self.gathers && !self.watching_write && !self.outbox.is_empty()
    }

    /// Sends from the outbox until the socket is full. Returns the tokens of bulks that are complete. `alone`: no other
    /// connection sends.
    pub(super) fn flush(&mut self, fill: &mut Fill, alone: bool, sent: &mut Vec<u64>) -> Result<(), Errno> {
        let State::Open(socket) = &self.state else {
            return Ok(());
        };
        for _ in 0..TURNS {
            let drained = || alone && tcpinfo::tcp_info(socket).is_some_and(|info| info.is_drained());
            let sending = self
                .outbox
                .next(fill, drained, |first, second| socket::send(socket, first, second));
            let Some(n) = sending.transpose()?.flatten() else {
                break;
            };
            fill.sent(n);
            sent.extend(self.outbox.consume(n));
        }
        Ok(())
    }

    pub(super) fn read(&mut self, scratch: &mut [u8], sink: &mut dyn Sink) -> Read {
        let State::Open(socket) = &self.state else {
            return Read::Nothing;
        };
        let mut to = ToSink { peer: self.peer, sink };
        let mut outcome = Read::Nothing;
        for _ in 0..TURNS {
            let direct = self
                .inbound
                .direct(|place| socket::receive_into(socket, place, &mut scratch[..AFTER]));
            let (got, direct) = direct.unwrap_or_else(|| (socket::receive(socket, scratch), 0));
            let n = match got {
                Ok(Some(0)) => return Read::End,
                Ok(Some(n)) => n,
                Ok(None) => return outcome,
                Err(e) => return Read::Failed(std::io::Error::from(e).to_string()),
            };
            outcome = Read::Something;
            self.came = n;
            if direct > 0 {
                self.inbound.advance(n.min(direct), &mut to);
            }
            if let Err(violation) = self.inbound.feed(&scratch[..n.saturating_sub(direct)], &mut to) {
                return Read::Failed(format!(
                    "{violation}; the two run different versions of Isthmus, or one has a bug"
                ));
            }
            let room = if direct > 0 { direct + AFTER } else { scratch.len() };
            if n < room {
                // The socket is empty; asking again would only cost time.
                return outcome;
            }
        }
        outcome
    }
}
