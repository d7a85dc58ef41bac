// SPDX-License-Identifier: Apache-2.0
//! What a testbed looks like: sites, machines, hosts, a link for each pair of sites, and one between the machines of a
//! site.

mod file;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::access::{Access, Kind};
use crate::addresses::{address, address6};
use crate::error::{Error, wrong};
use crate::link::LinkSpec;
use crate::units;

/// Most sites a testbed can have.
const MAX_SITES: usize = 26;
/// Most hosts of one site: its network is a /24 whose last address is the gateway's.
const MAX_HOSTS_PER_SITE: usize = 200;

/// The whole description of a testbed.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The sites, in the order of their numbers.
    pub sites: Vec<Site>,
    /// The link between any two sites that [`Topology::links`] does not name.
    pub link: LinkSpec,
    /// Links that differ.
    pub links: Vec<(Pair, LinkSpec)>,
    /// Seed of the generators behind loss and jitter.
    pub seed: u64,
    /// TCP congestion control of the hosts.
    pub congestion: String,
    /// Whether each host has a `/tmp` of its own.
    pub private_tmp: bool,
    /// Directories that every host but the first sees empty: what a foreign site does not have.
    pub hide: Vec<String>,
}

/// Machines behind one gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct Site {
    /// Lower-case letters and digits, beginning with a letter.
    pub name: String,
    /// How many machines; their front ends are named after the site: `a1`, `a2`.
    pub machines: usize,
    /// Hosts of each machine; the first is the front end `a1`, then `a1n2`, `a1n3`.
    pub hosts: usize,
    /// The link between any two of its machines, each pair having its own; `None`: all hosts are on one LAN.
    pub local: Option<LinkSpec>,
    /// What stands between it and the wide area.
    pub access: Access,
}

/// Two sites, without order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair(pub String, pub String);

/// A host before it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostPlan {
    pub(crate) name: String,
    pub(crate) site: usize,
    pub(crate) machine: String,
    /// What it has unless its site has IPv6 only.
    pub(crate) address: Ipv4Addr,
    /// What it has when any site has IPv6 only.
    pub(crate) address6: Ipv6Addr,
    /// How others reach it by its name: the second, when it has it.
    pub(crate) reached: IpAddr,
    /// The jump host in front of it.
    pub(crate) jump: Option<String>,
}

impl Topology {
    /// `SITES x MACHINES [x HOSTS]`: `2x1` is two sites `a` and `b` with one machine each.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text has another form or asks for too much.
    pub fn grid(text: &str) -> Result<Self, Error> {
        let bad = || {
            wrong(
                format!("\"{text}\" is not SITESxMACHINES[xHOSTS]"),
                "2x1 is two sites with one machine each",
            )
        };
        let mut numbers = Vec::new();
        for part in text.split('x') {
            numbers.push(part.trim().parse::<usize>().map_err(|_| bad())?);
        }
        let (sites, machines, hosts) = match numbers[..] {
            [sites] => (sites, 1, 1),
            [sites, machines] => (sites, machines, 1),
            [sites, machines, hosts] => (sites, machines, hosts),
            _ => return Err(bad()),
        };
        if sites > MAX_SITES {
            return Err(wrong(format!("{sites} sites"), &format!("at most {MAX_SITES}")));
        }
        let sites = ('a'..='z')
            .take(sites)
            .map(|c| Site {
                name: c.to_string(),
                machines,
                hosts,
                local: None,
                access: Access::default(),
            })
            .collect();
        Self {
            sites,
            ..Self::default()
        }
        .checked()
    }

    /// Sets the round trip of every link: `40ms`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a time.
    pub fn round_trip(mut self, text: &str) -> Result<Self, Error> {
        let value = units::duration(text)?;
        self.each_link(|link| link.round_trip = value);
        Ok(self)
    }

    /// Sets the rate of every link: `200mbit`, `unlimited`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a rate.
    pub fn rate(mut self, text: &str) -> Result<Self, Error> {
        let value = units::rate(text)?;
        self.each_link(|link| link.rate = value);
        Ok(self)
    }

