// SPDX-License-Identifier: Apache-2.0
//! Connections that carry the traffic of many processes, as those between gateways do: paced, little of it waiting in
//! the kernel, and where some of it is not to wait, with short queues on the way.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use isthmus_link::pipe::{GLIMPSE, Glimpses, LEAST, Look, Pipe, fastest, time_of_look};

use crate::pacing;
use crate::socket::{self, Mark};
use crate::tcpinfo::{TcpInfo, at_work, tcp_info};

/// What is handed to a connection at once: what leaves in so much time. Whoever is not to wait comes behind it.
const AHEAD: Duration = Duration::from_millis(2);
/// Least and most of that, bytes.
const PIECE: (usize, usize) = (16 << 10, 256 << 10);
/// One of the connections, at a look.
#[derive(Clone, Copy, Debug)]
pub struct Carrying<'a> {
    /// The socket.
    pub socket: &'a OwnedFd,
    /// Since the last look there was always more to send.
    pub busy: bool,
    /// Some of what it carries makes way for others.
    pub bulk: bool,
    /// All that it carries does.
    pub bulk_only: bool,
}

/// The connections between two gateways, as one of the two sends on them.
#[derive(Debug, Default)]
pub struct Trunkline {
    pipe: Pipe,
    glimpsed: Glimpses,
    held_back: bool,
    /// What each had acknowledged at the last look.
    before: Vec<(RawFd, u64)>,
    /// Fastest that it was of late, bytes per second.
    fastest: f64,
}

/// What came of a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Looked {
    /// Time until the next one.
    pub again: Duration,
    /// Bytes to hand to a connection at once.
    pub piece: usize,
}

impl Trunkline {
    /// A new connection. What the system lacks makes it slower, not wrong.
    pub fn begin(socket: &OwnedFd) {
        let _ = pacing::pace(socket, None);
        let _ = pacing::control(socket);
    }

    /// Looks at the round trip, between two looks at everything; where some traffic makes way, as often as this says.
    pub fn glimpse(&mut self, all: &[&OwnedFd]) -> Duration {
        let infos = all.iter().filter_map(|socket| tcp_info(socket));
        if let Some(info) = infos.max_by_key(|info| info.acknowledged) {
            self.glimpsed.add(info.round_trip);
        }
        GLIMPSE
    }

    /// Looks at the connections, `now` since any fixed time. Where some traffic makes way for others it is held to a
    /// rate that leaves queues short.
    pub fn look(&mut self, now: Duration, all: &[Carrying<'_>]) -> Looked {
        let known = all
            .iter()
            .filter_map(|c| Some((c.socket.as_raw_fd(), tcp_info(c.socket)?)));
        let known: Vec<(RawFd, TcpInfo)> = known.collect();
        let before = |fd: RawFd| {
            self.before
                .iter()
                .find(|(f, _)| *f == fd)
                .map_or(0, |(_, bytes)| *bytes)
        };
        let trip = at_work(known.iter().map(|(fd, info)| (*info, before(*fd))));
        self.before = known.iter().map(|(fd, info)| (*fd, info.acknowledged)).collect();
        let infos = || known.iter().map(|(_, info)| info);
        let shortest = infos()
            .map(|i| i.shortest)
            .filter(|t| !t.is_zero())
            .min()
            .unwrap_or_default();
        let look = Look {
            acknowledged: infos().map(|i| i.acknowledged).sum(),
            backlog: all.iter().any(|c| c.busy),
            round_trip: trip.unwrap_or(shortest),
            standing: self.glimpsed.take(),
            shortest,
            unsent: infos().map(|i| i.unsent).sum(),
            resent: infos().map(|i| i.resent).sum(),
            by_rate: true,
            streams: all.len(),
            most: all.len(),
            ..Look::default()
        };
        let _ = self.pipe.look(now, &look);
        self.hold_back(&look, all);
        let piece = self
            .pipe
            .rate()
            .map_or(PIECE.1, |rate| (rate * AHEAD.as_secs_f64()) as usize);
        let piece = piece.clamp(PIECE.0, PIECE.1);
        for connection in all {
            socket::hold_little(connection.socket, piece);
            socket::mark(
                connection.socket,
                if connection.bulk_only { Mark::Bulk } else { Mark::Normal },
            );
        }
        Looked {
            again: time_of_look(&look),
            piece,
        }
    }

    /// Those that carry what makes way leave queues short; where too much is lost all of them go slower.
    fn hold_back(&mut self, look: &Look, all: &[Carrying<'_>]) {
        let any_bulk = all.iter().any(|c| c.bulk);
        let polite = if any_bulk { self.pipe.polite(look) } else { None };
        let rates = [polite, self.pipe.cap()].into_iter().flatten();
        self.fastest = fastest(self.fastest, self.pipe.rate());
        let held: Vec<&OwnedFd> = all.iter().filter(|c| c.bulk || !any_bulk).map(|c| c.socket).collect();
        match rates.min_by(f64::total_cmp).map(|rate| rate.max(self.fastest * LEAST)) {
            Some(rate) => {
                self.held_back = true;
                let share = rate / held.len().max(1) as f64;
                held.into_iter().for_each(|socket| {
                    pacing::pace(socket, Some(share));
                });
                // They may have carried something else before.
                all.iter().filter(|c| any_bulk && !c.bulk).for_each(|c| {
                    pacing::pace(c.socket, None);
                });
            }
            None if std::mem::take(&mut self.held_back) => all.iter().for_each(|c| {
                pacing::pace(c.socket, None);
            }),
            None => {}
        }
    }
}
