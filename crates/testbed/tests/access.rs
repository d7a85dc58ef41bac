// SPDX-License-Identifier: Apache-2.0
//! Firewalls, address translation and interfaces do what they say.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests stop at what they did not expect and say what they skip"
)]

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use isthmus_testbed::{Error, Host, Testbed, Topology};

/// Long enough for a handshake here.
const WAIT: Duration = Duration::from_millis(1500);

fn bed(access: &str) -> Option<Testbed> {
    let topology = Topology::grid("2x1")
        .and_then(|t| t.round_trip("2ms")?.access(access))
        .unwrap();
    match Testbed::start(&topology) {
        Ok(bed) => Some(bed),
        Err(error @ Error::NotPermitted { .. }) => {
            eprintln!("SKIPPED: {error}");
            None
        }
        Err(Error::Tool { tool, said, .. }) if tool.starts_with("nft") => {
            eprintln!("SKIPPED: no firewall here: {tool}: {said}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Who the other end sees, when a connection comes about.
fn reach(from: &Host, to: &Host, address: IpAddr, port: u16) -> Option<IpAddr> {
    let any: SocketAddr = if address.is_ipv6() {
        ([0u16; 8], port).into()
    } else {
        ([0u8; 4], port).into()
    };
    let listener = to.in_network(|| TcpListener::bind(any)).unwrap().unwrap();
    let _open = from
        .in_network(|| TcpStream::connect_timeout(&(address, port).into(), WAIT))
        .unwrap()
        .ok()?;
    Some(listener.accept().unwrap().1.ip())
}

/// Whether ssh gets through to a host, by name.
fn ssh(bed: &Testbed, from: &str, to: &str) -> bool {
    if !bed.limits().is_empty() {
        eprintln!("SKIPPED: {}", bed.limits()[0]);
        return true;
    }
    let options = ["-o", "ConnectTimeout=2", to, "true"];
    bed.host(from)
        .unwrap()
        .output("ssh", &options)
        .unwrap()
        .status
        .success()
}

#[test]
fn what_is_denied_does_not_come_in_and_answers_do() {
    let Some(bed) = bed("b=denied:5000-5001") else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    assert_eq!(reach(&a, &b, b.reached(), 7000), None);
    assert_eq!(reach(&a, &b, b.reached(), 5001), Some(a.reached()));
    assert_eq!(reach(&b, &a, a.reached(), 7000), Some(b.reached()));
    assert!(ssh(&bed, "a1", "b1") && ssh(&bed, "b1", "a1"));
}

#[test]
fn translated_connections_come_from_the_gateway() {
    let Some(bed) = bed("b=nat") else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    assert_eq!(reach(&b, &a, a.reached(), 7000), Some("10.2.0.254".parse().unwrap()));
    assert_eq!(reach(&a, &b, b.reached(), 7000), None);
    assert!(ssh(&bed, "a1", "b1"));
}

#[test]
fn only_ssh_leaves_where_only_ssh_may() {
    let Some(bed) = bed("b=nat-ssh") else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    assert_eq!(reach(&b, &a, a.reached(), 7000), None);
    assert!(ssh(&bed, "a1", "b1") && ssh(&bed, "b1", "a1"));
}

#[test]
fn a_jump_host_is_the_only_way_in() {
    let Some(bed) = bed("b=jump") else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    let straight = a.in_network(|| TcpStream::connect_timeout(&(b.reached(), 22).into(), WAIT));
    assert!(straight.unwrap().is_err());
    assert_eq!(reach(&b, &a, a.reached(), 7000), None);
    assert!(ssh(&bed, "a1", "b1") && ssh(&bed, "b1", "a1") && ssh(&bed, "b1", "bjump"));
}

#[test]
fn hosts_without_ipv4_are_reached_over_ipv6() {
    let Some(bed) = bed("b=ipv6") else { return };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    assert_eq!(b.reached(), "fd00:0:0:2::1".parse::<IpAddr>().unwrap());
    assert_eq!(reach(&a, &b, b.reached(), 7000), Some("fd00:0:0:1::1".parse().unwrap()));
    assert_eq!(reach(&a, &b, b.address().into(), 7001), None);
    assert!(ssh(&bed, "a1", "b1"));
}

#[test]
fn of_several_interfaces_one_leads_nowhere_and_one_everywhere() {
    let Some(bed) = bed("a=interfaces,b=interfaces") else {
        return;
    };
    let (a, b) = (bed.host("a1").unwrap(), bed.host("b1").unwrap());
    assert_eq!(reach(&a, &b, b.reached(), 7000), None);
    assert_eq!(reach(&a, &b, "10.200.2.1".parse().unwrap(), 7000), Some(a.reached()));
    // The dead bridge's address is one's own.
    let dead: IpAddr = "172.17.0.1".parse().unwrap();
    assert_eq!(reach(&a, &b, dead, 7001), None);
    assert_eq!(reach(&b, &b, dead, 7002), Some(dead));
    assert!(ssh(&bed, "a1", "b1"));
}
