// SPDX-License-Identifier: Apache-2.0
//! How a channel fills its link: how many connections it should have, and how fast each may go. What a [`Pipe`] finds
//! out about the link, and what the communicators of the channel ask for, come together here.
//!
//! ```text
//!   poll_glimpse ──> one measures ──> handle_glimpse       every few milliseconds, where queues are to stay short
//!   is_due       ──> one looks    ──> handle_look ──> connections to make; paces() for those that there are
//! ```

use std::time::Duration;

use crate::pipe::{Glimpses, LEAST, Look, Pipe, fastest, time_of_look};
use crate::sharing::{Bands, Takes};

/// What the communicators of a channel ask for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// So many connections.
    pub streams: Option<usize>,
    /// Some are of the class that is not to wait.
    pub latency: bool,
    /// Some make way for others.
    pub bulk: bool,
}

impl Demand {
    /// Connections that classes want beside those that fill the link.
    pub fn extra(self) -> usize {
        usize::from(self.latency) + usize::from(self.bulk)
    }
}

/// What a channel's connections are there for now.
#[derive(Clone, Copy, Debug)]
pub struct Use {
    /// What communicators ask for.
    pub asked: Demand,
    /// The classes that have connections of their own.
    pub bands: Bands,
    /// Gateways pass on what it sends, and see to queues themselves.
    pub relayed: bool,
}

impl Use {
    /// Whether somebody is not to wait, or makes way.
    fn is_polite(self) -> bool {
        self.bands.latency || self.asked.bulk
    }
}

/// What a look has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looked {
    /// There should be so many connections, which are more than there are.
    pub connections: Option<usize>,
    /// What was known of the link was wrong: congestion control is to look for its rate anew.
    pub anew: bool,
}

/// How fast connections may go.
#[derive(Clone, Debug, PartialEq)]
pub struct Paces {
    /// Of each, in their order, bytes per second; `None`: as fast as it can.
    pub each: Vec<Option<f64>>,
    /// From the first packet on; otherwise only where there is much to send: short messages leave at once, which on a
    /// connection that is paced takes half a round trip as long as its window is the first one.
    pub at_once: bool,
}

/// One channel's use of its link.
#[derive(Debug, Default)]
pub struct Filling {
    pipe: Pipe,
    /// Fastest rate of late.
    fastest: f64,
    /// Bytes per second that traffic may send which leaves queues short.
    polite: Option<f64>,
    glimpsed: Glimpses,
    /// When it is looked at again.
    look_at: Duration,
    /// Nothing was left to send at some time since the last look.
    ran_dry: bool,
}

impl Filling {
    /// What the link carries, bytes per second.
    pub fn know(&mut self, rate: Option<u64>) {
        self.pipe.know(rate);
    }

    /// So many channels, this one included, use it at the same time.
    pub fn share(&mut self, sharers: u32) {
        self.pipe.share(sharers);
    }

    /// What the link carried when it was kept busy.
    pub fn rate(&self) -> Option<f64> {
        self.pipe.rate()
    }

    /// Nothing is left to send.
    pub fn runs_dry(&mut self) {
        self.ran_dry = true;
    }

    /// When to look again.
    pub fn poll_timeout(&self) -> Duration {
        self.look_at
    }

    /// Whether to look now.
    pub fn is_due(&self, now: Duration) -> bool {
        now >= self.look_at
    }

    /// Whether to measure the round trip now.
    pub fn poll_glimpse(&mut self, now: Duration, used: Use) -> bool {
        used.is_polite() && self.glimpsed.are_due(now)
    }

    /// So long it was.
    pub fn handle_glimpse(&mut self, trip: Duration) {
        self.glimpsed.add(trip);
    }

    /// This is how the channel does now; its `backlog` says whether there is something to send at the moment, and its
    /// `standing` nothing.
    pub fn handle_look(&mut self, now: Duration, look: Look, used: Use) -> Looked {
        let asked = used.asked;
        let look = Look {
            backlog: look.backlog && !std::mem::take(&mut self.ran_dry),
            standing: self.glimpsed.take(),
            ..look
        };
        self.look_at = now + time_of_look(&look);
        let more = self.pipe.look(now, &look);
        let anew = self.pipe.was_wrong();
        let polite = used.is_polite() && !used.relayed;
        self.polite = if polite { self.pipe.polite(&look) } else { None };
        self.fastest = fastest(self.fastest, self.pipe.rate());
        let connections = match asked.streams {
            Some(wanted) => Some(wanted + asked.extra()),
            None if asked.extra() > 0 => Some(more.unwrap_or(look.streams).max(1 + asked.extra())),
            None => more,
        };
        Looked {
            connections: connections.map(|n| n.min(look.most)).filter(|n| *n > look.streams),
            anew,
        }
    }

