// SPDX-License-Identifier: Apache-2.0
//! Addresses of this node's interfaces, asked of the kernel over netlink.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Names of interfaces that usually lead nowhere but into containers and virtual machines of this host.
const INNER: [&str; 6] = ["docker", "virbr", "veth", "br-", "cni", "lxc"];

/// Addresses at which peers may reach this node, most promising first, as text without port: those of interfaces with
/// a default route, then others, then those of container bridges. Loopback and link-local addresses
/// are left out, unless there is nothing else: then all peers are on this host and loopback is the answer.
pub fn local_addresses() -> Vec<String> {
    texts(sorted().iter())
}

/// As [`local_addresses`], of what the user pinned (`ISTHMUS_ADDRESS`: addresses and names of interfaces, separated by
/// `,`) what this node has; all of them when it has nothing of it, as for addresses that a router in front of the site
/// has.
pub fn own_addresses(pinned: &str) -> Vec<String> {
    let all = sorted();
    let found = words(pinned).flat_map(|word| all.iter().filter(move |a| a.is(word)));
    let mut own: Vec<String> = found.map(|a| a.ip.to_string()).collect();
    own.dedup();
    if own.is_empty() { texts(all.iter()) } else { own }
}

/// Equal at processes that reach each other over the loopback interface: what the kernel was named when it started, and
/// the number of the network that the process sees. Nothing: the system does not say.
pub fn machine() -> Option<[u8; 32]> {
    let network = rustix::fs::stat("/proc/self/ns/net").ok()?.st_ino;
    let kernel = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: Vec<u8> = kernel.into_iter().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).filter_map(|pair| std::str::from_utf8(pair).ok());
    let bytes = pairs.filter_map(|pair| u8::from_str_radix(pair, 16).ok());
    let mut machine = [0; 32];
    machine
        .iter_mut()
        .take(16)
        .zip(bytes)
        .for_each(|(place, byte)| *place = byte);
    machine[16..24].copy_from_slice(&network.to_le_bytes());
    Some(machine)
}

/// What the user pinned as addresses at which this node can be dialled: those of interfaces that are named, and
/// addresses as they are.
///
/// # Errors
/// What is neither an address nor an interface of this node, for people.
pub fn pinned_addresses(pinned: &str) -> Result<Vec<String>, String> {
    pinned_among(pinned, &sorted())
}

fn pinned_among(pinned: &str, all: &[Address]) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for word in words(pinned) {
        if word.parse::<IpAddr>().is_ok() {
            found.push(word.to_owned());
            continue;
        }
        let before = found.len();
        found.extend(all.iter().filter(|a| a.label == word).map(|a| a.ip.to_string()));
        if found.len() == before {
            let mut names: Vec<&str> = all.iter().map(|a| a.label.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            return Err(format!(
                "'{word}' (ISTHMUS_ADDRESS) is neither an address nor an interface of this machine that others can reach; interfaces: {}",
                names.join(", ")
            ));
        }
    }
    Ok(found)
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn sorted() -> Vec<Address> {
    let mut found = interface_addresses().unwrap_or_default();
    let routed = default_route_interfaces();
    found.sort_by_key(|a| a.rank(&routed));
    found
}

fn texts<'a>(found: impl Iterator<Item = &'a Address>) -> Vec<String> {
    let mut texts: Vec<String> = found.map(|a| a.ip.to_string()).collect();
    if texts.is_empty() {
        texts.push(Ipv4Addr::LOCALHOST.to_string());
    }
    texts
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Address {
    ip: IpAddr,
    interface: u32,
    /// Empty when the kernel does not tell (IPv6).
    label: String,
}

impl Address {
    /// Whether the word names it: as an address or by its interface.
    fn is(&self, word: &str) -> bool {
        self.label == word || word.parse() == Ok(self.ip)
    }

    fn rank(&self, routed: &[String]) -> (u8, bool) {
        let class = if routed.contains(&self.label) {
            0
        } else if INNER.iter().any(|prefix| self.label.starts_with(prefix)) {
            2
        } else {
            1
        };
        (class, self.ip.is_ipv6())
    }
}

fn interface_addresses() -> Result<Vec<Address>, Errno> {
    // Protocol 0 is NETLINK_ROUTE.
    let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    rustix::net::send(&socket, &request(), SendFlags::empty())?;
    let mut found = Vec::new();
    // An answer has a few kilobytes; the kernel ends it. The bound is against surprises.
    for _ in 0..1024 {
        if !read_answers(&socket, &mut found)? {
            break;
        }
    }
    name_interfaces(&mut found);
    Ok(found)
}

/// `struct nlmsghdr` and `struct ifaddrmsg`: RTM_GETADDR, all families.
fn request() -> [u8; 24] {
    const GET_ADDRESSES: u16 = 22;
    const REQUEST_DUMP: u16 = 0x301;
    let mut out = [0; 24];
    out[..4].copy_from_slice(&24u32.to_ne_bytes());
    out[4..6].copy_from_slice(&GET_ADDRESSES.to_ne_bytes());
    out[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    out
}

/// False when the answer is complete.
fn read_answers(socket: &OwnedFd, found: &mut Vec<Address>) -> Result<bool, Errno> {
    const NEW_ADDRESS: u16 = 20;
    const DONE: u16 = 3;
    const ERROR: u16 = 2;
    let mut buffer = [0u8; 32 << 10];
    let (n, _) = rustix::net::recv(socket, &mut buffer[..], RecvFlags::empty())?;
    let mut rest = &buffer[..n];
    while let Some((kind, body, next)) = message(rest) {
        match kind {
            NEW_ADDRESS => found.extend(address(body)),
            DONE | ERROR => return Ok(false),
            _ => {}
        }
        rest = next;
    }
    Ok(n > 0)
}

fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    let body = bytes.get(16..length)?;
    Some((kind, body, bytes.get(aligned(length)..).unwrap_or_default()))
}

/// From `struct ifaddrmsg` and its attributes. `None` for addresses that are of no use to others.
fn address(body: &[u8]) -> Option<Address> {
    const SCOPE_LINK: u8 = 253;
    const FLAG_UNUSABLE: u8 = 0x08 | 0x20 | 0x40; // duplicate, deprecated, tentative
    let (flags, scope) = (*body.get(2)?, *body.get(3)?);
    if scope >= SCOPE_LINK || flags & FLAG_UNUSABLE != 0 {
        return None;
    }
    let interface = u32::from_ne_bytes(body.get(4..8)?.try_into().ok()?);
    let (mut peer, mut local, mut label) = (None, None, String::new());
    let mut rest = body.get(8..)?;
    while let Some((kind, value, next)) = attribute(rest) {
        match kind {
            1 => peer = ip(value),
            2 => local = ip(value),
            3 => label = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            _ => {}
        }
        rest = next;
    }
    // On a point-to-point link the first is the other end.
    let ip = local.or(peer)?;
    (!ip.is_loopback() && !ip.is_unspecified()).then_some(Address { ip, interface, label })
}

fn attribute(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
    Some((
        kind,
        bytes.get(4..length)?,
        bytes.get(aligned(length)..).unwrap_or_default(),
    ))
}

fn ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(v4) = <[u8; 4]>::try_from(value) {
        return Some(Ipv4Addr::from(v4).into());
    }
    <[u8; 16]>::try_from(value).ok().map(|v6| Ipv6Addr::from(v6).into())
}

