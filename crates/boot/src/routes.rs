// SPDX-License-Identifier: Apache-2.0
//! Which transport serves which peer, and how far away peers are.

use isthmus_net::Reach;
use isthmus_topology::{Level, Topology};
use isthmus_transport::Peer;
use isthmus_wire::place::PlaceTable;

/// The process of our own world with this rank: they are the first that the engine knows, in order of rank.
pub(crate) fn peer_of(rank: u32) -> Peer {
    Peer::new(rank)
}

/// Rank in MPI_COMM_WORLD of a process of our own world, to which the peer belongs.
pub(crate) fn rank_of(peer: Peer) -> u32 {
    peer.number()
}

/// A kind of transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransportKind {
    /// The process itself.
    Own,
    SharedMemory,
    /// The vendor MPI.
    Vendor,
    Tcp,
    Tls,
}

/// How two processes (ranks in MPI_COMM_WORLD) reach each other; the same seen from both ends.
pub(crate) fn way(topology: &Topology, a: u32, b: u32) -> TransportKind {
    if a == b {
        return TransportKind::Own;
    }
    match topology.level_between(a, b) {
        Level::WideArea => TransportKind::Tls,
        Level::LocalArea | Level::Machine => TransportKind::Tcp,
        Level::Vendor => TransportKind::Vendor,
        Level::Node => TransportKind::SharedMemory,
    }
}

/// As the room `net` asks.
pub(crate) fn reach(topology: &Topology, me: u32, peer: u32) -> Reach {
    match way(topology, me, peer) {
        TransportKind::Own | TransportKind::SharedMemory | TransportKind::Vendor => Reach::Otherwise,
        TransportKind::Tcp => Reach::Tcp,
        TransportKind::Tls => Reach::Tls,
    }
}

/// The processes on a process's node, by slot.
pub(crate) fn node_peers(places: &PlaceTable, me: u32) -> Vec<Peer> {
    let node = places.places[me as usize].node;
    let mut peers: Vec<(u32, u32)> = (0u32..)
        .zip(&places.places)
        .filter(|(_, p)| p.node == node)
        .map(|(rank, p)| (p.slot, rank))
        .collect();
    peers.sort_unstable();
    peers.into_iter().map(|(_, rank)| peer_of(rank)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isthmus_wire::place::{Node, Place, Representation, Subjob};

    fn table() -> PlaceTable {
        let subjob = |name: &str, lan: &str, first_rank| Subjob {
            name: name.into(),
            lan: lan.into(),
            first_rank,
            count: 2,
            programs: vec![(0, 0)],
        };
        let node = |subjob| Node {
            host: "h".into(),
            addresses: vec![],
            subjob,
            processes: 2,
            processors: 0,
        };
        let place = |subjob, slot| Place {
            subjob,
            node: subjob,
            port: 1,
            slot,
            representation: Representation([1; 8]),
            vendor: None,
        };
        PlaceTable {
            subjobs: vec![subjob("a", "x", 0), subjob("b", "x", 2), subjob("c", "y", 4)],
            nodes: vec![node(0), node(1), node(2)],
            places: vec![
                place(0, 1),
                place(0, 0),
                place(1, 0),
                place(1, 1),
                place(2, 0),
                place(2, 1),
            ],
        }
    }

    #[test]
    fn the_way_follows_the_distance() {
        let topology = Topology::new(&table());
        let ways: Vec<TransportKind> = (0..5).map(|peer| way(&topology, 0, peer)).collect();
        assert_eq!(
            ways,
            [
                TransportKind::Own,
                TransportKind::SharedMemory,
                TransportKind::Tcp,
                TransportKind::Tcp,
                TransportKind::Tls
            ]
        );
        assert_eq!(node_peers(&table(), 0), [1, 0].map(peer_of));
    }
}
