// SPDX-License-Identifier: Apache-2.0
//! The rungs by which a peer of another local area is reached: directly; dialled by it, when asked through the
//! gateways; through the gateways. Which are tried first, what was settled when the job began says; then the others
//! follow.

use core::net::{IpAddr, SocketAddr};
use std::time::Duration;

use isthmus_wire::gateway::{AreaPath, Paths};
use isthmus_wire::hello::Purpose;

use crate::line::By;

/// Time that the better rungs have before the next one is tried beside them: an unanswered connection attempt is
/// repeated after 1 s (RFC 6298, section 2.1), so this allows for every round trip at which the network is of use.
const NEXT: Duration = Duration::from_millis(500);
/// Time given to an address before the next one is tried beside it; RFC 8305, section 8, recommends 250 ms, and at
/// least 100.
pub const STAGGER: Duration = Duration::from_millis(200);

/// An address, what the attempt goes by, and when it may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rung {
    /// Of the peer, or of our gateway.
    pub address: SocketAddr,
    /// What it goes by.
    pub by: By,
    /// Time after the begin of dialling.
    pub after: Duration,
}

/// Addresses of the peer itself, one after the other.
pub fn direct(addresses: impl IntoIterator<Item = SocketAddr>) -> Vec<Rung> {
    staggered(addresses, By::Direct, Duration::ZERO)
}

fn staggered(addresses: impl IntoIterator<Item = SocketAddr>, by: By, begin: Duration) -> Vec<Rung> {
    let each = (0u32..).zip(addresses);
    each.map(|(i, address)| Rung {
        address,
        by,
        after: begin + STAGGER * i,
    })
    .collect()
}

/// What is known of ways to other local areas, each named by its number.
#[derive(Clone, Debug)]
pub struct Ladder {
    gateway: Vec<SocketAddr>,
    ways: Vec<AreaPath>,
}

impl Ladder {
    /// What was settled when the job began.
    pub fn new(paths: &Paths) -> Self {
        let parse = |text: &String| Some(SocketAddr::new(text.parse::<IpAddr>().ok()?, paths.port));
        Self {
            gateway: match paths.port {
                0 => Vec::new(),
                _ => paths.addresses.iter().filter_map(parse).collect(),
            },
            ways: paths.ways.clone(),
        }
    }

    /// What a connection to this address goes by.
    pub fn by(&self, address: SocketAddr) -> By {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if self.gateway.contains(&address) {
            By::Gateway
        } else {
            By::Direct
        }
    }

    /// Whether our gateway is there.
    pub fn is_gateway(&self, ip: IpAddr) -> bool {
        self.gateway.iter().any(|a| a.ip().to_canonical() == ip)
    }

    /// Addresses of our gateway; none: there is none.
    pub fn gateway(&self) -> &[SocketAddr] {
        &self.gateway
    }

    /// How this area is reached.
    pub fn way(&self, area: Option<usize>) -> AreaPath {
        let way = area.and_then(|area| self.ways.get(area));
        way.copied().unwrap_or_default()
    }

    /// A connection came about: the next one to that area begins there.
    pub fn learn(&mut self, area: Option<usize>, by: By) {
        let way = area.and_then(|area| self.ways.get_mut(area));
        match (by, way) {
            (By::Gateway, Some(way @ (AreaPath::Unknown | AreaPath::Direct | AreaPath::Reverse))) => {
                *way = AreaPath::Gateway
            }
            (By::Direct, Some(way @ AreaPath::Gateway)) => *way = AreaPath::Direct,
            _ => {}
        }
    }

    /// What to try, and when. What was settled is less certain once a connection has been lost.
    pub fn rungs(&self, area: Option<usize>, addresses: Vec<SocketAddr>, purpose: Purpose) -> Vec<Rung> {
        let way = self.way(area);
        let again = purpose == Purpose::Resume;
        let (peer, call, gateway) = match way {
            AreaPath::OnlyDirect => (Some(Duration::ZERO), None, None),
            AreaPath::OnlyGateway => (None, None, Some(Duration::ZERO)),
            AreaPath::Reverse if !again => (Some(4 * NEXT), Some(Duration::ZERO), Some(2 * NEXT)),
            AreaPath::Gateway if !again => (Some(6 * NEXT), None, Some(Duration::ZERO)),
            AreaPath::Gateway => (Some(Duration::ZERO), Some(NEXT), Some(NEXT / 2)),
            AreaPath::Unknown | AreaPath::Direct | AreaPath::Reverse => {
                (Some(Duration::ZERO), Some(NEXT), Some(2 * NEXT))
            }
        };
        let ladder = [
            (&addresses[..], By::Direct, peer),
            (&self.gateway[..], By::Call, call),
            (&self.gateway[..], By::Gateway, gateway),
        ];
        let rungs = ladder.into_iter().filter_map(|(addresses, by, begin)| {
            let addresses = addresses.iter().copied();
            begin.map(|begin| staggered(addresses, by, begin))
        });
        rungs.flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ladder(way: AreaPath) -> Ladder {
        let paths = Paths {
            port: 9,
            addresses: vec!["10.0.0.9".into()],
            secret: [1; 32],
            ways: vec![AreaPath::Unknown, way],
        };
        Ladder::new(&paths)
    }

    fn order(way: AreaPath, purpose: Purpose) -> Vec<By> {
        let addresses = vec!["10.0.0.1:1".parse().unwrap()];
        let mut rungs = ladder(way).rungs(Some(1), addresses, purpose);
        rungs.sort_by_key(|rung| rung.after);
        rungs.into_iter().map(|rung| rung.by).collect()
    }

    #[test]
    fn what_was_settled_comes_first_and_everything_else_later() {
        use By::{Call, Direct, Gateway};
        assert_eq!(order(AreaPath::Unknown, Purpose::First), [Direct, Call, Gateway]);
        assert_eq!(order(AreaPath::Reverse, Purpose::First), [Call, Gateway, Direct]);
        assert_eq!(order(AreaPath::Gateway, Purpose::First), [Gateway, Direct]);
        // A better way is looked for whenever a connection is made again.
        assert_eq!(order(AreaPath::Gateway, Purpose::Resume), [Direct, Gateway, Call]);
        assert_eq!(order(AreaPath::OnlyGateway, Purpose::Resume), [Gateway]);
        assert_eq!(order(AreaPath::OnlyDirect, Purpose::First), [Direct]);
    }

    #[test]
    fn what_worked_is_learnt() {
        let mut ladder = ladder(AreaPath::Direct);
        ladder.learn(Some(1), By::Direct);
        assert_eq!(ladder.way(Some(1)), AreaPath::Direct);
        ladder.learn(Some(1), By::Gateway);
        assert_eq!(
            (ladder.way(Some(1)), ladder.way(None)),
            (AreaPath::Gateway, AreaPath::Unknown)
        );
        ladder.learn(Some(1), By::Direct);
        assert_eq!(ladder.way(Some(1)), AreaPath::Direct);
    }
}
