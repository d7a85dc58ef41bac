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

use crate::error::Error;
use crate::host::Holder;
use crate::sys::{Namespaces, open_tun};
use crate::topology::{HostPlan, gateway_address};

/// Name of the device that leads to the wide area.
const WIDE: &str = "wide";
/// Routing table of a gateway for what comes from its LAN, where the machines of the site have links.
const FROM_LAN: &str = "100";

/// Makes a site's bridge and gateway, and a cable to each of its hosts; gives the wide-area device.
pub(crate) fn wire_site(
    site: usize,
    gateway: &Holder,
    hosts: &[(&HostPlan, &Holder)],
    local_links: bool,
) -> Result<OwnedFd, Error> {
    let namespaces = Namespaces::of(gateway.pid(), false)?;
    let device = namespaces.in_network(|| {
        quieten();
        set("net/ipv4/ip_forward", "1")?;
        open_tun(WIDE)
    })??;
    let mut script = format!(
        "link set lo up\nlink add lan type bridge\nlink set lan up\naddr add {}/24 dev lan\n\
         link set {WIDE} mtu 1500 txqueuelen 2000 up\nroute add default dev {WIDE}\n",
        gateway_address(site)
    );
    if local_links {
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
    ip(&namespaces, &script, &format!("wire the site of number {site}"))?;
    Ok(device)
}

/// Gives a host its address and its ways out. `neighbours` are the hosts that it reaches without the gateway;
/// `None` means all of its site.
pub(crate) fn configure_host(
    plan: &HostPlan,
    holder: &Holder,
    congestion: &str,
    neighbours: Option<&[&HostPlan]>,
) -> Result<(), Error> {
    let namespaces = Namespaces::of(holder.pid(), false)?;
    namespaces.in_network(|| {
        quieten();
        // Where the setting is refused the route attribute below still holds for the wide area.
        let _ = set("net/ipv4/tcp_congestion_control", congestion);
    })?;
    let gateway = gateway_address(plan.site);
    let mut script = format!(
        "link set lo up\nlink set eth0 up\naddr add {}/24 dev eth0",
        plan.address
    );
    match neighbours {
        None => script.push('\n'),
        Some(neighbours) => {
            let _ = write!(script, " noprefixroute\nroute add {gateway} dev eth0\n");
            for neighbour in neighbours {
                let _ = writeln!(script, "route add {} dev eth0", neighbour.address);
            }
        }
    }
    let _ = writeln!(script, "route add default via {gateway} congctl {congestion}");
    ip(&namespaces, &script, &format!("configure the network of {}", plan.name))
}

/// No IPv6 chatter and no reverse-path surprises; absent settings are as good.
fn quieten() {
    let _ = set("net/ipv6/conf/all/disable_ipv6", "1");
    let _ = set("net/ipv6/conf/default/disable_ipv6", "1");
    let _ = set("net/ipv4/conf/all/rp_filter", "0");
    let _ = set("net/ipv4/conf/default/rp_filter", "0");
}

/// Sets a value of the calling thread's network namespace.
fn set(name: &str, value: &str) -> Result<(), Error> {
    fs::write(format!("/proc/sys/{name}"), value).map_err(Error::system(format!("set {name} to {value}")))
}

/// Runs `ip -batch` inside a network namespace.
fn ip(namespaces: &Namespaces, script: &str, doing: &str) -> Result<(), Error> {
    let failed = |said: String| Error::Tool {
        tool: "ip (package iproute2)".to_owned(),
        doing: doing.to_owned(),
        said,
    };
    let mut command = Command::new("ip");
    command
        .args(["-batch", "-"])
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
