// SPDX-License-Identifier: Apache-2.0
//! Cables, bridges, addresses and routes.
//!
//! ```text
//!  host a1                gateway of a                  forwarder            gateway of b
//!  eth0 10.1.0.1/24 ──── port1 ┐
//!  host a2                     ├ lan 10.1.0.254 ── wide (TUN) ═══════ wide (TUN) ── lan ...
//!  eth0 10.1.0.2/24 ──── port2 ┘
//! ```
//!
//! Where a site has links between its machines, hosts know only those of their own machine as neighbours. The rest
//! goes to the gateway, which sends whatever comes from the LAN to the forwarder, also what is for the LAN.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::access::Kind;
use crate::addresses::{address, address6, gateway_address, tunnel_address};
use crate::error::Error;
use crate::host::Holder;
use crate::sys::{Namespaces, open_tun};
use crate::topology::{HostPlan, Topology};

/// Name of the device that leads to the wide area.
const WIDE: &str = "wide";
/// Number of a gateway among the hosts of its site.
const GATEWAY: usize = 254;
/// What looks like an address of the host and leads nowhere.
const DEAD_END: &str = "172.17.0.1/16";
/// Routing table of a gateway for what comes from its LAN, where the machines of the site have links.
const FROM_LAN: &str = "100";

/// Makes a site's bridge and gateway, and a cable to each of its hosts; gives the wide-area device.
pub(crate) fn wire_site(
    site: usize,
    gateway: &Holder,
    hosts: &[(&HostPlan, &Holder)],
    topology: &Topology,
) -> Result<OwnedFd, Error> {
    let (access, six) = (&topology.sites[site].access, topology.has_ipv6());
    let namespaces = Namespaces::of(gateway.pid(), false)?;
    let device = namespaces.in_network(|| {
        quieten(six);
        set("net/ipv4/ip_forward", "1")?;
        if six {
            set("net/ipv6/conf/all/forwarding", "1")?;
        }
        open_tun(WIDE)
    })??;
    let mut script = format!(
        "link set lo up\nlink add lan type bridge\nlink set lan up\naddr add {}/24 dev lan\n\
         link set {WIDE} mtu 1500 txqueuelen 2000 up\nroute add default dev {WIDE}\n",
        gateway_address(site)
    );
    if topology.sites[site].local.is_some() {
        let _ = write!(
            script,
            "route add default dev {WIDE} table {FROM_LAN}\nrule add iif lan lookup {FROM_LAN}\n"
        );
    }
    for (number, (_, holder)) in (1..).zip(hosts) {
        let _ = write!(
            script,
            "link add port{number} type veth peer name eth0 netns {}\nlink set port{number} master lan up\n",
            holder.pid()
        );
    }
    if six {
        let _ = write!(
            script,
            "addr add {}/64 dev lan nodad\nroute add fd00::/16 dev {WIDE}\n",
            address6(site, GATEWAY)
        );
    }
    if access.kind == Kind::Interfaces {
        for (number, (plan, _)) in (1..).zip(hosts) {
            let _ = writeln!(
                script,
                "route add {} via {} dev lan onlink",
                tunnel_address(site, number),
                plan.address
            );
        }
    }
    let doing = format!("wire the site of number {site}");
    batch(&namespaces, "ip", &["-batch", "-"], &script, &doing)?;
    let jump = hosts
        .iter()
        .position(|(plan, _)| Some(&plan.name) == hosts.first().and_then(|(p, _)| p.jump.as_ref()));
    if let Some(rules) = access.rules(site, WIDE, jump.map(|index| index + 1)) {
        batch(
            &namespaces,
            "nft",
            &["-f", "-"],
            &rules,
            &format!("set up the firewall \"{access}\""),
        )?;
    }
    Ok(device)
}

