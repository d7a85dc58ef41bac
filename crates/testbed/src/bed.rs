// SPDX-License-Identifier: Apache-2.0
//! A running testbed.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::capture::Capture;
use crate::error::Error;
use crate::forwarder::Forwarder;
use crate::host::{Holder, Host, User, furnish};
use crate::link::LinkSpec;
use crate::network;
use crate::ssh;
use crate::state::{self, Description, HostDescription, StateDir};
use crate::stats::{Report, Ticks};
use crate::topology::{HostPlan, Topology};

/// How long an sshd may take to answer.
const SSHD_START: Duration = Duration::from_secs(10);

/// How to start a testbed, beside its topology.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Its name; by default one that no other testbed has.
    pub name: Option<String>,
    /// Where its directory is made; by default [`crate::default_root`].
    pub root: Option<PathBuf>,
    /// A pcap file for everything that enters the wide-area links.
    pub capture: Option<PathBuf>,
}

/// A running testbed; dropping it ends everything in it.
#[derive(Debug)]
pub struct Testbed {
    // In the order in which they must end: no packets to hosts that are gone, the directory last.
    forwarder: Option<Forwarder>,
    capture: Option<Capture>,
    _hosts: Vec<Holder>,
    _gateways: Vec<Holder>,
    /// With all changes since the start.
    topology: Mutex<Topology>,
    description: Description,
    since: Ticks,
    state: StateDir,
}

impl Testbed {
    /// Builds what `topology` describes.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] when this process may not; see [`Error`] for the rest. Nothing stays behind.
    pub fn start(topology: &Topology) -> Result<Self, Error> {
        Self::start_with(topology, &Options::default())
    }

    /// Builds what `topology` describes, with a name, a place and a capture.
    ///
    /// # Errors
    /// As [`Testbed::start`].
    pub fn start_with(topology: &Topology, options: &Options) -> Result<Self, Error> {
        let root = options.root.clone().unwrap_or_else(state::default_root);
        // Leftovers that cannot be removed (another user's) are no reason not to start.
        let _ = state::sweep(&root);
        let state = StateDir::create(&root, &options.name.clone().unwrap_or_else(unused_name))?;
        let plans = topology.hosts();
        let (sshd, limits) = prepare(state.path(), &plans)?;
        let (hosts, gateways, forwarder, capture) = build(topology, &plans, &state, sshd.as_deref(), options)?;
        let description = describe(topology, &plans, &hosts, limits);
        state.describe(&description)?;
        let bed = Self {
            forwarder: Some(forwarder),
            capture,
            _hosts: hosts,
            _gateways: gateways,
            topology: Mutex::new(topology.clone()),
            description,
            since: Ticks::now(),
            state,
        };
        if sshd.is_some() {
            bed.await_ssh()?;
        }
        Ok(bed)
    }

    /// The host called `name`.
    ///
    /// # Errors
    /// [`Error::Unknown`] with the names there are.
    pub fn host(&self, name: &str) -> Result<Host, Error> {
        find_host(&self.description, name, self.directory())
    }

    /// Names of all hosts; the first is where commands run by default.
    #[must_use]
    pub fn hosts(&self) -> Vec<&str> {
        self.description.hosts.iter().map(|host| host.name.as_str()).collect()
    }

    /// What is not available here, one sentence each; for tests to show when they skip something.
    #[must_use]
    pub fn limits(&self) -> &[String] {
        &self.description.limits
    }

