// SPDX-License-Identifier: Apache-2.0
//! Which process of this node a peer is.

use isthmus_transport::Peer;

/// From peer to slot. The peers of a node are nearly always consecutive; then it is a subtraction.
pub(crate) struct SlotOf {
    first: Peer,
    consecutive: usize,
    /// Sorted by peer, when they are not.
    sorted: Vec<(Peer, usize)>,
}

impl Default for SlotOf {
    /// Of nobody.
    fn default() -> Self {
        Self {
            first: Peer::NONE,
            consecutive: 0,
            sorted: Vec::new(),
        }
    }
}

impl SlotOf {
    /// `peers`: that of each slot.
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let first = peers.first().copied().unwrap_or(Peer::NONE);
        if peers
            .iter()
            .enumerate()
            .all(|(slot, &peer)| peer.index_from(first) == slot)
        {
            return Self {
                first,
                consecutive: peers.len(),
                sorted: Vec::new(),
            };
        }
        let mut sorted: Vec<_> = peers.iter().enumerate().map(|(slot, &peer)| (peer, slot)).collect();
        sorted.sort_unstable();
        Self {
            first: Peer::NONE,
            consecutive: 0,
            sorted,
        }
    }

    /// One more, among those that are not consecutive.
    pub(crate) fn add(&mut self, peer: Peer, slot: usize) {
        let at = self.sorted.partition_point(|&(known, _)| known < peer);
        self.sorted.insert(at, (peer, slot));
    }

    #[inline]
    /// The slot of a peer.
    pub(crate) fn get(&self, peer: Peer) -> Option<usize> {
        let slot = peer.index_from(self.first);
        if slot < self.consecutive {
            return Some(slot);
        }
        let at = self.sorted.binary_search_by_key(&peer, |&(p, _)| p).ok()?;
        Some(self.sorted[at].1)
    }
}
