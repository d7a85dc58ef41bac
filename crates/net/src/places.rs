// SPDX-License-Identifier: Apache-2.0
//! The processes of a job as this room needs them: which peer has which rank, how it is reached, addresses to dial and
//! words for messages.
//!
//! All transports of one start serve one job. A peer is looked up by its job and its rank: the same rank of another
//! job is another process.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use isthmus_transport::{Job, Peer, Process, Processes};
use isthmus_wire::place::{Node, Place, PlaceTable, Rank};

use isthmus_wire::gate::Key;

use crate::config::{AreaOf, Config, Doors, Reach, ReachOf};

/// Most addresses of one peer that are tried.
const MAX_CANDIDATES: usize = 32;

pub(crate) struct Places {
    processes: Arc<Processes>,
    job: Job,
    me: Rank,
    table: Arc<PlaceTable>,
    reach: ReachOf,
    area: AreaOf,
    doors: Doors,
}

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Places")
            .field("job", &self.job)
            .field("me", &self.me)
            .finish_non_exhaustive()
    }
}

impl Places {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            processes: config.processes.clone(),
            job: config.job,
            me: config.me,
            table: config.places.clone(),
            reach: config.reach.clone(),
            area: config.area.clone(),
            doors: config.doors.clone(),
        }
    }

    /// The job.
    pub(crate) fn job(&self) -> Job {
        self.job
    }

    /// This process, as wires and certificates name it.
    pub(crate) fn me(&self) -> Rank {
        self.me
    }

    /// All ranks of the job.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> {
        (0..self.table.places.len() as u32).map(Rank)
    }

    /// The process with this rank in the job; a stranger may claim any.
    pub(crate) fn peer(&self, rank: Rank) -> Option<Peer> {
        self.processes.peer(Process { job: self.job, rank })
    }

    /// How wires and certificates name it; `None`: it is not of this job.
    pub(crate) fn rank(&self, peer: Peer) -> Option<Rank> {
        let process = self.processes.process(peer)?;
        (process.job == self.job).then_some(process.rank)
    }

    /// How it is reached.
    pub(crate) fn reach(&self, rank: Rank) -> Reach {
        (self.reach)(rank)
    }

    /// Its local area; `None`: it is not of this job.
    pub(crate) fn area(&self, peer: Peer) -> Option<usize> {
        Some((self.area)(self.rank(peer)?) as usize)
    }

    fn place(&self, peer: Peer) -> Option<(&Place, &Node)> {
        let place = self.table.places.get(self.rank(peer)?.index())?;
        Some((place, self.table.nodes.get(place.node as usize)?))
    }

    /// For people: `rank 3 (host lab-2 of site lab)`.
    pub(crate) fn name(&self, peer: Peer) -> String {
        if let Some(called) = self.processes.called(peer) {
            return called;
        }
        let who = self.processes.name(peer);
        match self.place(peer) {
            Some((place, node)) => {
                let site = self
                    .table
                    .subjobs
                    .get(place.subjob as usize)
                    .map_or("?", |s| s.name.as_str());
                format!("{who} (host {} of site {site})", node.host)
            }
            None => format!("{who} (not reached from here)"),
        }
    }

    /// This process, for people.
    pub(crate) fn own_name(&self) -> String {
        self.name(self.peer(self.me).unwrap_or(Peer::NONE))
    }

    /// Addresses to try, most promising first, and those that are none.
    pub(crate) fn candidates(&self, peer: Peer) -> (Vec<SocketAddr>, Vec<String>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let Some((place, node)) = self.place(peer) else {
            return (good, bad);
        };
        for text in node.addresses.iter().take(MAX_CANDIDATES) {
            // With a port of its own, it is one that leads to the peer and to nobody else.
            let whole = text.parse::<SocketAddr>().ok();
            let plain = || Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, place.port));
            match whole.or_else(plain) {
                Some(address) if address.port() != 0 => good.push(address),
                _ => bad.push(text.clone()),
            }
        }
        good.dedup();
        let doors = self.doors_of(peer);
        good.extend(doors.iter().map(|(address, _)| *address));
        // A loopback address of another machine leads back to this one; it is only right when nothing else is.
        good.sort_by_key(|a| a.ip().is_loopback() && !doors.iter().any(|(door, _)| door == a));
        (good, bad)
    }

    fn doors_of(&self, peer: Peer) -> &[(SocketAddr, Key)] {
        let doors = self.rank(peer).and_then(|rank| self.doors.get(&rank.0));
        doors.map_or(&[], Vec::as_slice)
    }

    /// What is knocked with at this address to be let through to the peer, if that is a door of a gateway.
    pub(crate) fn knock(&self, peer: Peer, address: SocketAddr) -> Option<Key> {
        let door = self.doors_of(peer).iter().find(|(door, _)| *door == address);
        door.map(|(_, key)| *key)
    }
}
