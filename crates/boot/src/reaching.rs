// SPDX-License-Identifier: Apache-2.0
//! Where a process listens, and how patiently it dials.

use std::collections::HashMap;
use std::time::Duration;

use isthmus_net::{Config, Listener, NetError, PortRange, local_addresses, own_addresses};
use isthmus_wire::place::PlaceTable;

/// Bytes that nobody can guess.
pub fn random<const N: usize>() -> Result<[u8; N], String> {
    isthmus_stage::guarded::random().map_err(|error| format!("cannot read /dev/urandom: {error}"))
}

/// Whether others come only through the gateway, which is on this node.
pub(crate) fn is_behind_gateway() -> bool {
    isthmus_settings::REACH.read(std::env::var_os) == Some("gateway")
}

/// Listens where the user allows it.
pub fn listener() -> Result<Listener, NetError> {
    match is_behind_gateway() {
        true => Listener::bind_here(),
        false => Listener::bind(ports()),
    }
}

/// Addresses of this node at which others come to a listener of its.
pub fn addresses() -> Vec<String> {
    let pinned = isthmus_settings::ADDRESS.read(std::env::var_os);
    match pinned.is_empty() {
        _ if is_behind_gateway() => Vec::new(),
        true => local_addresses(),
        false => own_addresses(&pinned.join(",")),
    }
}

/// Ports that the user allows us to listen on.
fn ports() -> Option<PortRange> {
    let ports = isthmus_settings::PORTS.read(std::env::var_os)?;
    Some(PortRange {
        first: *ports.start(),
        last: *ports.end(),
    })
}

/// How long reaching a process may take. Where many share a core each waits for its turn, and so does the gateway that
/// serves them all. Subjobs of several sites may be on one machine.
pub(crate) fn dial_time(places: &PlaceTable) -> Duration {
    /// Processes of a core that are no reason to be more patient.
    const CROWD: u32 = 16;
    let mut hosts: HashMap<(&str, &[String]), (u32, u32)> = HashMap::new();
    for node in &places.nodes {
        let (processes, processors) = hosts.entry((&node.host, &node.addresses)).or_default();
        *processes = processes.saturating_add(node.processes);
        *processors = node.processors.max(*processors);
    }
    let crowd = |(processes, processors): &(u32, u32)| processes / (*processors).max(1);
    let crowd = hosts.values().map(crowd).max().unwrap_or_default();
    Config::DIAL_TIME * (1 + crowd / CROWD)
}

#[cfg(test)]
mod tests {
    use isthmus_wire::place::Node;

    use super::*;

    #[test]
    fn many_subjobs_on_one_machine_are_a_crowd() {
        let node = |host: &str, subjob, processes| Node {
            host: host.into(),
            addresses: vec!["10.0.0.1".into()],
            subjob,
            processes,
            processors: 2,
        };
        let time = |nodes| {
            dial_time(&PlaceTable {
                nodes,
                ..PlaceTable::default()
            })
        };
        let crowd = (0..64).map(|subjob| node("a", subjob, 4)).collect();
        assert_eq!(time(crowd), Config::DIAL_TIME * 9);
        assert_eq!(time(vec![node("a", 0, 256)]), Config::DIAL_TIME * 9);
        let apart = (0..64).map(|subjob| node(&format!("a{subjob}"), subjob, 4)).collect();
        assert_eq!(time(apart), Config::DIAL_TIME);
    }
}
