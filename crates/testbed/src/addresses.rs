// SPDX-License-Identifier: Apache-2.0
//! Addresses of hosts, gateways and tunnels, and whose an address is.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Address of host `number` (from 1) of a site.
pub(crate) fn address(site: usize, number: usize) -> Ipv4Addr {
    let octet = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    Ipv4Addr::new(10, octet(site + 1), 0, octet(number))
}

/// IPv6 address of host `number` (from 1) of a site.
pub(crate) fn address6(site: usize, number: usize) -> Ipv6Addr {
    let word = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    Ipv6Addr::new(0xfd00, 0, 0, word(site + 1), 0, 0, 0, word(number))
}

/// Address of a host's end of the tunnel between all sites.
pub(crate) fn tunnel_address(site: usize, number: usize) -> Ipv4Addr {
    let octet = |n: usize| u8::try_from(n).unwrap_or(u8::MAX);
    Ipv4Addr::new(10, 200, octet(site + 1), octet(number))
}

/// All these addresses of a site.
pub(crate) fn tunnel_network(site: usize) -> String {
    format!("{}/24", tunnel_address(site, 0))
}

/// Address of a site's gateway on its LAN.
pub(crate) fn gateway_address(site: usize) -> Ipv4Addr {
    address(site, 254)
}

/// The numbers of the site and of its host, both from 0, that `address` belongs to, whether or not there are such.
pub(crate) fn place_of(address: [u8; 4]) -> Option<(usize, usize)> {
    match address {
        [10, 200, site @ 1..=255, host @ 1..=255] | [10, site @ 1..=255, 0, host @ 1..=255] => {
            Some((usize::from(site) - 1, usize::from(host) - 1))
        }
        _ => None,
    }
}

/// As [`place_of`], for IPv6.
pub(crate) fn place_of6(address: [u8; 16]) -> Option<(usize, usize)> {
    let [
        0xfd,
        0,
        0,
        0,
        0,
        0,
        0,
        site @ 1..=255,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        host @ 1..=255,
    ] = address
    else {
        return None;
    };
    Some((usize::from(site) - 1, usize::from(host) - 1))
}
