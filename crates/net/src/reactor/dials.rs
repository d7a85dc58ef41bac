// SPDX-License-Identifier: Apache-2.0
//! Reaching peers: what [`isthmus_link::dial`] and the life of a channel decide is done with sockets here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use isthmus_link::dial::{Attempt, Dial, LastSeen};
use isthmus_link::handshake::{Cover, Target};
use isthmus_link::ladder::{self, Ladder};
use isthmus_link::line::{By, Via};
use isthmus_link::sharing::There;
use isthmus_transport::{Path, Peer};
use isthmus_wire::gateway::{AreaPath, Paths};
use isthmus_wire::hello::Purpose;
use rustc_hash::{FxHashMap, FxHashSet};

use super::channel::Channel;
use super::failure::Failure;
use super::hands::Hands;
use super::handshake::{Handshake, cover_of};
use crate::config::Reach;
use crate::link::{Early, PlainEvent};
use crate::socket::{self, Interest};

/// Addresses of the peer that are tried for a connection of a kind that communicators ask for: what a host with IPv4
/// and IPv6 has. The first one to be proven is used; another one of the kind does no harm, and without one the messages
/// go with the others.
const OF_A_KIND: usize = 2;

/// A peer that is being dialled.
struct Dialling {
    way: Reach,
    dial: Dial<Failure>,
}

/// What has become of dialling for this time.
pub(super) struct Went {
    /// Attempts to reach these peers have failed.
    pub(super) failed: Vec<Peer>,
    /// The time is over for these.
    pub(super) over: Vec<Peer>,
}

/// Peers that are being dialled.
pub(super) struct Dials {
    ladder: Ladder,
    /// How long one goes on dialling.
    time: Duration,
    all: FxHashMap<Peer, Dialling>,
    /// Of those that are reached by plain connections: they have one, or will never have one again.
    taken: FxHashSet<Peer>,
    /// First frames of plain connections that are being made.
    early: FxHashMap<Peer, Arc<Early>>,
}

impl Dials {
    pub(super) fn new(paths: &Paths, time: Duration) -> Self {
        Self {
            ladder: Ladder::new(paths),
            time,
            all: FxHashMap::default(),
            taken: FxHashSet::default(),
            early: FxHashMap::default(),
        }
    }

    /// Whether there are gateways.
    pub(super) fn has_gateway(&self) -> bool {
        !self.ladder.gateway().is_empty()
    }

    /// Whether a plain connection to this peer is wanted.
    pub(super) fn admits_plain(&self, peer: Peer) -> bool {
        !self.taken.contains(&peer)
    }

    /// Begins to make a connection for this purpose, unless one is being made.
    pub(super) fn dial(&mut self, hands: &mut Hands, peer: Peer, purpose: Purpose) {
        if !self.all.contains_key(&peer) {
            let (addresses, unusable) = hands.places.candidates(peer);
            let rungs = self.ladder.rungs(hands.places.area(peer), addresses, purpose);
            let dial = Dial::new(purpose, hands.now(), self.time, rungs, unusable);
            let way = Reach::Tls;
            self.all.insert(peer, Dialling { way, dial });
            self.go_on(hands, peer, hands.now());
        }
    }

    /// Begins to make a plain connection, which takes these frames with it. Where there is one already, the main thread
    /// will find the frames when it gets to know it.
    pub(super) fn dial_plain(&mut self, hands: &mut Hands, peer: Peer, early: Arc<Early>) {
        if self.taken.contains(&peer) {
            return;
        }
        self.early.insert(peer, early);
        if !self.all.contains_key(&peer) {
            let (addresses, unusable) = hands.places.candidates(peer);
            let rungs = ladder::direct(addresses);
            let dial = Dial::new(Purpose::First, hands.now(), self.time, rungs, unusable);
            let way = Reach::Tcp;
            self.all.insert(peer, Dialling { way, dial });
            self.go_on(hands, peer, hands.now());
        }
    }

