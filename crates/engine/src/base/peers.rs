// SPDX-License-Identifier: Apache-2.0
//! What is known of peers.
//!
//! Most processes of a large job never exchange a message. Before they do, nothing tells them apart but how they are
//! reached, how far away they are and whose contexts they name. Peers that agree in all that are of one kind: a byte
//! each. What concerns one peer alone stands in pages, which are made when the first of their peers is written to,
//! and go when all of their peers have left.

use std::ops::{Index, IndexMut};

use isthmus_protocol::credit::Account;
use isthmus_transport::Peer;
use rustc_hash::FxHashMap;

/// Peers of a page.
const PAGE: usize = 32;

/// What is known of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerState {
    route: u8,
    level: u8,
    /// It is this process itself.
    own: bool,
    /// Whose contexts it names, as this process numbers worlds.
    world: u32,
    /// Something waits to be sent to it.
    queued: bool,
    lost: bool,
    /// It broke the protocol, and is about to be lost: nothing that it sends counts.
    broken: bool,
    /// Messages shorter than this may be sent without being asked for; 0 for this process itself, which has no
    /// transport.
    unasked: u64,
    /// Messages that it may be copying out of the memory of this process.
    offered: u32,
    account: Account,
}

impl PeerState {
    /// Number of its transport.
    #[inline(always)]
    pub(crate) fn route(&self) -> u8 {
        self.route
    }

    /// How far away it is.
    #[inline(always)]
    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// Whether it is this process itself.
    #[inline(always)]
    pub(crate) fn own(&self) -> bool {
        self.own
    }

    /// Whose contexts it names, as this process numbers worlds.
    #[inline(always)]
    pub(crate) fn world(&self) -> u32 {
        self.world
    }

    /// Whether something waits to be sent to it.
    #[inline(always)]
    pub(crate) fn queued(&self) -> bool {
        self.queued
    }

    pub(crate) fn set_queued(&mut self, queued: bool) {
        self.queued = queued;
    }

    #[inline(always)]
    pub(crate) fn lost(&self) -> bool {
        self.lost
    }

    /// It is lost: nothing is sent to it any more.
    pub(crate) fn is_lost_now(&mut self) {
        (self.lost, self.queued) = (true, false);
    }

    /// Whether it broke the protocol.
    #[inline(always)]
    pub(crate) fn broken(&self) -> bool {
        self.broken
    }

    pub(crate) fn breaks(&mut self) {
        self.broken = true;
    }

    /// Messages shorter than this may be sent to it without being asked for.
    #[inline(always)]
    pub(crate) fn unasked(&self) -> u64 {
        self.unasked
    }

    /// Messages that it may be copying out of the memory of this process.
    pub(crate) fn offered(&self) -> u32 {
        self.offered
    }

    /// It may copy another one.
    pub(crate) fn offer(&mut self) {
        self.offered += 1;
    }

    /// It has done with one of them.
    pub(crate) fn end_offer(&mut self) {
        self.offered -= 1;
    }

    /// The credit that both sides give each other.
    #[inline(always)]
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }

    #[inline(always)]
    pub(crate) fn account_mut(&mut self) -> &mut Account {
        &mut self.account
    }

    /// Its messages cross a wide-area network.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.level == 0
    }
}

/// All that tells a peer from others before anything has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acquaintance {
    route: u8,
    level: u8,
    own: bool,
    world: u32,
    unasked: u64,
}

impl Acquaintance {
    /// A peer of the transport `route`, as far away as `level` says, that names contexts of this world.
    pub(crate) fn new(route: u8, level: u8, world: u32) -> Self {
        Self {
            route,
            level,
            own: false,
            world,
            unasked: 0,
        }
    }

    /// It may be sent messages shorter than this without being asked.
    pub(crate) fn takes(self, unasked: u64) -> Self {
        Self { unasked, ..self }
    }

    /// It is this process itself.
    pub(crate) fn itself(self) -> Self {
        Self { own: true, ..self }
    }

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
    /// Of each page some of whose peers have left, and not all: which have, a bit each.
    left: FxHashMap<usize, u32>,
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
        self.kind_of(|state| known.is_of(state) && !state.lost, || known.state())
    }

    fn kind_of(&mut self, is_it: impl Fn(&PeerState) -> bool, make: impl FnOnce() -> PeerState) -> Option<u8> {
        let at = self.first.iter().position(is_it);
        let at = u8::try_from(at.unwrap_or(self.first.len())).ok()?;
        if usize::from(at) == self.first.len() {
            self.first.push(make());
        }
        Some(at)
    }

    /// A peer that is lost has left for good: nothing is known of it but that. The page goes with its last one.
    pub(crate) fn leave(&mut self, peer: Peer) {
        let (place, known) = (peer.index(), self[peer]);
        let has_left = self.first[usize::from(self.kinds[place])].lost;
        if has_left || !known.lost || known.queued || known.offered > 0 {
            return;
        }
        let last = Acquaintance::new(known.route, known.level, known.world);
        let mut gone = last.state();
        gone.lost = true;
        let Some(kind) = self.kind_of(|state| state.lost && last.is_of(state), || gone) else {
            return;
        };
        self.kinds[place] = kind;
        if let Some(page) = &mut self.pages[place / PAGE] {
            page[place % PAGE] = gone;
        }
        let left = self.left.entry(place / PAGE).or_default();
        *left |= 1 << (place % PAGE);
        if *left == u32::MAX {
            self.left.remove(&(place / PAGE));
            self.pages[place / PAGE] = None;
        }
    }

    /// What is known of a peer; `None`: it is not there.
    #[inline]
    pub(crate) fn get(&self, peer: Peer) -> Option<&PeerState> {
        (peer.index() < self.kinds.len()).then(|| &self[peer])
    }

    /// The page with this place, which is made if it is not there.
    #[inline]
    fn page(&mut self, place: usize) -> &mut [PeerState; PAGE] {
        let Self {
            kinds, first, pages, ..
        } = self;
        match &mut pages[place / PAGE] {
            Some(page) => page,
            none => none.insert(make(kinds, first, place / PAGE)),
        }
    }
}

/// A page of peers of which nothing is known but their kinds.
#[cold]
#[inline(never)]
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
    fn those_who_have_left_take_a_byte_each() {
        let mut peers = Peers::default();
        peers.meet(known(0));
        for _ in 0..1000 {
            peers.meet(known(0));
            let peer = Peer::new(peers.len() as u32 - 1);
            peers[peer].offer();
            peers[peer].is_lost_now();
            peers.leave(peer);
            assert!(peers[peer].lost && peers[peer].offered == 1, "it is not done with yet");
            peers[peer].end_offer();
            peers.leave(peer);
            peers.leave(peer);
            assert!(peers[peer].lost && peers[peer].offered == 0 && peers[peer].route == 1);
        }
        assert_eq!(
            (peers.first.len(), peers.pages.iter().flatten().count()),
            (2, 2),
            "of the first and the last"
        );
        assert_eq!(peers.left.len(), 2);
        peers.leave(Peer::new(0));
        assert!(!peers[Peer::new(0)].lost, "whoever is not lost has not left");
        peers.meet(known(0));
        assert!(!peers[Peer::new(1001)].lost, "who comes next is none of them");
    }

    #[test]
    fn kinds_may_be_more_than_a_byte_tells_apart() {
        let mut peers = Peers::default();
        (0..600).for_each(|world| peers.meet(known(world)));
        assert_eq!(peers.first.len(), 256);
        assert_eq!(all(&peers), (0..600).collect::<Vec<_>>());
    }
}
