// SPDX-License-Identifier: Apache-2.0
//! Local areas one after the other: within the time that a message between them takes, they know nothing of each other.
//!
//! So each area's events until then are handled together while its processes are near in memory. The result does not
//! depend on it: events of different local areas meet in deliveries alone, and those have an order of their own.

use super::queue::{Delivery, Key, Queue};
use isthmus_schedule::step::Rank;
use isthmus_topology::{Links, Topology};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Processes of local areas that are handled together, at least.
const TOGETHER: usize = 64;

/// Some local areas.
pub(super) struct Area {
    pub(super) queue: Queue,
    /// How many messages have arrived for which no receive was posted.
    early: FxHashMap<Key, u32>,
    /// When it is to be looked at: what the agenda says.
    planned: u64,
}

impl Area {
    fn new() -> Self {
        Self {
            queue: Queue::new(),
            early: FxHashMap::default(),
            planned: u64::MAX,
        }
    }

    /// A message arrives before its receive is posted.
    pub(super) fn keep(&mut self, key: Key) {
        *self.early.entry(key).or_default() += 1;
    }

    /// Takes a message that has arrived.
    pub(super) fn take(&mut self, key: Key) -> bool {
        if self.early.is_empty() {
            return false;
        }
        let Some(messages) = self.early.get_mut(&key) else {
            return false;
        };
        *messages -= 1;
        if *messages == 0 {
            self.early.remove(&key);
        }
        true
    }
}

/// All local areas, and which is next.
pub(super) struct Areas {
    pub(super) all: Vec<Area>,
    /// Area of each process.
    homes: Vec<u32>,
    /// How long a message between areas takes at least; 0: there is one area.
    lookahead: u64,
    agenda: BinaryHeap<Reverse<(u64, u32)>>,
}

impl Areas {
    pub(super) fn new(topology: &Topology, links: &Links) -> Self {
        let lookahead = links.least_wide_latency();
        let homes = homes(topology, if lookahead > 0 { TOGETHER } else { usize::MAX });
        let count = homes.iter().max().map_or(1, |last| last + 1);
        Self {
            all: (0..count).map(|_| Area::new()).collect(),
            homes,
            lookahead,
            agenda: BinaryHeap::new(),
        }
    }

    pub(super) fn home(&self, rank: Rank) -> u32 {
        self.homes[rank as usize]
    }

    /// A message goes to another local area.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        let home = self.home(delivery.to);
        self.all[home as usize].queue.deliver(delivery);
        self.plan(home, delivery.time);
    }

    fn plan(&mut self, area: u32, time: u64) {
        let planned = &mut self.all[area as usize].planned;
        if time < *planned {
            *planned = time;
            self.agenda.push(Reverse((time, area)));
        }
    }

    /// The area is to be looked at again when it has its next event.
    pub(super) fn leave(&mut self, area: u32) {
        self.all[area as usize].planned = u64::MAX;
        if let Some(time) = self.all[area as usize].queue.next_time() {
            self.plan(area, time);
        }
    }

    /// Until when all areas can be handled one after the other: as soon as the first event may have consequences
    /// elsewhere.
    pub(super) fn horizon(&self) -> Option<u64> {
        let Reverse((time, _)) = self.agenda.peek()?;
        Some(match self.lookahead {
            0 => u64::MAX,
            lookahead => time.saturating_add(lookahead - 1),
        })
    }

    /// The next area with events that are not later.
    pub(super) fn next(&mut self, until: u64) -> Option<u32> {
        while let Some(&Reverse((time, area))) = self.agenda.peek().filter(|next| next.0.0 <= until) {
            self.agenda.pop();
            if self.all[area as usize].planned == time {
                return Some(area);
            }
        }
        None
    }
}

/// Number of each process's area: local areas in order of their first processes, several small ones together.
fn homes(topology: &Topology, together: usize) -> Vec<u32> {
    let site = |rank| topology.clusters_of(rank)[0];
    let mut sizes: FxHashMap<u32, usize> = FxHashMap::default();
    (0..topology.size()).for_each(|rank| *sizes.entry(site(rank)).or_default() += 1);
    let mut areas: FxHashMap<u32, u32> = FxHashMap::default();
    let (mut current, mut filled) = (0, 0);
    let home = |rank| {
        *areas.entry(site(rank)).or_insert_with(|| {
            if filled >= together {
                (current, filled) = (current + 1, 0);
            }
            filled += sizes[&site(rank)];
            current
        })
    };
    (0..topology.size()).map(home).collect()
}