    /// Sets the queue of every link: `auto`, `100p`, `500kb`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a queue size.
    pub fn queue(mut self, text: &str) -> Result<Self, Error> {
        let value = units::queue(text)?;
        self.each_link(|link| link.queue = value);
        Ok(self)
    }

    /// Sets the loss of every link: `0.1%`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a probability.
    pub fn loss(mut self, text: &str) -> Result<Self, Error> {
        let value = units::probability(text)?;
        self.each_link(|link| link.loss = value);
        Ok(self)
    }

    /// Sets the jitter of every link: `2ms`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a time.
    pub fn jitter(mut self, text: &str) -> Result<Self, Error> {
        let value = units::duration(text)?;
        self.each_link(|link| link.jitter = value);
        Ok(self)
    }

    /// Sets the round trip between the machines of every site: `1ms`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a time.
    pub fn local_round_trip(mut self, text: &str) -> Result<Self, Error> {
        let value = units::duration(text)?;
        self.each_local(|link| link.round_trip = value);
        Ok(self)
    }

    /// Sets the rate between the machines of every site: `1gbit`, `unlimited`.
    ///
    /// # Errors
    /// [`Error::Topology`] when the text is not a rate.
    pub fn local_rate(mut self, text: &str) -> Result<Self, Error> {
        let value = units::rate(text)?;
        self.each_local(|link| link.rate = value);
        Ok(self)
    }

    /// Sets what stands between sites and the wide area: `a=nat,b=denied:5000-5010`.
    ///
    /// # Errors
    /// [`Error::Topology`] or [`Error::Unknown`] when it names no site or no kind of access.
    pub fn access(mut self, text: &str) -> Result<Self, Error> {
        for part in text.split(',') {
            let bad = || wrong(format!("\"{part}\" is not SITE=ACCESS"), "a=nat,b=jump");
            let (name, access) = part.split_once('=').ok_or_else(bad)?;
            let site = self.site(name.trim())?;
            self.sites[site].access = access.trim().parse()?;
        }
        self.checked()
    }

    /// Whether hosts have IPv6 addresses: only where some have nothing else.
    pub(crate) fn has_ipv6(&self) -> bool {
        self.sites.iter().any(|site| site.access.kind == Kind::Ipv6)
    }

    /// The link between the sites with these numbers.
    #[must_use]
    pub fn link_between(&self, a: usize, b: usize) -> &LinkSpec {
        let (a, b) = (&self.sites[a].name, &self.sites[b].name);
        let named = self.links.iter().find(|(pair, _)| pair.joins(a, b));
        named.map_or(&self.link, |(_, link)| link)
    }

    /// Replaces the link between two sites.
    pub(crate) fn set_link(&mut self, a: &str, b: &str, link: LinkSpec) {
        self.links.retain(|(pair, _)| !pair.joins(a, b));
        self.links.push((Pair(a.to_owned(), b.to_owned()), link));
    }

    /// The number of the site called `name`.
    ///
    /// # Errors
    /// [`Error::Unknown`] with the names there are.
    pub fn site(&self, name: &str) -> Result<usize, Error> {
        self.sites
            .iter()
            .position(|site| site.name == name)
            .ok_or_else(|| Error::Unknown {
                kind: "site",
                name: name.to_owned(),
                known: self
                    .sites
                    .iter()
                    .map(|s| s.name.as_str())
                    .collect::<Vec<_>>()
                    .join(", "),
            })
    }

    /// All hosts, site by site and machine by machine; the first is where commands run by default.
    pub(crate) fn hosts(&self) -> Vec<HostPlan> {
        let mut plans = Vec::new();
        for (index, site) in self.sites.iter().enumerate() {
            let mut last = 0;
            for machine in 1..=site.machines {
                let machine = site.machine(machine);
                for node in 1..=site.hosts {
                    last += 1;
                    let name = if node == 1 {
                        machine.clone()
                    } else {
                        format!("{machine}n{node}")
                    };
                    plans.push(self.plan(index, last, name, machine.clone()));
                }
            }
            if site.access.kind == Kind::Jump {
                let name = format!("{}jump", site.name);
                let plan = self.plan(index, last + 1, name.clone(), name);
                plans.push(HostPlan { jump: None, ..plan });
            }
        }
        plans
    }

