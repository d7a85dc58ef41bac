// SPDX-License-Identifier: Apache-2.0
//! The rungs by which a peer of another local area is reached: directly; dialled by it, when asked through the
//! gateways; through the gateways. Which are tried first, what was settled when the job began says; then the others
//! follow.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use isthmus_link::line::By;
use isthmus_transport::Peer;
use isthmus_wire::gateway::{Paths, Way};
use isthmus_wire::hello::Purpose;

use crate::hello::Prover;

/// Time that the better rungs have before the next one is tried beside them: an unanswered connection attempt is
/// repeated after 1 s, so this allows for every round trip at which the network is of use.
const NEXT: Duration = Duration::from_millis(500);

/// An address, what the attempt goes by, and when it may begin.
pub(super) type Rung = (SocketAddr, By, Duration);

/// The local area of a peer.
type AreaOf = Box<dyn Fn(Peer) -> Option<usize> + Send>;

pub(super) struct Ladder {
    gateway: Vec<SocketAddr>,
    prover: Prover,
    ways: Vec<Way>,
    area: AreaOf,
}

impl Ladder {
    pub(super) fn new(paths: &Paths, area: AreaOf, job: &str) -> Self {
        let parse = |text: &String| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, paths.port));
        Self {
            gateway: match paths.port {
                0 => Vec::new(),
                _ => paths.addresses.iter().filter_map(parse).collect(),
            },
            prover: Prover::new(&paths.secret, job),
            ways: paths.ways.clone(),
            area,
        }
    }

    /// Proves connections with gateways; `None` where there is none.
    pub(super) fn prover(&self) -> Option<&Prover> {
        (!self.gateway.is_empty()).then_some(&self.prover)
    }

    /// What a connection to this address goes by.
    pub(super) fn by(&self, address: SocketAddr) -> By {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if self.gateway.contains(&address) {
            By::Gateway
        } else {
            By::Direct
        }
    }

    /// Whether our gateway is there.
    pub(super) fn is_gateway(&self, ip: IpAddr) -> bool {
        self.gateway.iter().any(|a| a.ip().to_canonical() == ip)
    }

    /// Addresses of our gateway.
    pub(super) fn gateway(&self) -> Vec<SocketAddr> {
        self.gateway.clone()
    }

    /// How the area of the peer is reached.
    pub(super) fn way(&self, peer: Peer) -> Way {
        let way = (self.area)(peer).and_then(|area| self.ways.get(area));
        way.copied().unwrap_or_default()
    }

    /// A connection came about: the next one to that area begins there.
    pub(super) fn learn(&mut self, peer: Peer, by: By) {
        let way = (self.area)(peer).and_then(|area| self.ways.get_mut(area));
        match (by, way) {
            (By::Gateway, Some(way @ (Way::Unknown | Way::Direct | Way::Reverse))) => *way = Way::Gateway,
            (By::Direct, Some(way @ Way::Gateway)) => *way = Way::Direct,
            _ => {}
        }
    }

    /// What to try, and when. What was settled is less certain once a connection has been lost.
    pub(super) fn rungs(&self, peer: Peer, direct: Vec<SocketAddr>, stagger: Duration, purpose: Purpose) -> Vec<Rung> {
        let way = self.way(peer);
        let again = purpose == Purpose::Resume;
        let (begin, call, gateway) = match way {
            Way::OnlyDirect => (Some(Duration::ZERO), None, None),
            Way::OnlyGateway => (None, None, Some(Duration::ZERO)),
            Way::Reverse if !again => (Some(4 * NEXT), Some(Duration::ZERO), Some(2 * NEXT)),
            Way::Gateway if !again => (Some(6 * NEXT), None, Some(Duration::ZERO)),
            Way::Gateway => (Some(Duration::ZERO), Some(NEXT), Some(NEXT / 2)),
            Way::Unknown | Way::Direct | Way::Reverse => (Some(Duration::ZERO), Some(NEXT), Some(2 * NEXT)),
        };
        let staggered = |addresses: Vec<SocketAddr>, by: By, begin: Option<Duration>| {
            let begin = begin.into_iter();
            begin.flat_map(move |begin| {
                let each = addresses.clone().into_iter().enumerate();
                each.map(move |(i, address)| (address, by, begin + stagger * i as u32))
                    .collect::<Vec<_>>()
            })
        };
        let mut rungs: Vec<Rung> = staggered(direct, By::Direct, begin).collect();
        rungs.extend(staggered(self.gateway.clone(), By::Call, call));
        rungs.extend(staggered(self.gateway.clone(), By::Gateway, gateway));
        rungs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(way: Way) -> Ladder {
        let paths = Paths {
            port: 9,
            addresses: vec!["10.0.0.9".into()],
            secret: [1; 32],
            ways: vec![Way::Unknown, way],
        };
        Ladder::new(&paths, Box::new(|peer| Some(peer.index())), "job")
    }

    fn order(way: Way, purpose: Purpose) -> Vec<By> {
        let direct = vec!["10.0.0.1:1".parse().unwrap()];
        let mut rungs = ladder(way).rungs(Peer::new(1), direct, Duration::from_millis(1), purpose);
        rungs.sort_by_key(|(_, _, at)| *at);
        rungs.into_iter().map(|(_, by, _)| by).collect()
    }

    #[test]
    fn what_was_settled_comes_first_and_everything_else_later() {
        use By::{Call, Direct, Gateway};
        assert_eq!(order(Way::Unknown, Purpose::First), [Direct, Call, Gateway]);
        assert_eq!(order(Way::Reverse, Purpose::First), [Call, Gateway, Direct]);
        assert_eq!(order(Way::Gateway, Purpose::First), [Gateway, Direct]);
        // A better way is looked for whenever a connection is made again.
        assert_eq!(order(Way::Gateway, Purpose::Resume), [Direct, Gateway, Call]);
        assert_eq!(order(Way::OnlyGateway, Purpose::Resume), [Gateway]);
        assert_eq!(order(Way::OnlyDirect, Purpose::First), [Direct]);
    }

    #[test]
    fn what_worked_is_learnt() {
        let mut ladder = ladder(Way::Direct);
        ladder.learn(Peer::new(1), By::Direct);
        assert_eq!(ladder.way(Peer::new(1)), Way::Direct);
        ladder.learn(Peer::new(1), By::Gateway);
        assert_eq!(
            (ladder.way(Peer::new(1)), ladder.way(Peer::new(7))),
            (Way::Gateway, Way::Unknown)
        );
        ladder.learn(Peer::new(1), By::Direct);
        assert_eq!(ladder.way(Peer::new(1)), Way::Direct);
    }
}