    /// Goes on with all.
    pub(super) fn handle_timeout(&mut self, hands: &mut Hands, now: Duration) -> Went {
        let (over, others): (Vec<Peer>, Vec<Peer>) = self
            .all
            .keys()
            .copied()
            .partition(|peer| self.all[peer].dial.is_over(now));
        let failed = others.into_iter().filter(|peer| self.go_on(hands, *peer, now));
        Went {
            failed: failed.collect(),
            over,
        }
    }

    /// Begins the attempts that are due. True: some have failed at once.
    fn go_on(&mut self, hands: &mut Hands, peer: Peer, now: Duration) -> bool {
        let mut failed = false;
        let Some(Dialling { way, dial }) = self.all.get_mut(&peer) else {
            return failed;
        };
        while let Some(attempt) = dial.poll_attempt(now) {
            match begin(hands, peer, *way, attempt, dial.purpose()) {
                Ok(number) => dial.handle_begun(attempt.candidate, number),
                Err(cause) => {
                    failed = true;
                    dial.handle_failed(attempt.candidate, cause, now);
                }
            }
        }
        hands.alarm(dial.poll_timeout());
        failed
    }

    /// An attempt at this address of the peer has ended without a connection. No cause: the peer has been asked to
    /// dial us.
    pub(super) fn handle_ended(&mut self, hands: &mut Hands, peer: Peer, candidate: usize, cause: Option<Failure>) {
        let now = hands.now();
        let Some(Dialling { dial, .. }) = self.all.get_mut(&peer) else {
            return;
        };
        match cause {
            Some(cause) => dial.handle_failed(candidate, cause, now),
            None => dial.handle_told(candidate, now),
        }
        hands.alarm(dial.poll_timeout());
    }

    /// What was tried, if nobody listens any more where the peer did.
    pub(super) fn refused(&self, peer: Peer, last: LastSeen) -> Option<String> {
        let dialling = self.all.get(&peer).filter(|d| d.dial.is_refused(last));
        dialling.map(|d| d.dial.explain())
    }

    /// What was tried.
    pub(super) fn explain(&self, peer: Peer) -> String {
        self.all.get(&peer).map(|d| d.dial.explain()).unwrap_or_default()
    }

    /// The peer has a connection, or is not wanted any more.
    pub(super) fn stop(&mut self, hands: &mut Hands, peer: Peer) {
        if let Some(dialling) = self.all.remove(&peer) {
            for number in dialling.dial.under_way() {
                hands.forget(number);
            }
        }
    }

    /// Dialling has come to nothing. What is to be said of it, where that is not the main thread's affair.
    pub(super) fn fail(&mut self, hands: &mut Hands, peer: Peer) -> Option<String> {
        let Dialling { way, dial } = self.all.get(&peer)?;
        let way = *way;
        let reason = format!(
            "{} cannot be reached from {}: tried for {} s: {}. {}",
            hands.places.name(peer),
            hands.places.own_name(),
            self.time.as_secs(),
            dial.report(),
            dial.cure()
        );
        self.stop(hands, peer);
        if way == Reach::Tls {
            return Some(reason);
        }
        self.taken.insert(peer);
        self.early.remove(&peer);
        hands.link.plain(PlainEvent::Failed { peer, reason });
        None
    }

    /// There is a plain connection. The frames that wait for it.
    pub(super) fn take_plain(&mut self, peer: Peer) -> Option<Arc<Early>> {
        self.taken.insert(peer);
        self.early.remove(&peer)
    }

    /// This end has reached the peer so: the next connection to its area begins there.
    pub(super) fn learn(&mut self, hands: &Hands, peer: Peer, by: By) {
        self.ladder.learn(hands.places.area(peer), by);
    }

    /// Whether our gateway is what is reached at this address.
    pub(super) fn is_gateway(&self, address: SocketAddr) -> bool {
        self.ladder.by(address) == By::Gateway
    }

    /// Through what a connection came that was accepted from this address.
    pub(super) fn caller(&self, hands: &Hands, peer: Peer, address: Option<SocketAddr>) -> Via {
        let Some(from) = address.map(|a| a.ip().to_canonical()) else {
            return Via::Unknown;
        };
        let (known, _) = hands.places.candidates(peer);
        match from {
            // It came from where the peer is, so it is the peer's own.
            from if known.iter().any(|a| a.ip() == from) => Via::Direct,
            from if self.ladder.is_gateway(from) => Via::OurGateway,
            from if from.is_loopback() => Via::ThisNode,
            _ => Via::Unknown,
        }
    }

