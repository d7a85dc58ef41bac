// SPDX-License-Identifier: Apache-2.0
//! The options that say what the testbed looks like.

use std::path::PathBuf;

use clap::Args;
use isthmus_testbed::{Error, Topology};

/// What the testbed looks like.
#[derive(Args, Clone, Debug)]
pub(super) struct Shape {
    /// Sites x machines [x hosts of each machine].
    #[arg(long, default_value = "2x1", conflicts_with = "topology")]
    sites: String,
    /// A TOML description instead (see the README of crates/testbed).
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Round trip between sites: 40ms.
    #[arg(long, value_name = "TIME")]
    rtt: Option<String>,
    /// Rate between sites: 200mbit, unlimited.
    #[arg(long)]
    rate: Option<String>,
    /// Round trip between the machines of a site: 1ms; without it they share one LAN.
    #[arg(long, value_name = "TIME")]
    local_rtt: Option<String>,
    /// Rate between the machines of a site; each pair has its own.
    #[arg(long, value_name = "RATE")]
    local_rate: Option<String>,
    /// Queue of each link: auto (one bandwidth-delay product), 100p, 500kb.
    #[arg(long)]
    queue: Option<String>,
    /// Packet loss: 0.1%.
    #[arg(long)]
    loss: Option<String>,
    /// Random extra delay up to this; order is kept.
    #[arg(long, value_name = "TIME")]
    jitter: Option<String>,
    /// Seed of loss and jitter.
    #[arg(long)]
    seed: Option<u64>,
    /// What stands between sites and the wide area: a=nat,b=denied:5000-5010; open, denied, nat, nat-ssh, jump, ipv6,
    /// interfaces.
    #[arg(long, value_name = "SITE=KIND,...")]
    access: Option<String>,
    /// TCP congestion control of the hosts.
    #[arg(long, value_name = "NAME")]
    congestion: Option<String>,
    /// Give each host a /tmp of its own.
    #[arg(long)]
    private_tmp: bool,
    /// Show this directory empty to all hosts but the first (repeatable): proves that nothing there is needed.
    #[arg(long, value_name = "DIRECTORY")]
    hide: Vec<String>,
    /// Write every packet that enters a wide-area link to this pcap file.
    #[arg(long, value_name = "FILE")]
    pub(super) capture: Option<PathBuf>,
}

impl Shape {
    pub(super) fn topology(&self) -> Result<Topology, Error> {
        let mut topology = match &self.topology {
            Some(path) => read_topology(path)?,
            None => Topology::grid(&self.sites)?,
        };
        let set = |topology: Topology, text: &Option<String>, set: fn(Topology, &str) -> Result<Topology, Error>| {
            match text {
                Some(text) => set(topology, text),
                None => Ok(topology),
            }
        };
        topology = set(topology, &self.rtt, |t, text| t.round_trip(text))?;
        topology = set(topology, &self.rate, |t, text| t.rate(text))?;
        topology = set(topology, &self.local_rtt, |t, text| t.local_round_trip(text))?;
        topology = set(topology, &self.local_rate, |t, text| t.local_rate(text))?;
        topology = set(topology, &self.queue, |t, text| t.queue(text))?;
        topology = set(topology, &self.loss, |t, text| t.loss(text))?;
        topology = set(topology, &self.jitter, |t, text| t.jitter(text))?;
        topology = set(topology, &self.access, |t, text| t.access(text))?;
        topology.seed = self.seed.unwrap_or(topology.seed);
        if let Some(name) = &self.congestion {
            topology.congestion.clone_from(name);
        }
        topology.private_tmp |= self.private_tmp;
        topology.hide.extend(self.hide.iter().cloned());
        Ok(topology)
    }
}

fn read_topology(path: &std::path::Path) -> Result<Topology, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::System {
        doing: format!("read {}", path.display()),
        source,
    })?;
    Topology::from_toml(&text).map_err(|error| match error {
        Error::Topology { what, hint } => Error::Topology {
            what: format!("{}: {what}", path.display()),
            hint,
        },
        other => other,
    })
}