    fn plan(&self, site: usize, number: usize, name: String, machine: String) -> HostPlan {
        let (address, address6) = (address(site, number), address6(site, number));
        let of = &self.sites[site];
        HostPlan {
            name,
            site,
            machine,
            address,
            address6,
            reached: if self.has_ipv6() {
                address6.into()
            } else {
                address.into()
            },
            jump: (of.access.kind == Kind::Jump).then(|| format!("{}jump", of.name)),
        }
    }

    fn each_link(&mut self, mut change: impl FnMut(&mut LinkSpec)) {
        change(&mut self.link);
        for (_, link) in &mut self.links {
            change(link);
        }
    }

    fn each_local(&mut self, mut change: impl FnMut(&mut LinkSpec)) {
        for site in &mut self.sites {
            change(site.local.get_or_insert_with(LinkSpec::local));
        }
    }

    fn checked(self) -> Result<Self, Error> {
        if self.sites.is_empty() || self.sites.len() > MAX_SITES {
            return Err(wrong(
                format!("{} sites", self.sites.len()),
                &format!("from 1 to {MAX_SITES}"),
            ));
        }
        let mut seen = BTreeSet::new();
        for site in &self.sites {
            check_site(site)?;
            if !seen.insert(&site.name) {
                return Err(wrong(
                    format!("site \"{}\" is described twice", site.name),
                    "give each site its own name",
                ));
            }
        }
        let mut names = BTreeSet::new();
        for host in self.hosts() {
            if !names.insert(host.name.clone()) {
                return Err(wrong(
                    format!("two hosts would be named \"{}\"", host.name),
                    "end site names with a letter",
                ));
            }
        }
        for (Pair(a, b), _) in &self.links {
            if self.site(a)? == self.site(b)? {
                return Err(wrong(
                    format!("a link joins \"{a}\" to itself"),
                    "name two different sites",
                ));
            }
        }
        Ok(self)
    }
}

impl Default for Topology {
    fn default() -> Self {
        Self {
            sites: Vec::new(),
            link: LinkSpec::default(),
            links: Vec::new(),
            seed: 1,
            congestion: "cubic".to_owned(),
            private_tmp: false,
            hide: Vec::new(),
        }
    }
}

impl Site {
    /// Name of the machine with this number, from 1.
    pub(crate) fn machine(&self, number: usize) -> String {
        format!("{}{number}", self.name)
    }
}

impl Pair {
    fn joins(&self, a: &str, b: &str) -> bool {
        (self.0 == a && self.1 == b) || (self.0 == b && self.1 == a)
    }
}

fn check_site(site: &Site) -> Result<(), Error> {
    let mut chars = site.name.chars();
    let good = chars.next().is_some_and(|c| c.is_ascii_lowercase())
        && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        && site.name.len() <= 16;
    if !good {
        return Err(wrong(
            format!("\"{}\" is not a site name", site.name),
            "up to 16 lower-case letters and digits, beginning with a letter",
        ));
    }
    if site.local.is_some() && site.access != Access::default() {
        return Err(wrong(
            format!("site \"{}\" has links between its machines and a firewall", site.name),
            "one of the two; the emulated gateway does not do both",
        ));
    }
    let hosts = site.machines.saturating_mul(site.hosts);
    if hosts == 0 || hosts > MAX_HOSTS_PER_SITE {
        return Err(wrong(
            format!(
                "site \"{}\" has {} machines of {} hosts",
                site.name, site.machines, site.hosts
            ),
            &format!("from 1 to {MAX_HOSTS_PER_SITE} hosts in all"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
