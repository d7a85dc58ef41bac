// SPDX-License-Identifier: Apache-2.0
//! What is known of peers.
//!
//! Most processes of a large job never exchange a message. Before they do, nothing tells them apart but how they are
//! reached, how far away they are and whose contexts they name. Peers that agree in all that are of one kind: a byte
//! each. What concerns one peer alone stands in pages, which are made when the first of their peers is written to.

use std::ops::{Index, IndexMut};

use isthmus_protocol::credit::Account;
use isthmus_transport::Peer;

/// Peers of a page.
const PAGE: usize = 32;

/// What is known of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerState {
    pub(crate) route: u8,
    pub(crate) level: u8,
    /// It is this process itself.
    pub(crate) own: bool,
    /// Whose contexts it names, as this process numbers worlds.
    pub(crate) world: u32,
    /// Something waits to be sent to it.
    pub(crate) queued: bool,
    pub(crate) lost: bool,
    /// It broke the protocol, and is about to be lost: nothing that it sends counts.
    pub(crate) broken: bool,
    /// Messages shorter than this may be sent without being asked for; 0 for this process itself, which has no
    /// transport.
    pub(crate) unasked: u64,
    /// Messages that it may be copying out of the memory of this process.
    pub(crate) offered: u32,
    pub(crate) account: Account,
}

impl PeerState {
    /// Its messages cross a wide-area network.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.level == 0
    }
}

/// All that tells a peer from others before anything has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquaintance {
    pub(crate) route: u8,
    pub(crate) level: u8,
    pub(crate) own: bool,
    pub(crate) world: u32,
    pub(crate) unasked: u64,
}

impl Acquaintance {
    fn state(self) -> PeerState {
        PeerState {
            route: self.route,
            level: self.level,
            own: self.own,
            world: self.world,
            queued: false,
            lost: false,
            broken: false,
            unasked: self.unasked,
            offered: 0,
            account: Account::default(),
        }
    }

    fn is_of(self, state: &PeerState) -> bool {
        let Self {
            route,
            level,
            own,
            world,
            unasked,
        } = self;
        (route, level, own, world, unasked) == (state.route, state.level, state.own, state.world, state.unasked)
    }
}

type Page = Box<[PeerState; PAGE]>;

/// What is known of all peers. A peer that is not there is a mistake of the engine.
#[derive(Default)]
pub(crate) struct Peers {
    /// Of each peer: its place in `first`.
    kinds: Vec<u8>,
    /// What is known of peers at first.
    first: Vec<PeerState>,
    pages: Vec<Option<Page>>,
}

impl Peers {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Another peer, the next one by number.
    pub(crate) fn meet(&mut self, known: Acquaintance) {
        let place = self.kinds.len();
        let kind = self.kind(known);
        self.kinds.push(kind.unwrap_or(0));
        if self.pages.len() * PAGE <= place {
            self.pages.push(None);
        }
        if kind.is_none() || self.pages[place / PAGE].is_some() {
            self.page(place)[place % PAGE] = known.state();
        }
    }

    /// The kind of such a peer, which may be a new one; `None`: there are more kinds than a byte tells apart.
    fn kind(&mut self, known: Acquaintance) -> Option<u8> {
        let at = self.first.iter().position(|state| known.is_of(state));
        let at = u8::try_from(at.unwrap_or(self.first.len())).ok()?;
        if usize::from(at) == self.first.len() {
            self.first.push(known.state());
        }
        Some(at)
    }

    /// What is known of a peer; `None`: it is not there.
    #[inline]
    pub(crate) fn get(&self, peer: Peer) -> Option<&PeerState> {
        (peer.index() < self.kinds.len()).then(|| &self[peer])
    }

    /// The page with this place, which is made if it is not there.
    #[inline]
    fn page(&mut self, place: usize) -> &mut [PeerState; PAGE] {
        let Self { kinds, first, pages } = self;
        pages[place / PAGE].get_or_insert_with(|| make(kinds, first, place / PAGE))
    }
}

/// A page of peers of which nothing is known but their kinds.
#[cold]
fn make(kinds: &[u8], first: &[PeerState], page: usize) -> Page {
    let state = |at: usize| {
        let kind = kinds.get(page * PAGE + at).copied().unwrap_or_default();
        first[usize::from(kind)]
    };
    Box::new(std::array::from_fn(state))
}

impl Index<Peer> for Peers {
    type Output = PeerState;

    #[inline]
    fn index(&self, peer: Peer) -> &PeerState {
        let place = peer.index();
        match &self.pages[place / PAGE] {
            Some(page) => &page[place % PAGE],
            None => &self.first[usize::from(self.kinds[place])],
        }
    }
}

impl IndexMut<Peer> for Peers {
    #[inline]
    fn index_mut(&mut self, peer: Peer) -> &mut PeerState {
        let place = peer.index();
        &mut self.page(place)[place % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(world: u32) -> Acquaintance {
        Acquaintance {
            route: 1,
            level: 2,
            own: false,
            world,
            unasked: 100,
        }
    }

    fn all(peers: &Peers) -> Vec<u32> {
        Peer::first(peers.len() as u32).map(|peer| peers[peer].world).collect()
    }

    #[test]
    fn a_peer_takes_a_byte_until_it_is_written_to() {
        let mut peers = Peers::default();
        (0..1000).for_each(|at| peers.meet(known(at / 500)));
        assert_eq!((peers.first.len(), peers.pages.iter().flatten().count()), (2, 0));
        peers[Peer::new(40)].lost = true;
        peers[Peer::new(41)].queued = true;
        assert_eq!(peers.pages.iter().flatten().count(), 1, "they are neighbours");
        let lost = Peer::first(1000).filter(|&peer| peers[peer].lost);
        assert_eq!(lost.collect::<Vec<_>>(), [Peer::new(40)]);
        assert_eq!(all(&peers), (0..1000).map(|at| at / 500).collect::<Vec<_>>());
        assert!(peers.get(Peer::new(1000)).is_none());
        assert_eq!(peers.get(Peer::new(999)).map(|state| state.unasked), Some(100));
    }

    #[test]
    fn newcomers_share_the_page_of_one_that_was_written_to() {
        let mut peers = Peers::default();
        peers.meet(known(0));
        peers[Peer::new(0)].lost = true;
        peers.meet(known(7));
        assert_eq!((all(&peers), peers[Peer::new(1)].lost), (vec![0, 7], false));
    }

    #[test]
    fn kinds_may_be_more_than_a_byte_tells_apart() {
        let mut peers = Peers::default();
        (0..600).for_each(|world| peers.meet(known(world)));
        assert_eq!(peers.first.len(), 256);
        assert_eq!(all(&peers), (0..600).collect::<Vec<_>>());
    }
}
