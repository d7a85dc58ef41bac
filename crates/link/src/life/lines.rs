// SPDX-License-Identifier: Apache-2.0
//! Which connections a channel has, which it should have beside those, and what each carries.

use core::net::SocketAddr;
use std::time::Duration;

use super::{Carrier, End, Life, Seen, State};
use crate::dial::LastSeen;
use crate::sharing::{Bands, Path, Takes, There};

/// Pause before a better way is looked for, doubled each time up to the second. Whoever is in the way drops a few
/// packets a minute.
const BETTER: (Duration, Duration) = (Duration::from_secs(3), Duration::from_secs(60));
/// How long a kind of connection that could not be had is not tried again.
const KINDS_AGAIN: Duration = Duration::from_secs(10);
impl<C: Carrier> Life<C> {
    /// Where the peer was when the connection broke.
    pub fn last_seen(&self) -> LastSeen {
        let closed = self.away().is_some_and(|a| a.end != End::Silent);
        match self.seen {
            Seen::Dialled(address) => LastSeen::Listening(address),
            Seen::Called(ip) if closed => LastSeen::Calling(ip),
            Seen::Nowhere | Seen::Called(_) => LastSeen::Nowhere,
        }
    }

    /// Where this end has reached the peer, or what stands for it; `None`: the peer has reached this end.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.seen {
            Seen::Dialled(address) => Some(address),
            Seen::Nowhere | Seen::Called(_) => None,
        }
    }

    /// One more connection is being made beside those that there are.
    pub fn handle_coming(&mut self) {
        self.coming += 1;
    }

    /// That has come to nothing.
    pub fn handle_not_coming(&mut self) {
        self.coming = self.coming.saturating_sub(1);
    }

    /// Connections that are there for all messages.
    pub fn common(&self) -> usize {
        self.lines.values().filter(|c| !c.line().is_apart()).count()
    }

    /// Those, and those that are being made.
    pub fn expected(&self) -> usize {
        self.common() + self.coming
    }

    /// Where to make one more beside those that there are, if there are to be so many and this end is who makes them. A
    /// channel that is away has none: what brings it back is another matter.
    pub fn room_for(&self, count: usize) -> Option<SocketAddr> {
        let wanted = self.state == State::Open && self.expected() < count;
        self.address().filter(|_| wanted)
    }

    /// Kinds of connection that there are.
    pub fn there(&self) -> There {
        let any = |path| self.lines.values().any(|c| c.line().via.path() == Some(path));
        There {
            direct: any(Path::Direct),
            gateway: any(Path::Gateway),
        }
    }

    /// Kinds of connection that are asked for and not there, unless they were looked for a short while ago.
    pub fn missing_kinds(&mut self, now: Duration, asked: There) -> Vec<Path> {
        if !self.is_open() || now < self.kinds_at {
            return Vec::new();
        }
        let there = self.there();
        let mut missing = vec![Path::Direct, Path::Gateway];
        missing.retain(|path| asked.has(*path) && !there.has(*path));
        if !missing.is_empty() {
            self.kinds_at = now + KINDS_AGAIN;
        }
        missing
    }

    /// All that there is for everybody's messages goes through a gateway.
    fn is_relayed(&self) -> bool {
        let relayed = |c: &C| c.line().is_apart() || c.line().via.is_relayed();
        self.common() > 0 && self.lines.values().all(relayed)
    }

    /// Whether to look for a better way now. `allowed`: the user has not ruled it out; `used`: the channel will be.
    pub fn wants_better(&mut self, now: Duration, allowed: bool, used: bool) -> bool {
        if !used || !self.is_open() || !self.is_relayed() {
            self.better_at = None;
            return false;
        }
        let (at, pause) = *self.better_at.get_or_insert((now + BETTER.0, BETTER.0));
        let wants = now >= at && allowed;
        if wants {
            let pause = (pause * 2).min(BETTER.1);
            self.better_at = Some((now + pause, pause));
        }
        wants
    }

    /// The classes that have connections of their own, where communicators ask for these.
    pub fn bands(&self, any_latency: bool, any_bulk: bool) -> Bands {
        Bands::of(self.common(), any_latency, any_bulk)
    }

    /// Which segments each connection takes, in their order.
    pub fn shares(&self, bands: Bands) -> Vec<Takes> {
        // Where nothing else is left those that are apart carry everything.
        let alone = self.common() == 0;
        let mut index = 0;
        let share = |c: &C| {
            let line = c.line();
            let share = match line.is_apart() {
                true => Takes::ALL,
                false => bands.share(index),
            };
            index += usize::from(!line.is_apart());
            Takes {
                path: line.via.path(),
                apart: line.is_apart() && !alone,
                ..share
            }
        };
        self.lines.values().map(share).collect()
    }
}