    /// The testbed's own directory: homes, keys, the control socket.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.state.path()
    }

    /// Cuts the wide-area link between two sites: from now on it silently loses everything, also what is on it.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is no such site.
    pub fn cut(&self, a: &str, b: &str) -> Result<(), Error> {
        self.set_up(a, b, false)
    }

    /// Restores a link that was cut.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is no such site.
    pub fn restore(&self, a: &str, b: &str) -> Result<(), Error> {
        self.set_up(a, b, true)
    }

    /// Changes the wide-area link between two sites, both directions, from the next packet on.
    ///
    /// # Errors
    /// [`Error::Unknown`] when there is no such site.
    pub fn change(&self, a: &str, b: &str, change: impl FnOnce(&mut LinkSpec)) -> Result<(), Error> {
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        let mut link = topology.link_between(topology.site(a)?, topology.site(b)?).clone();
        change(&mut link);
        if let Some(forwarder) = &self.forwarder {
            forwarder.change(a, b, &link);
        }
        topology.set_link(a, b, link);
        Ok(())
    }

    /// What crossed the links so far, and how far to trust it.
    #[must_use]
    pub fn report(&self) -> Report {
        Report {
            links: self.forwarder.as_ref().map(Forwarder::reports).unwrap_or_default(),
            steal_percent: self.since.steal_percent(Ticks::now()),
            realtime: self.forwarder.as_ref().is_some_and(Forwarder::realtime),
            capture_missed: self.capture.as_ref().map_or(0, Capture::missed),
        }
    }

    /// Ends the testbed and gives its last report; a capture is complete afterwards.
    ///
    /// # Errors
    /// [`Error::System`] when the capture could not be written.
    pub fn stop(mut self) -> Result<Report, Error> {
        let report = self.report();
        self.forwarder = None;
        match self.capture.take() {
            Some(capture) => capture.finish().map(|()| report),
            None => Ok(report),
        }
    }

    fn set_up(&self, a: &str, b: &str, up: bool) -> Result<(), Error> {
        let topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        topology.site(a)?;
        topology.site(b)?;
        if let Some(forwarder) = &self.forwarder {
            forwarder.set_up(a, b, up);
        }
        Ok(())
    }

    fn await_ssh(&self) -> Result<(), Error> {
        let deadline = Instant::now() + SSHD_START;
        for description in &self.description.hosts {
            let host = Host::attach(description.clone(), self.directory())?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 22));
            while host
                .in_network(|| TcpStream::connect_timeout(&address, Duration::from_secs(1)))?
                .is_err()
            {
                if Instant::now() > deadline {
                    return Err(sshd_silent(self.directory(), &description.name));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

/// The host called `name` in a described testbed.
pub(crate) fn find_host(description: &Description, name: &str, state: &Path) -> Result<Host, Error> {
    let found = description.hosts.iter().find(|host| host.name == name).cloned();
    let found = found.ok_or_else(|| Error::Unknown {
        kind: "host",
        name: name.to_owned(),
        known: description
            .hosts
            .iter()
            .map(|h| h.name.as_str())
            .collect::<Vec<_>>()
            .join(", "),
    })?;
    Host::attach(found, state)
}

type Built = (Vec<Holder>, Vec<Holder>, Forwarder, Option<Capture>);

/// Files of every host; which sshd to start, and what will be missing.
fn prepare(state: &Path, plans: &[HostPlan]) -> Result<(Option<PathBuf>, Vec<String>), Error> {
    let user = User::current()?;
    for plan in plans {
        furnish(state, plan, plans, &user)?;
    }
    match ssh_server() {
        Ok(sshd) => {
            ssh::make_keys(state, plans)?;
            for plan in plans {
                ssh::configure(state, plan, plans, &user.name)?;
            }
            Ok((Some(sshd), Vec::new()))
        }
        Err(limit) => Ok((None, vec![limit])),
    }
}

/// The sshd to start, or why hosts will not have one.
fn ssh_server() -> Result<PathBuf, String> {
    let sshd = ssh::find_server().ok_or("no ssh to the hosts: there is no sshd here (package openssh-server)")?;
    // sshd drops its privileges to a user of its own, which a namespace with a single user does not have.
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let users: u64 = map
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2)?.parse::<u64>().ok())
        .sum();
    if users < 1000 {
        return Err("no ssh to the hosts: this user namespace has too few users for sshd (give the user ranges in /etc/subuid and \
                    /etc/subgid, or run as root)"
            .to_owned());
    }
    Ok(sshd)
}

fn build(
    topology: &Topology,
    plans: &[HostPlan],
    state: &StateDir,
    sshd: Option<&Path>,
    options: &Options,
) -> Result<Built, Error> {
    let mut hosts = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        hosts.push(Holder::host(plan, state.path(), topology, index == 0, sshd)?);
    }
    let mut gateways = Vec::new();
    let mut devices = Vec::new();
    for site in 0..topology.sites.len() {
        let gateway = Holder::gateway()?;
        let local: Vec<_> = plans.iter().zip(&hosts).filter(|(plan, _)| plan.site == site).collect();
        devices.push(network::wire_site(site, &gateway, &local, topology)?);
        gateways.push(gateway);
    }
    for (plan, holder) in plans.iter().zip(&hosts) {
        let own = |other: &&HostPlan| other.machine == plan.machine && other.name != plan.name;
        let neighbours: Option<Vec<&HostPlan>> = topology.sites[plan.site]
            .local
            .as_ref()
            .map(|_| plans.iter().filter(own).collect());
        network::configure_host(plan, holder, topology, neighbours.as_deref())?;
    }
    let (capture, tap) = options.capture.as_deref().map(Capture::start).transpose()?.unzip();
    let forwarder = Forwarder::start(devices, topology, tap.as_ref())?;
    Ok((hosts, gateways, forwarder, capture))
}

fn describe(topology: &Topology, plans: &[HostPlan], holders: &[Holder], limits: Vec<String>) -> Description {
    let host = |(plan, holder): (&HostPlan, &Holder)| HostDescription {
        name: plan.name.clone(),
        site: topology.sites[plan.site].name.clone(),
        machine: plan.machine.clone(),
        address: plan.address,
        reached: plan.reached,
        holder: holder.pid(),
    };
    Description {
        server: std::process::id(),
        sites: topology.sites.iter().map(|site| site.name.clone()).collect(),
        hosts: plans.iter().zip(holders).map(host).collect(),
        limits,
    }
}

fn sshd_silent(state: &Path, host: &str) -> Error {
    let log = std::fs::read_to_string(state.join("hosts").join(host).join("sshd.log")).unwrap_or_default();
    Error::Tool {
        tool: "sshd".to_owned(),
        doing: format!("reach the sshd of {host}"),
        said: format!("no answer; its log: {log}"),
    }
}

fn unused_name() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    format!("p{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}
