// SPDX-License-Identifier: Apache-2.0
//! Sites, machines and ranks of an experiment, and the links between them.

use std::fmt::Write as _;
use std::time::Duration;

use isthmus_testbed::{Access, LinkSpec, Pair, Site, Topology};

use crate::peers::Placed;

/// Where the ranks of an experiment are. Ranks are numbered machine by machine and site by site.
#[derive(Clone, Debug)]
pub(super) struct Grid {
    /// Name of each site and the ranks of its machines.
    sites: Vec<(String, Vec<usize>)>,
    topology: Topology,
    /// What a message takes of the line between two sites beside the latency, seconds.
    line_time: f64,
}

/// A machine as the number of its site and its number among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) site: usize,
    pub(super) machine: usize,
}

impl Grid {
    /// Sites by name with the ranks of their machines (0: not used); all links between sites alike, machines of a site
    /// on one LAN.
    pub(super) fn new(sites: &[(&str, &[usize])], round_trip: Duration, rate: u64) -> Self {
        let link = LinkSpec {
            round_trip,
            rate: Some(rate),
            ..LinkSpec::default()
        };
        let site = |(name, machines): &(&str, &[usize])| Site {
            name: (*name).to_owned(),
            machines: machines.len(),
            hosts: 1,
            local: None,
            access: Access::default(),
        };
        Self {
            sites: sites.iter().map(|(name, m)| ((*name).to_owned(), m.to_vec())).collect(),
            topology: Topology {
                sites: sites.iter().map(site).collect(),
                link,
                ..Topology::default()
            },
            line_time: 0.0,
        }
    }

    /// Messages that take so long on the line between two sites that it counts.
    pub(super) fn line_time(mut self, seconds: f64) -> Self {
        self.line_time = seconds;
        self
    }

    /// Another round trip between two sites.
    pub(super) fn between(mut self, a: &str, b: &str, round_trip: Duration) -> Self {
        let link = LinkSpec {
            round_trip,
            ..self.topology.link.clone()
        };
        self.topology.links.push((Pair(a.to_owned(), b.to_owned()), link));
        self
    }

    /// A round trip between the machines of each site.
    pub(super) fn local(mut self, round_trip: Duration) -> Self {
        for site in &mut self.topology.sites {
            site.local = Some(LinkSpec {
                round_trip,
                rate: None,
                ..LinkSpec::default()
            });
        }
        self
    }

    /// The same hosts and links with other numbers of ranks by site and machine.
    pub(super) fn with_ranks(mut self, ranks: &[&[usize]]) -> Self {
        for ((_, own), ranks) in self.sites.iter_mut().zip(ranks) {
            *own = ranks.to_vec();
        }
        self
    }

    /// One way between machines of the first site, seconds.
    pub(super) fn local_latency(&self) -> f64 {
        let local = self.topology.sites.first().and_then(|site| site.local.as_ref());
        local.map_or(0.0, |link| link.round_trip.as_secs_f64() / 2.0)
    }

    /// One way between two sites, seconds.
    pub(super) fn wide_latency(&self, a: usize, b: usize) -> f64 {
        self.topology.link_between(a, b).round_trip.as_secs_f64() / 2.0
    }

    pub(super) fn topology(&self) -> &Topology {
        &self.topology
    }

    pub(super) fn sites(&self) -> usize {
        self.sites.len()
    }

    pub(super) fn ranks(&self) -> usize {
        self.sites.iter().flat_map(|(_, machines)| machines).sum()
    }

    /// Ranks at a site.
    pub(super) fn ranks_at(&self, site: usize) -> usize {
        self.sites[site].1.iter().sum()
    }

    pub(super) fn hosts(&self) -> Vec<Placed> {
        let machines = |(site, ranks): &(String, Vec<usize>)| {
            let placed = |(number, ranks): (usize, &usize)| Placed {
                host: format!("{site}{number}"),
                lan: site.clone(),
                ranks: *ranks,
            };
            let used = (1..).zip(ranks).filter(|(_, ranks)| **ranks > 0);
            used.map(placed).collect::<Vec<_>>()
        };
        self.sites.iter().flat_map(machines).collect()
    }

