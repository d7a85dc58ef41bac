// SPDX-License-Identifier: Apache-2.0
//! What an agent says of its machine.

use isthmus_wire::grid::{AgentHello, VERSION};

/// Looks at the machine.
pub(crate) fn hello() -> AgentHello {
    let name = rustix::system::uname();
    AgentHello {
        version: VERSION,
        host: name.nodename().to_string_lossy().into_owned(),
        architecture: name.machine().to_string_lossy().into_owned(),
        addresses: addresses(),
        processors: std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
    }
}

/// Addresses of the interfaces: global before private before loopback, IPv4 before IPv6 of the same kind.
fn addresses() -> Vec<String> {
    let mut found: Vec<std::net::IpAddr> = from_fib_trie();
    found.extend(from_if_inet6());
    found.sort_by_key(|a| (a.is_loopback(), a.is_ipv6()));
    found.dedup();
    found.iter().map(ToString::to_string).collect()
}

/// IPv4: every local host entry (`/32 host LOCAL`) of the kernel's routing trie.
fn from_fib_trie() -> Vec<std::net::IpAddr> {
    let text = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut addresses = Vec::new();
    let mut last = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok().map(std::net::IpAddr::V4);
        } else if line == "/32 host LOCAL" {
            addresses.extend(last.filter(|a| !addresses.contains(a)));
        }
    }
    addresses
}

/// IPv6: 32 hexadecimal digits, index, prefix length, scope, flags, name; link-local ones need a zone and are left out.
fn from_if_inet6() -> Vec<std::net::IpAddr> {
    let text = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let rows = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u128::from_str_radix(words.next()?, 16).ok()?;
        let scope = words.nth(2)?;
        (scope != "20").then(|| std::net::IpAddr::V6(address.into()))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn loopback_comes_last() {
        let hello = super::hello();
        assert!(!hello.host.is_empty() && !hello.architecture.is_empty() && hello.processors > 0);
        let loopback = hello.addresses.iter().position(|a| a == "127.0.0.1");
        let others = hello.addresses.iter().filter(|a| *a != "127.0.0.1" && *a != "::1").count();
        assert!(loopback.is_none_or(|at| at >= others), "{:?}", hello.addresses);
    }
}
