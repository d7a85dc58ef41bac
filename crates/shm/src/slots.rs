// SPDX-License-Identifier: Apache-2.0
//! Which process of this node a rank is.

use isthmus_transport::Peer;

/// From rank to slot. The ranks of a node are nearly always consecutive; then it is a subtraction.
pub(crate) struct SlotOf {
    first: Peer,
    consecutive: usize,
    /// Sorted by rank, when they are not.
    sorted: Vec<(Peer, usize)>,
}

impl SlotOf {
    /// `peers`: the rank of each slot.
    pub(crate) fn new(peers: &[Peer]) -> Self {
        let first = peers.first().copied().unwrap_or(0);
        if peers
            .iter()
            .enumerate()
            .all(|(slot, &peer)| peer as usize == first as usize + slot)
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
            first: 0,
            consecutive: 0,
            sorted,
        }
    }

    #[inline]
    /// The slot of a rank.
    pub(crate) fn get(&self, peer: Peer) -> Option<usize> {
        let slot = peer.wrapping_sub(self.first) as usize;
        if slot < self.consecutive {
            return Some(slot);
        }
        let at = self.sorted.binary_search_by_key(&peer, |&(p, _)| p).ok()?;
        Some(self.sorted[at].1)
    }
}