    /// The place of every rank.
    pub(super) fn spots(&self) -> Vec<Spot> {
        let mut spots = Vec::new();
        let mut machine = 0;
        for (site, (_, machines)) in self.sites.iter().enumerate() {
            for ranks in machines {
                spots.extend(std::iter::repeat_n(Spot { site, machine }, *ranks));
                machine += 1;
            }
        }
        spots
    }

    /// As `bench/trees.h` wants it: `4,4/4,4`.
    pub(super) fn places(&self) -> String {
        let site =
            |(_, machines): &(String, Vec<usize>)| machines.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let used = self
            .sites
            .iter()
            .filter(|(_, machines)| machines.iter().sum::<usize>() > 0);
        used.map(site).collect::<Vec<_>>().join("/")
    }

    pub(super) fn site_name(&self, site: usize) -> &str {
        &self.sites[site].0
    }

    /// Bits per second of the link from one site to another, framing included.
    pub(super) fn rate(&self, a: usize, b: usize) -> Option<u64> {
        self.topology.link_between(a, b).rate
    }

    /// One-way latencies between all machines, seconds. With `relay` messages may go by way of other machines.
    pub(super) fn latencies(&self, relay: bool) -> Vec<Vec<f64>> {
        let sites: Vec<usize> = self
            .sites
            .iter()
            .enumerate()
            .flat_map(|(site, (_, machines))| machines.iter().map(move |_| site))
            .collect();
        let direct = |a: usize, b: usize| match (sites[a], sites[b]) {
            _ if a == b => 0.0,
            (x, y) if x == y => {
                let local = self.topology.sites[x].local.as_ref();
                local.map_or(0.0, |link| link.round_trip.as_secs_f64() / 2.0)
            }
            (x, y) => self.line_time + self.wide_latency(x, y),
        };
        let all = 0..sites.len();
        let mut least: Vec<Vec<f64>> = all
            .clone()
            .map(|a| all.clone().map(|b| direct(a, b)).collect())
            .collect();
        for by in all.clone().filter(|_| relay) {
            for a in all.clone() {
                for b in all.clone() {
                    least[a][b] = least[a][b].min(least[a][by] + least[by][b]);
                }
            }
        }
        least
    }

    /// Who is where and what lies between, for people.
    pub(super) fn describe(&self) -> String {
        let mut text = String::new();
        let mut first = 0;
        for host in self.hosts() {
            let _ = write!(text, "ranks {first}-{} {}, ", first + host.ranks - 1, host.host);
            first += host.ranks;
        }
        for a in 0..self.sites() {
            for b in (a + 1..self.sites()).filter(|&b| self.ranks_at(a) > 0 && self.ranks_at(b) > 0) {
                let link = self.topology.link_between(a, b);
                let rate = link
                    .rate
                    .map_or_else(|| "unlimited".to_owned(), |r| format!("{} Mbit/s", r as f64 / 1e6));
                let trip = link.round_trip.as_secs_f64() * 1e3;
                let _ = write!(text, "{}-{} {trip} ms {rate}, ", self.site_name(a), self.site_name(b));
            }
        }
        let local = self
            .topology
            .sites
            .iter()
            .filter(|s| s.machines > 1)
            .find_map(|s| s.local.as_ref());
        match local {
            Some(link) => {
                let _ = write!(text, "machines of a site {} ms", link.round_trip.as_secs_f64() * 1e3);
            }
            None => text.truncate(text.len().saturating_sub(2)),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relaying_may_be_shorter_than_the_direct_way() {
        let ms = Duration::from_millis;
        let sites: [(&str, &[usize]); 3] = [("a", &[1, 1]), ("b", &[1]), ("c", &[2])];
        let grid = Grid::new(&sites, ms(20), 1)
            .between("b", "c", ms(40))
            .between("c", "a", ms(75))
            .local(ms(1));
        let (direct, relayed) = (grid.latencies(false), grid.latencies(true));
        assert_eq!((direct[0][3], direct[0][1]), (0.0375, 0.0005));
        assert!((relayed[0][3] - 0.030).abs() < 1e-9 && (relayed[3][1] - 0.030).abs() < 1e-9);
        assert_eq!((grid.ranks(), grid.places().as_str()), (5, "1,1/1/2"));
        assert_eq!(grid.spots()[4], Spot { site: 2, machine: 3 });
        assert_eq!(grid.hosts()[1].host, "a2");
        assert!(
            grid.describe().ends_with("machines of a site 1 ms"),
            "{}",
            grid.describe()
        );
    }
}