    /// Makes connections beside the present ones, the same way, until there are so many.
    pub(super) fn dial_more(&self, hands: &mut Hands, channel: &mut Channel, count: usize) {
        while let Some(address) = channel.life.room_for(count) {
            if !self.dial_beside(hands, channel, address, self.ladder.by(address), Purpose::More) {
                return;
            }
        }
    }

    /// Makes connections of the kinds that are asked for and not there.
    pub(super) fn want_kinds(&self, hands: &mut Hands, channel: &mut Channel) {
        let asked = |path| channel.queues.paths().any(|p| p == path);
        let asked = There {
            direct: asked(Path::Direct),
            gateway: asked(Path::Gateway),
        };
        let way = self.ladder.way(hands.places.area(channel.peer));
        for path in channel.life.missing_kinds(hands.now(), asked) {
            let (purpose, by, addresses) = match path {
                Path::Direct if way != AreaPath::OnlyGateway => {
                    (Purpose::Direct, By::Direct, hands.places.candidates(channel.peer).0)
                }
                Path::Gateway if way != AreaPath::OnlyDirect => {
                    (Purpose::Gateway, By::Gateway, self.ladder.gateway().to_vec())
                }
                // The user rules it out for the whole job.
                _ => continue,
            };
            for address in addresses.into_iter().take(OF_A_KIND) {
                self.dial_beside(hands, channel, address, by, purpose);
            }
        }
    }

    /// Looks for a better way from time to time, as long as the channel is used: what was in the way may have gone.
    pub(super) fn want_better(&self, hands: &mut Hands, channel: &mut Channel, used: bool) {
        let allowed = self.ladder.way(hands.places.area(channel.peer)) != AreaPath::OnlyGateway;
        if channel.life.wants_better(hands.now(), allowed, used) {
            let (addresses, _) = hands.places.candidates(channel.peer);
            for address in addresses {
                self.dial_beside(hands, channel, address, By::Direct, Purpose::Better);
            }
        }
    }

    /// Begins to make one connection beside the present ones. False: that is not possible now.
    fn dial_beside(
        &self,
        hands: &mut Hands,
        channel: &mut Channel,
        address: SocketAddr,
        by: By,
        purpose: Purpose,
    ) -> bool {
        let (Some(rank), Ok(socket)) = (hands.places.rank(channel.peer), socket::connect(address)) else {
            return false;
        };
        let deadline = hands.now() + self.time;
        let target = Target {
            peer: rank,
            cover: Cover::Tls,
            by,
            makes_way: purpose == Purpose::More && channel.asked().extra() > 0,
            purpose,
        };
        let knock = hands.places.knock(channel.peer, address);
        let handshake = Handshake::dial(socket, deadline, target, channel.peer, 0).behind(knock);
        if hands.shake(handshake, Interest::WRITE).is_err() {
            return false;
        }
        channel.life.handle_coming();
        hands.alarm(deadline);
        true
    }
}

/// Connects. The number of the handshake that goes on by itself.
fn begin(hands: &mut Hands, peer: Peer, way: Reach, attempt: Attempt, purpose: Purpose) -> Result<u64, Failure> {
    let unknown = Failure::Bug("a process of another job was dialled");
    let rank = hands.places.rank(peer).ok_or(unknown)?;
    let target = Target {
        peer: rank,
        cover: cover_of(way).ok_or(Failure::Bug("a process that no connection reaches was dialled"))?,
        by: attempt.by,
        makes_way: false,
        purpose,
    };
    let socket = socket::connect(attempt.address)?;
    let knock = hands.places.knock(peer, attempt.address);
    let handshake = Handshake::dial(socket, attempt.deadline, target, peer, attempt.candidate).behind(knock);
    hands.shake(handshake, Interest::WRITE)
}
