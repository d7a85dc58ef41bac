// SPDX-License-Identifier: Apache-2.0
//! The place table as this room needs it: addresses to dial and words for messages.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use isthmus_transport::Peer;
use isthmus_wire::place::{Node, Place, PlaceTable, Rank};

/// Most addresses of one peer that are tried.
const MAX_CANDIDATES: usize = 32;

#[derive(Debug)]
pub(crate) struct Places {
    table: Arc<PlaceTable>,
}

impl Places {
    pub(crate) fn new(table: Arc<PlaceTable>) -> Self {
        Self { table }
    }

    /// The process with this rank in its job; a stranger may claim any.
    pub(crate) fn peer(&self, rank: Rank) -> Option<Peer> {
        (rank.index() < self.table.places.len()).then_some(Peer::new(rank.0))
    }

    /// How wires and certificates name it.
    pub(crate) fn rank(&self, peer: Peer) -> Rank {
        Rank(peer.number())
    }

    fn place(&self, peer: Peer) -> Option<(&Place, &Node)> {
        let place = self.table.places.get(self.rank(peer).index())?;
        Some((place, self.table.nodes.get(place.node as usize)?))
    }

    /// For people: `rank 3 (host lab-2 of site lab)`.
    pub(crate) fn name(&self, peer: Peer) -> String {
        let rank = self.rank(peer);
        match self.place(peer) {
            Some((place, node)) => {
                let site = self
                    .table
                    .subjobs
                    .get(place.subjob as usize)
                    .map_or("?", |s| s.name.as_str());
                format!("rank {rank} (host {} of site {site})", node.host)
            }
            None => format!("rank {rank} (not in this job)"),
        }
    }

    /// Addresses to try, most promising first, and those that are none.
    pub(crate) fn candidates(&self, peer: Peer) -> (Vec<SocketAddr>, Vec<String>) {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        let Some((place, node)) = self.place(peer) else {
            return (good, bad);
        };
        for text in node.addresses.iter().take(MAX_CANDIDATES) {
            match text.parse::<IpAddr>() {
                Ok(ip) if place.port != 0 => good.push(SocketAddr::new(ip, place.port)),
                _ => bad.push(text.clone()),
            }
        }
        // A loopback address of another machine leads back to this one; it is only right when nothing else is.
        good.sort_by_key(|a| a.ip().is_loopback());
        good.dedup();
        (good, bad)
    }
}