    /// How fast each connection may go that takes this.
    pub fn paces(&self, bands: Bands, shares: &[Takes]) -> Paces {
        let least = self.fastest * LEAST;
        let held_back = [self.polite, self.pipe.cap()].into_iter().flatten();
        let slower = held_back.map(|rate| rate.max(least)).min_by(f64::total_cmp);
        let known = self.pipe.share_of_known();
        let rate = slower.into_iter().chain(known).min_by(f64::total_cmp);
        // Not those that are kept free.
        let is_held = |takes: &Takes| takes.normal && (takes.bulk || !bands.bulk);
        let count = shares.iter().filter(|takes| is_held(takes)).count().max(1);
        let pace = |takes: &Takes| rate.filter(|_| is_held(takes)).map(|rate| rate / count as f64);
        Paces {
            each: shares.iter().map(pace).collect(),
            at_once: slower.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Bands = Bands {
        latency: false,
        bulk: false,
    };

    fn look(streams: usize) -> Look {
        Look {
            shortest: Duration::from_millis(20),
            round_trip: Duration::from_millis(20),
            streams,
            most: 64,
            ..Look::default()
        }
    }

    fn used(asked: Demand, relayed: bool) -> Use {
        let bands = NONE;
        Use { asked, bands, relayed }
    }

    fn wanted(asked: Demand, streams: usize) -> Option<usize> {
        let mut filling = Filling::default();
        filling
            .handle_look(Duration::ZERO, look(streams), used(asked, false))
            .connections
    }

    #[test]
    fn classes_have_connections_beside_those_that_were_asked_for() {
        let asked = |streams, latency, bulk| Demand { streams, latency, bulk };
        assert_eq!(wanted(asked(None, false, false), 1), None);
        assert_eq!(wanted(asked(None, true, false), 1), Some(2));
        assert_eq!(wanted(asked(None, true, true), 1), Some(3));
        assert_eq!(wanted(asked(None, true, true), 3), None, "there they are");
        assert_eq!(wanted(asked(Some(4), false, true), 1), Some(5));
        assert_eq!(wanted(asked(Some(1000), false, false), 1), Some(64), "nobody has more");
    }

    #[test]
    fn what_is_known_of_a_link_holds_all_but_those_that_are_kept_free() {
        let mut filling = Filling::default();
        filling.know(Some(10_000_000));
        let all = filling.paces(NONE, &[Takes::ALL; 2]);
        assert_eq!(all.each, [Some(5_100_000.0); 2]);
        assert!(!all.at_once, "what is short leaves before that");
        let bands = Bands {
            latency: true,
            bulk: true,
        };
        let shares = [0, 1, 2].map(|index| bands.share(index));
        assert_eq!(filling.paces(bands, &shares).each, [None, None, Some(10_200_000.0)]);
        filling.share(2);
        assert_eq!(filling.paces(bands, &shares).each, [None, None, Some(5_100_000.0)]);
        filling.know(None);
        assert_eq!(filling.paces(NONE, &[Takes::ALL]).each, [None]);
    }

    #[test]
    fn who_makes_way_leaves_queues_short_unless_a_gateway_sees_to_that() {
        let asked = Demand {
            bulk: true,
            ..Demand::default()
        };
        let paced = |relayed| {
            let mut filling = Filling::default();
            for i in 0..50u32 {
                let now = Duration::from_millis(100) * i;
                filling.poll_glimpse(now, used(asked, relayed));
                filling.handle_glimpse(Duration::from_millis(60));
                let seen = Look {
                    acknowledged: u64::from(i) * 1_000_000,
                    backlog: true,
                    round_trip: Duration::from_millis(60),
                    ..look(2)
                };
                filling.handle_look(now, seen, used(asked, relayed));
            }
            filling.paces(NONE, &[Takes::ALL])
        };
        let own = paced(false);
        assert!(own.at_once && own.each[0].is_some_and(|rate| rate < 10e6), "{own:?}");
        assert_eq!(paced(true).each, [None]);
    }

    #[test]
    fn one_that_ran_dry_has_no_backlog() {
        let rate = |dry: bool| {
            let mut filling = Filling::default();
            for i in 0..20u32 {
                let seen = Look {
                    acknowledged: u64::from(i) * 1_000_000,
                    backlog: true,
                    ..look(1)
                };
                let now = Duration::from_millis(100) * i;
                filling.handle_look(now, seen, used(Demand::default(), false));
                if dry {
                    filling.runs_dry();
                }
            }
            filling.rate().map(|rate| (rate / 1e6).round())
        };
        assert_eq!((rate(false), rate(true)), (Some(10.0), None));
    }
}
