// SPDX-License-Identifier: Apache-2.0
//! What stands between a site and the wide area: firewalls, address translation, interfaces that lead nowhere.
//!
//! Rules are for nftables in the gateway's namespace. What is refused vanishes silently, as most firewalls have it.

use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use crate::addresses::{address6, gateway_address, tunnel_network};
use crate::error::Error;
use crate::error::wrong;

/// How a site can be reached, and what it can reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Everything passes.
    #[default]
    Open,
    /// From outside only ssh passes; everything out.
    Denied,
    /// As `Denied`, and connections leave with the gateway's address (IPv4).
    Nat,
    /// As `Nat`, and only ssh passes out.
    NatSsh,
    /// From outside only ssh to a jump host of the site passes, and only ssh out.
    Jump,
    /// The hosts have no IPv4 address. Nothing is filtered.
    Ipv6,
    /// Hosts have several interfaces: at `eth0` nothing but ssh comes in, `docker0` has an address that leads nowhere
    /// (the same on all hosts of all such sites), `vpn0` one that can be reached from everywhere.
    Interfaces,
}

/// The names in topology files and on the command line.
const NAMES: [(Kind, &str); 7] = [
    (Kind::Open, "open"),
    (Kind::Denied, "denied"),
    (Kind::Nat, "nat"),
    (Kind::NatSsh, "nat-ssh"),
    (Kind::Jump, "jump"),
    (Kind::Ipv6, "ipv6"),
    (Kind::Interfaces, "interfaces"),
];

/// [`Kind`] and the ports that are open all the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The rule.
    pub kind: Kind,
    /// TCP ports, first to last, to which connections from outside pass although the rule denies them.
    pub ports: Option<(u16, u16)>,
}

impl FromStr for Access {
    type Err = Error;

    /// `nat`, `denied:5000-5010`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, ports) = text.split_once(':').map_or((text, None), |(n, p)| (n, Some(p)));
        let kind = NAMES.iter().find(|(_, n)| *n == name).map(|(kind, _)| *kind);
        let kind = kind.ok_or_else(|| {
            let known = NAMES.map(|(_, n)| n).join(", ");
            wrong(format!("\"{name}\" is no kind of access"), &format!("one of {known}"))
        })?;
        let ports = ports.map(range).transpose()?;
        Ok(Self { kind, ports })
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES
            .iter()
            .find(|(kind, _)| *kind == self.kind)
            .map_or("?", |(_, n)| n);
        match self.ports {
            Some((first, last)) => write!(f, "{name}:{first}-{last}"),
            None => f.write_str(name),
        }
    }
}

fn range(text: &str) -> Result<(u16, u16), Error> {
    let bad = || wrong(format!("\"{text}\" is no range of ports"), "5000-5010, or one port");
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let port = |t: &str| t.parse::<u16>().map_err(|_| bad());
    let (first, last) = (port(first)?, port(last)?);
    if first == 0 || first > last {
        Err(bad())
    } else {
        Ok((first, last))
    }
}

impl Access {
    /// Rules for `nft -f` of the gateway of a site; `None` where everything passes. `jump`: number of the jump host in
    /// its site.
    pub(crate) fn rules(&self, site: usize, wide: &str, jump: Option<usize>) -> Option<String> {
        if matches!(self.kind, Kind::Open | Kind::Ipv6) {
            return None;
        }
        let mut text =
            String::from("table inet access {\n chain pass {\n  type filter hook forward priority 0; policy accept;\n");
        let mut rule = |rule: String| {
            let _ = writeln!(text, "  {rule}");
        };
        rule("ct state established,related accept".to_owned());
        if self.kind == Kind::Interfaces {
            rule(format!("iifname \"{wide}\" ip daddr {} accept", tunnel_network(site)));
        }
        if let Some((first, last)) = self.ports {
            rule(format!("iifname \"{wide}\" tcp dport {first}-{last} accept"));
        }
        match jump.filter(|_| self.kind == Kind::Jump) {
            Some(number) => {
                let four = crate::addresses::address(site, number);
                rule(format!("iifname \"{wide}\" ip daddr {four} tcp dport 22 accept"));
                rule(format!(
                    "iifname \"{wide}\" ip6 daddr {} tcp dport 22 accept",
                    address6(site, number)
                ));
            }
            None => rule(format!("iifname \"{wide}\" tcp dport 22 accept")),
        }
        rule(format!("iifname \"{wide}\" drop"));
        if matches!(self.kind, Kind::NatSsh | Kind::Jump) {
            rule("tcp dport 22 accept".to_owned());
            rule(format!("oifname \"{wide}\" drop"));
        }
        text.push_str(" }\n");
        if matches!(self.kind, Kind::Nat | Kind::NatSsh) {
            let _ = write!(
                text,
                " chain translate {{\n  type nat hook postrouting priority srcnat; policy accept;\n  oifname \"{wide}\" meta nfproto ipv4 snat ip to {}\n }}\n",
                gateway_address(site)
            );
        }
        text.push_str("}\n");
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_ports_are_read_and_said() {
        for text in ["open", "nat-ssh", "denied:5000-5010"] {
            assert_eq!(text.parse::<Access>().unwrap().to_string(), text);
        }
        assert_eq!("nat:7".parse::<Access>().unwrap().ports, Some((7, 7)));
        for text in ["", "natt", "nat:", "nat:0-5", "nat:9-8"] {
            assert!(text.parse::<Access>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_what_is_filtered_has_rules() {
        let rules = |text: &str| text.parse::<Access>().unwrap().rules(1, "wide", Some(3));
        assert_eq!((rules("open"), rules("ipv6")), (None, None));
        assert!(rules("nat").unwrap().contains("snat ip to 10.2.0.254"));
        assert!(rules("jump").unwrap().contains("ip daddr 10.2.0.3 tcp dport 22 accept"));
        assert!(rules("nat-ssh").unwrap().contains("oifname \"wide\" drop"));
        assert!(rules("denied:5000").unwrap().contains("tcp dport 5000-5000 accept"));
    }
}
