// SPDX-License-Identifier: Apache-2.0
//! Bytes from the connections of a channel to whoever waits for them.

use std::time::Instant;

use isthmus_link::channel::{ConnectionId, Violation};
use isthmus_link::meter;
use isthmus_wire::frame::Header;

use super::channel::Channel;
use super::hands::Hands;
use crate::receiver::{Fault, Notice, Reading, Takers};
use crate::socket::Interest;

/// What was in the bytes that came, beside arrivals.
#[derive(Default)]
pub(super) struct Came {
    pub(super) told: Vec<Notice>,
    /// Frames that measure.
    pub(super) probes: Vec<Header>,
    /// It went on until there.
    pub(super) fault: Option<Fault>,
}

/// What became of one reading.
pub(super) enum Read {
    Some {
        came: Came,
        /// Encrypted.
        read: meter::Read,
        /// Whether a connection of the channel was inside a long frame, before and after.
        inside: (bool, bool),
    },
    Nothing,
    /// No more will come.
    End(String),
    Fault(Fault),
}

/// What is to be done for a word of the peer about the channel itself.
pub(super) enum Heard {
    Nothing,
    /// Something may be sent that could not be.
    MaySend,
    /// It would like so many connections in all.
    Streams(u64),
    /// It has closed in order.
    Farewell,
    /// It has given this process up.
    GivenUp,
    /// It does not keep the rules.
    Fault(Fault),
}

impl Channel {
    /// Reads a connection once.
    pub(super) fn read(&mut self, hands: &mut Hands, id: ConnectionId) -> Read {
        let now = hands.time();
        let before = self.is_in_long();
        let Self { life, receiver, .. } = self;
        let Some(connection) = life.lines.get_mut(&id) else {
            return Read::Nothing;
        };
        let mut to = Takers {
            peer: self.peer,
            now,
            arrivals: &mut hands.arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        let mut fed = Ok(());
        let reading = &mut connection.reading;
        let read = connection.secure.read(&mut hands.scratch, &mut |bytes| {
            if fed.is_ok() {
                fed = reading.feed(bytes, receiver, &mut to);
            }
        });
        let came = Came {
            told: to.told,
            probes: to.probes,
            fault: None,
        };
        let (ended, emptied) = (connection.secure.ended, connection.secure.emptied);
        match (fed, read) {
            (Err(fault), _) => Read::Fault(fault),
            (_, Ok(0)) => Read::Nothing,
            (_, Ok(n)) if !ended => {
                connection.came = n;
                connection.line.vigil.heard(now);
                self.traffic.received += n as u64;
                Read::Some {
                    came,
                    read: meter::Read {
                        bytes: n as u64,
                        emptied,
                    },
                    inside: (before, self.is_in_long()),
                }
            }
            (_, Ok(_)) => Read::End("it was closed by the other end".into()),
            (_, Err(e)) => Read::End(e.to_string()),
        }
    }

    fn is_in_long(&self) -> bool {
        self.life.lines.values().any(|c| c.reading.in_long())
    }

    /// Takes what the peer has sent on a connection right behind its part of the handshake.
    pub(super) fn take_early(&mut self, hands: &mut Hands, id: ConnectionId, early: &[u8]) -> Came {
        let now = hands.now();
        let Self { life, receiver, .. } = self;
        let Some(connection) = life.lines.get_mut(&id) else {
            return Came::default();
        };
        let mut to = Takers {
            peer: self.peer,
            now,
            arrivals: &mut hands.arrivals,
            told: Vec::new(),
            probes: Vec::new(),
        };
        let fed = connection.reading.feed(early, receiver, &mut to);
        Came {
            told: to.told,
            probes: to.probes,
            fault: fed.err(),
        }
    }

    /// So much was read of its connections. True: there is a new rate.
    pub(super) fn meter(&mut self, read: meter::Read, (before, after): (bool, bool), now: Instant) -> bool {
        self.gauge.meter.read(now, read, before, after)
    }

    /// What has begun on this connection, and what is owed on it.
    pub(super) fn reading(&self, id: ConnectionId) -> Option<&Reading> {
        Some(&self.life.lines.get(&id)?.reading)
    }

    /// The peer has said something about the channel itself.
    pub(super) fn handle_told(&mut self, hands: &mut Hands, id: ConnectionId, told: Notice) -> Heard {
        match told {
            Notice::Hello(hello) => {
                let known = self.out.arrived(&hello);
                self.arrived(known, &mut hands.arrivals);
                self.has_spoken(hands, id);
                return Heard::MaySend;
            }
            Notice::Ack(count) => {
                // The memory of what is half sent is still being read.
                let inside = self.life.lines.get(&id).is_some_and(|c| c.writing.is_inside());
                let whole = self.out.sent(id) - u64::from(inside);
                if count > whole {
                    let fault = Violation::Acknowledged { count, sent: whole };
                    return Heard::Fault(Fault::Channel(fault));
                }
                let pieces: Vec<_> = self
                    .out
                    .acknowledged(id, count)
                    .map_or_else(|_| Vec::new(), Iterator::collect);
                self.arrived(pieces, &mut hands.arrivals);
            }
            Notice::Streams(count) => return Heard::Streams(count),
            Notice::Farewell => return Heard::Farewell,
            Notice::GivenUp => return Heard::GivenUp,
        }
        Heard::Nothing
    }

    /// Watches for what matters now. A connection that is neither read nor written is not watched at all, for
    /// a hang-up would be reported for ever.
    pub(super) fn watch(&mut self, hands: &Hands) {
        for connection in self.life.lines.values_mut() {
            let secure = &connection.secure;
            let interest = Interest {
                read: !hands.paused && !secure.ended,
                write: secure.full(),
            };
            let wanted = (interest.read || interest.write).then_some(interest);
            if wanted == connection.watched {
                continue;
            }
            match (connection.watched, wanted) {
                (None, Some(interest)) => {
                    let _ = hands.poller.add(&secure.socket, connection.number, interest);
                }
                (Some(_), Some(interest)) => {
                    let _ = hands.poller.change(&secure.socket, connection.number, interest);
                }
                (_, None) => hands.poller.remove(&secure.socket),
            }
            connection.watched = wanted;
        }
    }
}
