// SPDX-License-Identifier: Apache-2.0
//! Ways to processes of other jobs, and from them, through gateways ([`isthmus_wire::gate`]): theirs, the own one, or
//! both.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use isthmus_core::joining::{Door, Held, Passage, Reach, Start};
use isthmus_net::{Doors, Gatekeeper};
use isthmus_wire::gate::{Gate, Key, MAX_ADDRESSES};
use isthmus_wire::place::Place;

use crate::reaching::{addresses, is_behind_gateway, random};

/// Doors of one gateway that are tried for one process: a machine may have many addresses.
const TRIED: usize = 4;

/// Keys that are in force as long as this is there.
struct KeysInForce {
    gateway: Arc<Gatekeeper>,
    keys: Vec<Key>,
}

impl Drop for KeysInForce {
    fn drop(&mut self) {
        self.gateway.shut(&self.keys);
    }
}

/// Others come to this port of the process by the gate that is given, as long as the rest is kept.
pub(crate) fn enter(gateway: &Arc<Gatekeeper>, port: u16) -> Option<(Gate, Held)> {
    let key = random().ok()?;
    let led = gateway.lead(vec![(key, own(gateway, port), None)]).ok()?;
    let keys = vec![key];
    let kept = Box::new(KeysInForce {
        gateway: gateway.clone(),
        keys,
    });
    led.first()
        .is_some_and(|led| *led)
        .then(|| (gateway.gate(key), kept as Held))
}

/// Where the gateway finds a port of this process.
fn own(gateway: &Gatekeeper, port: u16) -> Vec<SocketAddr> {
    let loops = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    let all = addresses();
    let mut ips: Vec<IpAddr> = all.iter().filter_map(|address| address.parse().ok()).collect();
    ips.truncate(MAX_ADDRESSES - loops.len());
    // On another node these would lead to somebody else.
    if is_behind_gateway() || gateway.doors().iter().any(|door| ips.contains(&door.ip())) {
        ips.extend(loops);
    }
    ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect()
}

/// Ways out to the first of these that answers, where it is knocked with this key, if with any.
pub(crate) fn pass(gateway: &Arc<Gatekeeper>, to: Vec<SocketAddr>, knock: Option<Key>) -> Option<Passage> {
    let key = random().ok()?;
    let led = gateway.lead(vec![(key, to, knock)]).ok()?;
    let keys = vec![key];
    let held: Held = Box::new(KeysInForce {
        gateway: gateway.clone(),
        keys,
    });
    let doors = gateway.doors().iter().take(TRIED).map(|door| (*door, key)).collect();
    led.first().is_some_and(|led| *led).then_some(Passage { doors, held })
}

/// Doors that lead to each of these addresses, as the machine of the gateway has them.
pub(crate) fn lead(gateway: &Arc<Gatekeeper>, to: Vec<SocketAddr>) -> Option<(Vec<Vec<Door>>, Held)> {
    let keys: Vec<Key> = to.iter().map(|_| random()).collect::<Result<_, _>>().ok()?;
    let leads = keys.iter().zip(to).map(|(key, to)| (*key, vec![to], None));
    let led = gateway.lead(leads.collect()).ok()?;
    let doors = |key: &Key| {
        let key = *key;
        gateway.doors().iter().take(TRIED).map(move |door| (*door, Some(key)))
    };
    let doors = keys.iter().map(|key| doors(key).collect()).collect();
    let held: Held = Box::new(KeysInForce {
        gateway: gateway.clone(),
        keys,
    });
    led.into_iter().all(|led| led).then_some((doors, held))
}

/// Doors that lead to members at other sites: of their gateways, then of the own one, which leads on to theirs or to
/// them.
pub(crate) fn doors(start: &Start<'_>, gateway: Option<&Arc<Gatekeeper>>) -> (Doors, Option<Held>) {
    let mut doors = Doors::new();
    let mut leads = Vec::new();
    let members = (0..).zip(start.places.places.iter().zip(&start.gates));
    for (rank, (place, gate)) in members.filter(|(rank, _)| (start.reach)(*rank) == Some(Reach::Far)) {
        if let Some(gate) = gate {
            doors.insert(rank, gate.doors().take(TRIED).map(|door| (door, gate.key)).collect());
        }
        let to: Vec<SocketAddr> = match gate {
            Some(gate) => gate.doors().collect(),
            None => direct(start, place),
        };
        if let (Some(_), Ok(key), false) = (gateway, random(), to.is_empty()) {
            leads.push((rank, (key, to, gate.as_ref().map(|gate| gate.key))));
        }
    }
    let Some(gateway) = gateway.filter(|_| !leads.is_empty()) else {
        return (doors, None);
    };
    let (ranks, leads): (Vec<u32>, Vec<_>) = leads.into_iter().unzip();
    let keys: Vec<Key> = leads.iter().map(|(key, ..)| *key).collect();
    // Without it they may still be reached in other ways.
    let led = gateway.lead(leads).unwrap_or_default();
    let led = ranks.into_iter().zip(&keys).zip(led).filter(|(_, led)| *led);
    for ((rank, key), _) in led {
        let own = gateway.doors().iter().take(TRIED).map(|door| (*door, *key));
        doors.entry(rank).or_default().extend(own);
    }
    let held: Held = Box::new(KeysInForce {
        gateway: gateway.clone(),
        keys,
    });
    (doors, Some(held))
}

/// Addresses of a member, but for those that lead back to where they are used.
fn direct(start: &Start<'_>, place: &Place) -> Vec<SocketAddr> {
    let node = start.places.nodes.get(place.node as usize);
    let all = node.into_iter().flat_map(|node| &node.addresses);
    let plain = all.filter_map(|address| address.parse::<IpAddr>().ok());
    let good = plain.filter(|ip| !ip.is_loopback()).take(MAX_ADDRESSES);
    good.map(|ip| SocketAddr::new(ip, place.port)).collect()
}
