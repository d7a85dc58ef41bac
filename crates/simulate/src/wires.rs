// SPDX-License-Identifier: Apache-2.0
//! The links: what messages cost, and until when each link is occupied.

use super::outcome::{LinkUse, NONE};
use super::queue::{Busy, Moment};
use isthmus_schedule::step::Rank;
use isthmus_topology::{Level, Link, Links, Topology};
use rustc_hash::FxHashMap;

/// What a message costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) level: Level,
    pub(super) latency: u64,
    pub(super) send: u64,
    pub(super) gap: u64,
    pub(super) receive: u64,
}

impl Cost {
    fn of(level: Level, link: &Link, bytes: u64) -> Self {
        Self {
            level,
            latency: link.latency,
            send: link.send.at(bytes),
            gap: link.gap.at(bytes),
            receive: link.receive.at(bytes),
        }
    }
}

/// A connection between two processes of different local areas while it learns what its way carries.
#[derive(Clone, Copy, Debug)]
struct Connection {
    /// Bytes that may be under way.
    window: u64,
    /// Bytes of these that are, since the round began.
    used: u64,
    /// When they are acknowledged.
    until: u64,
    /// When the last message arrives: later ones do not overtake it.
    arrives: u64,
}

impl Connection {
    fn new(window: u64) -> Self {
        Self {
            window,
            used: 0,
            until: 0,
            arrives: 0,
        }
    }

    /// A message leaves while its link is busy with it, if nothing holds it up. Gives its arrival.
    fn carry(&mut self, bytes: u64, busy: &Busy, latency: u64) -> u64 {
        let Busy { begin, end, .. } = *busy;
        let (mut at, mut left) = (begin, bytes);
        if at >= self.until {
            let grown = if self.used >= self.window { 2 } else { 1 };
            self.round(at, latency, grown);
        }
        while left > self.window - self.used {
            left -= self.window - self.used;
            at = at.max(self.until);
            self.round(at, latency, 2);
        }
        self.used += left;
        let share = u128::from(end - begin) * u128::from(left) / u128::from(bytes.max(1));
        let rest = u64::try_from(share).unwrap_or(u64::MAX);
        let last = end.max(at.saturating_add(rest));
        self.arrives = self.arrives.max(last.saturating_add(latency));
        self.arrives
    }

    /// What was under way is acknowledged, and more may be.
    fn round(&mut self, now: u64, latency: u64, grown: u64) {
        self.window = self.window.saturating_mul(grown);
        self.used = 0;
        self.until = now.saturating_add(latency.saturating_mul(2));
    }
}

/// One link in one direction: until when it is occupied, and what went over it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkDirection {
    free_at: u64,
    messages: u64,
    bytes: u64,
    busy: u64,
    /// Record of the message that occupied it last.
    pub(super) last: u32,
}

impl LinkDirection {
    pub(super) const fn new() -> Self {
        Self {
            free_at: 0,
            messages: 0,
            bytes: 0,
            busy: 0,
            last: NONE,
        }
    }

    /// A message takes the link as soon as that is free, not before `now`. What decided the
    /// begin is that or the message before. `record` is that of the message.
    pub(super) fn take(&mut self, bytes: u64, gap: u64, now: Moment, record: u32) -> Busy {
        let cause = if self.free_at > now.time { self.last } else { now.cause };
        let begin = now.time.max(self.free_at);
        let end = begin.saturating_add(gap);
        (self.free_at, self.last) = (end, record);
        self.messages += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.busy = self.busy.saturating_add(gap);
        Busy { begin, end, cause }
    }

    /// What went over it, if anything did.
    pub(super) fn used(&self, level: Level, from: u32, to: u32) -> Option<LinkUse> {
        (self.messages > 0).then_some(LinkUse {
            level,
            from,
            to,
            messages: self.messages,
            bytes: self.bytes,
            busy: self.busy,
        })
    }
}

/// What messages cost, and the links that processes share.
pub(super) struct Wires<'a> {
    topology: &'a Topology,
    links: &'a Links,
    /// Of each level the size that was asked for last: most messages are of few sizes.
    known: [Option<(u64, Cost)>; Level::COUNT],
    /// Begin and end as in [`LinkUse`].
    shared: FxHashMap<(Level, u32, u32), LinkDirection>,
    /// Bytes that a new connection between local areas carries before the first acknowledgement.
    window: Option<u64>,
    /// By sender and receiver, where these count.
    connections: FxHashMap<(Rank, Rank), Connection>,
}

impl<'a> Wires<'a> {
    pub(super) fn new(topology: &'a Topology, links: &'a Links, window: Option<u64>) -> Self {
        Self {
            topology,
            links,
            known: [None; Level::COUNT],
            shared: FxHashMap::default(),
            window,
            connections: FxHashMap::default(),
        }
    }

    /// What a message of so many bytes between two processes costs.
    pub(super) fn cost(&mut self, from: Rank, to: Rank, bytes: u64) -> Cost {
        let level = self.topology.level_between(from, to);
        if level == Level::WideArea {
            // Pairs of local areas may have links of their own.
            let (level, link) = self.links.between(self.topology, from, to);
            return Cost::of(level, link, bytes);
        }
        match self.known[level.index()] {
            Some((size, cost)) if size == bytes => cost,
            _ => {
                let cost = Cost::of(level, self.links.level(level), bytes);
                self.known[level.index()] = Some((bytes, cost));
                cost
            }
        }
    }

    /// The link between two processes of different nodes.
    pub(super) fn lane(&mut self, level: Level, from: Rank, to: Rank) -> &mut LinkDirection {
        let (a, b) = (self.topology.clusters_of(from), self.topology.clusters_of(to));
        let (from, to) = match level {
            Level::WideArea => (a[0], b[0]),
            Level::LocalArea => (a[1], b[1]),
            _ => (a[2], NONE),
        };
        self.shared.entry((level, from, to)).or_insert_with(LinkDirection::new)
    }

    /// When a message arrives in another local area for which its link is busy so long.
    pub(super) fn arrival(&mut self, from: Rank, to: Rank, bytes: u64, busy: &Busy, latency: u64) -> u64 {
        let Some(window) = self.window else {
            return busy.end.saturating_add(latency);
        };
        let new = || Connection::new(window.max(1));
        let connection = self.connections.entry((from, to)).or_insert_with(new);
        connection.carry(bytes, busy, latency)
    }

    /// Visits the records of the messages that occupied links last.
    pub(super) fn causes(&mut self, visit: &mut impl FnMut(&mut u32)) {
        self.shared.values_mut().for_each(|lane| visit(&mut lane.last));
    }

    /// Use of these links.
    pub(super) fn used(&self) -> impl Iterator<Item = LinkUse> {
        let used = self.shared.iter();
        used.filter_map(|(&(level, from, to), lane)| lane.used(level, from, to))
    }
}