/// Gives a host its address and its ways out. `neighbours` are the hosts that it reaches without the gateway;
/// `None` means all of its site.
pub(crate) fn configure_host(
    plan: &HostPlan,
    holder: &Holder,
    topology: &Topology,
    neighbours: Option<&[&HostPlan]>,
) -> Result<(), Error> {
    let namespaces = Namespaces::of(holder.pid(), false)?;
    let (congestion, kind, six) = (
        &topology.congestion,
        topology.sites[plan.site].access.kind,
        topology.has_ipv6(),
    );
    namespaces.in_network(|| {
        quieten(six);
        // Namespaces may be refused it; the attribute of the routes below holds all the same.
        let _ = set("net/ipv4/tcp_congestion_control", congestion);
    })?;
    let gateway = gateway_address(plan.site);
    let doing = format!("configure the network of {}", plan.name);
    let mut script = String::from("link set lo up\nlink set eth0 up\n");
    if six {
        let _ = write!(
            script,
            "addr add {}/64 dev eth0 nodad noprefixroute\nroute add {}/64 dev eth0 congctl {congestion}\n\
             route add fd00::/16 via {} congctl {congestion}\n",
            plan.address6,
            address6(plan.site, 0),
            address6(plan.site, GATEWAY)
        );
    }
    if kind == Kind::Ipv6 {
        return batch(&namespaces, "ip", &["-batch", "-"], &script, &doing);
    }
    if kind == Kind::Interfaces {
        let number = usize::from(plan.address.octets()[3]);
        let _ = write!(
            script,
            "link add docker0 type bridge\nlink set docker0 up\naddr add {DEAD_END} dev docker0\n\
             link add vpn0 type bridge\nlink set vpn0 up\naddr add {}/32 dev vpn0\n",
            tunnel_address(plan.site, number)
        );
    }
    let _ = writeln!(script, "addr add {}/24 dev eth0 noprefixroute", plan.address);
    match neighbours {
        None => {
            let _ = writeln!(
                script,
                "route add {}/24 dev eth0 congctl {congestion}",
                address(plan.site, 0)
            );
        }
        Some(neighbours) => {
            let _ = writeln!(script, "route add {gateway} dev eth0");
            for neighbour in neighbours {
                let _ = writeln!(script, "route add {} dev eth0 congctl {congestion}", neighbour.address);
            }
        }
    }
    let _ = writeln!(script, "route add default via {gateway} congctl {congestion}");
    batch(&namespaces, "ip", &["-batch", "-"], &script, &doing)
}

/// No IPv6 where nobody wants it, and no reverse-path surprises; absent settings are as good.
fn quieten(six: bool) {
    let disable = if six { "0" } else { "1" };
    let _ = set("net/ipv6/conf/all/disable_ipv6", disable);
    let _ = set("net/ipv6/conf/default/disable_ipv6", disable);
    // Nobody else could have the same addresses.
    let _ = set("net/ipv6/conf/all/accept_dad", "0");
    let _ = set("net/ipv6/conf/default/accept_dad", "0");
    let _ = set("net/ipv4/conf/all/rp_filter", "0");
    let _ = set("net/ipv4/conf/default/rp_filter", "0");
}

/// Sets a value of the calling thread's network namespace.
fn set(name: &str, value: &str) -> Result<(), Error> {
    fs::write(format!("/proc/sys/{name}"), value).map_err(Error::system(format!("set {name} to {value}")))
}

/// Runs a tool of the system inside a network namespace, with a script for it.
fn batch(namespaces: &Namespaces, tool: &str, arguments: &[&str], script: &str, doing: &str) -> Result<(), Error> {
    let failed = |said: String| Error::Tool {
        tool: format!(
            "{tool} (package {})",
            if tool == "ip" { "iproute2" } else { "nftables" }
        ),
        doing: doing.to_owned(),
        said,
    };
    let mut command = Command::new(tool);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0);
    let mut child = namespaces
        .in_network(|| command.spawn())?
        .map_err(|e| failed(e.to_string()))?;
    if let Some(mut input) = child.stdin.take() {
        // A tool that stopped reading says why on its standard error.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(failed(String::from_utf8_lossy(&output.stderr).into_owned()))
    }
}