fn aligned(n: usize) -> usize {
    n.div_ceil(4) * 4
}

/// The kernel names the interface of IPv4 addresses only; an interface's IPv6 addresses get its name too.
fn name_interfaces(found: &mut [Address]) {
    let named: Vec<(u32, String)> = found
        .iter()
        .filter(|a| !a.label.is_empty())
        .map(|a| (a.interface, a.label.clone()))
        .collect();
    for address in found.iter_mut().filter(|a| a.label.is_empty()) {
        if let Some((_, label)) = named.iter().find(|(index, _)| *index == address.interface) {
            address.label.clone_from(label);
        }
    }
}

fn default_route_interfaces() -> Vec<String> {
    let table = std::fs::read_to_string("/proc/net/route").unwrap_or_default();
    parse_default_routes(&table)
}

fn parse_default_routes(table: &str) -> Vec<String> {
    let default = |line: &str| {
        let mut fields = line.split_whitespace();
        let (name, destination) = (fields.next()?, fields.next()?);
        (destination == "00000000").then(|| name.to_owned())
    };
    table.lines().skip(1).filter_map(default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_can_be_bound() {
        let all = local_addresses();
        assert!(!all.is_empty());
        for text in all {
            let ip: IpAddr = text.parse().unwrap();
            std::net::TcpListener::bind((ip, 0)).unwrap();
        }
    }

    #[test]
    fn routed_interfaces_come_first_and_bridges_last() {
        let routes = "Iface\tDestination\tGateway\neth0\t00000000\t0101A8C0\neth1\t0001A8C0\t00000000\n";
        assert_eq!(parse_default_routes(routes), ["eth0"]);
        let make = |label: &str, ip: &str| Address {
            ip: ip.parse().unwrap(),
            interface: 1,
            label: label.into(),
        };
        let mut all = [
            make("docker0", "172.17.0.1"),
            make("eth1", "10.0.0.1"),
            make("eth0", "fd00::1"),
            make("eth0", "1.2.3.4"),
        ];
        all.sort_by_key(|a| a.rank(&["eth0".into()]));
        assert_eq!(
            all.map(|a| a.ip.to_string()),
            ["1.2.3.4", "fd00::1", "10.0.0.1", "172.17.0.1"]
        );
    }

    #[test]
    fn what_is_pinned_is_an_address_or_an_interface_of_this_node() {
        let make = |label: &str, ip: &str| Address {
            ip: ip.parse().unwrap(),
            interface: 1,
            label: label.into(),
        };
        let all = [
            make("eth0", "1.2.3.4"),
            make("vpn0", "10.0.0.1"),
            make("vpn0", "fd00::1"),
        ];
        let pinned = pinned_among("vpn0, 9.9.9.9", &all).unwrap();
        assert_eq!(pinned, ["10.0.0.1", "fd00::1", "9.9.9.9"]);
        let why = pinned_among("vpn1", &all).unwrap_err();
        assert!(
            why.contains("'vpn1'") && why.ends_with("interfaces: eth0, vpn0"),
            "{why}"
        );
        assert_eq!(own_addresses("203.0.113.7"), local_addresses());
        let first = local_addresses().remove(0);
        assert_eq!(own_addresses(&first), [first]);
    }

    #[test]
    fn cut_messages_are_no_addresses() {
        let mut body = vec![2, 24, 0, 0, 1, 0, 0, 0];
        body.extend([8, 0, 2, 0, 10, 1, 2, 3]);
        assert_eq!(address(&body).map(|a| a.ip.to_string()).as_deref(), Some("10.1.2.3"));
        for n in 0..body.len() {
            assert_eq!(address(&body[..n]), None);
        }
        assert!(message(&[0; 8]).is_none() && attribute(&[1, 0, 0, 0]).is_none());
    }
}
