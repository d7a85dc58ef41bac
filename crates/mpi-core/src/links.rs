// SPDX-License-Identifier: Apache-2.0
//! The links in force: what schedules are chosen by, so equal at all members of a communicator.
//!
//! A job begins with what its launcher knew, which all processes are told. If that left pairs of local areas open, one
//! process per local area measures, and MPI_Init ends with an agreement ([`World::agree_links`]). From then on every
//! process measures on its own, from live traffic, but what is in force changes only where all members take part:
//!
//! * A new communicator inherits what is in force on the one that it is made of. If the process that names its contexts
//!   finds that its own measurements say something else, it says so with the contexts, and then tells all members of
//!   the new one what it knows ([`hear`]).
//! * MPI_Comm_set_info with `isthmus_links` = `refresh` makes all members put together what they have measured.

use std::sync::Arc;

use isthmus_engine::{Peer, Rates};
use isthmus_topology::{Level, Link, LinkEstimates, Measured, Origin, Origins, combine};

use crate::comm::{Comm, joined};
use crate::context;
use crate::error::Result;
use crate::info::Info;
use crate::internal;
use crate::world::{Measuring, World, WorldLinks};
use isthmus_abi::constants as abi;

/// Key of the info hint: the value `refresh` agrees on the links anew, the value that is read describes those in force.
pub const HINT: &str = "isthmus_links";
/// The value that agrees anew.
pub const REFRESH: &str = "refresh";

impl World {
    /// With what the launcher knows of the links, and a way to measure them.
    #[must_use]
    pub fn with_links(mut self, initial: LinkEstimates, measuring: Option<Measuring>) -> Self {
        self.links = WorldLinks::new(self.places(), initial, measuring);
        pace_by(&self, self.links());
        self
    }

    /// The links in force on MPI_COMM_WORLD when MPI_Init ended, and on everything that comes from it until somebody
    /// knows better.
    pub fn links(&self) -> &Arc<LinkEstimates> {
        self.links.agreed.get().unwrap_or(&self.links.initial)
    }

    /// What this process has measured and is sure of.
    pub fn measured(&self) -> Vec<Measured> {
        measured_if(self, true)
    }

    /// What is worth remembering when the job ends: what this process has measured, and from one process the latencies
    /// that were measured when the job began, which may be all there is.
    pub fn measured_in_all(&self) -> Vec<Measured> {
        let is_initial =
            |(_, origins, _): &((u32, u32), Origins, &Link)| self.rank() == 0 && origins.latency == Origin::Measured;
        let first = self
            .links()
            .pairs()
            .filter(is_initial)
            .map(|(between, _, link)| Measured {
                between,
                latency: Some(link.latency),
                rate: None,
            });
        combine(first.chain(self.measured()))
    }

    /// Puts together what the speakers, one process of each local area in order, have measured. All processes of the
    /// job call this before they use any communicator.
    pub fn agree_links(&self, speakers: &[u32]) -> Result<()> {
        let area = |rank: u32| self.topology().clusters_of(rank)[0];
        let mine = area(self.rank());
        let pairs = pairs(speakers.len() as u32);
        let mut told = Measured::encode_all(&at_pairs(&pairs, &[]));
        if speakers.get(mine as usize) == Some(&self.rank()) {
            let comm = Comm::new(
                self.group_of(speakers.iter().copied()),
                mine,
                self.context(context::SPEAKERS),
                "",
            );
            let own: Vec<_> = pairs
                .iter()
                .copied()
                .filter(|(a, b)| *a == mine || *b == mine)
                .collect();
            let row = Measured::encode_all(&at_pairs(&own, &measured_if(self, false)));
            let rows = internal::gather_equal(self, &comm, &row)?;
            told = Measured::encode_all(&at_pairs(&pairs, &decoded(&rows)?));
        }
        let members: Vec<u32> = (0..self.size()).filter(|&r| area(r) == mine).collect();
        let me = members.iter().position(|&r| r == self.rank()).unwrap_or(0);
        let comm = Comm::new(self.group_of(members), me as u32, self.context(context::AREA), "");
        let told = internal::broadcast(self, &comm, 0, &told)?;
        let estimates = self.links.initial.learn(&decoded(&told)?, Origin::Measured);
        // Nobody else sets it.
        let _ = self.links.agreed.set(Arc::new(estimates));
        pace_by(self, self.links());
        Ok(())
    }
}

/// Transports pace by these links.
fn pace_by(world: &World, estimates: &Arc<LinkEstimates>) {
    let (topology, estimates) = (world.shared_topology(), estimates.clone());
    let (me, first) = (topology.clusters_of(world.rank())[0], world.peer(0));
    world.engine().lock().core.know_rates(
        &(Arc::new(move |peer: Peer| {
            let rank = peer.index_from(first) as u32;
            let area = topology.clusters_of((rank < topology.size()).then_some(rank)?)[0];
            let is_known = area != me && estimates.origins(me, area).rate != Origin::Assumed;
            is_known.then(|| estimates.links().pair(me, area).gap.as_rate())
        }) as Rates),
    );
}

/// What this process has measured; `settled`: and is sure of.
fn measured_if(world: &World, settled: bool) -> Vec<Measured> {
    let measuring = world.links.measuring.as_ref();
    measuring.map(|measure| measure(settled)).unwrap_or_default()
}

/// What this process would say of the links to the members of a communicator on which these are in force; nothing
/// if that is no news.
fn news(world: &World, estimates: &LinkEstimates) -> Vec<Measured> {
    let measured = world.measured();
    let is_news = measured.iter().any(|m| estimates.differs(m));
    if is_news { measured } else { Vec::new() }
}

/// All pairs of so many local areas.
fn pairs(count: u32) -> Vec<(u32, u32)> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b))).collect()
}

/// An entry for each of these pairs, empty where nothing was measured.
fn at_pairs(pairs: &[(u32, u32)], measured: &[Measured]) -> Vec<Measured> {
    let entry = |&between: &(u32, u32)| {
        let found = measured.iter().find(|m| m.between == between);
        found.copied().unwrap_or_else(|| Measured {
            between,
            ..Measured::default()
        })
    };
    pairs.iter().map(entry).collect()
}

fn decoded(bytes: &[u8]) -> Result<Vec<Measured>> {
    match Measured::decode_all(bytes) {
        Ok(all) => Ok(combine(all)),
        Err(error) => crate::fail!(
            abi::MPI_ERR_INTERN,
            "another process sent invalid data about links: {error}"
        ),
    }
}

/// The links in force.
pub fn of(world: &World, comm: &Comm) -> Arc<LinkEstimates> {
    comm.own_links().unwrap_or_else(|| world.links().clone())
}

/// Marks numbers that this process has taken for a new communicator, if it knows more of the links than what is in
/// force here.
pub(crate) fn marked(world: &World, comm: &Comm, numbers: context::Numbers) -> context::Numbers {
    marked_beside(world, comm, comm.everybody().own_links(), numbers)
}

/// The same where the new one begins with these links, if they are not those of the world.
pub(crate) fn marked_beside(
    world: &World,
    comm: &Comm,
    links: Option<Arc<LinkEstimates>>,
    numbers: context::Numbers,
) -> context::Numbers {
    let estimates = links.unwrap_or_else(|| world.links().clone());
    // Processes of several jobs have no common names for local areas, so they tell each other no news.
    if numbers[0] != 0 && !joined::is_joined(comm) && !news(world, &estimates).is_empty() {
        context::with_news(numbers)
    } else {
        numbers
    }
}

/// Rank 0 tells all members of this new communicator what it knows of the links; collective.
pub(crate) fn hear(world: &World, comm: &Comm) -> Result<()> {
    let everybody = comm.everybody();
    let news = match everybody.rank() {
        0 => Measured::encode_all(&news(world, &of(world, everybody))),
        _ => Vec::new(),
    };
    let told = internal::broadcast_all(world, everybody, 0, &news)?;
    learn(world, comm, &decoded(&told)?);
    Ok(())
}

/// All members put together what they have measured; collective.
pub fn refresh(world: &World, comm: &Comm) -> Result<()> {
    if joined::is_joined(comm) {
        return Ok(());
    }
    let mine = Measured::encode_all(&world.measured());
    let all = internal::gather_all(world, comm.everybody(), &mine)?;
    learn(world, comm, &decoded(&all.concat())?);
    Ok(())
}

fn learn(world: &World, comm: &Comm, measured: &[Measured]) {
    let before = of(world, comm.everybody());
    let estimates = before.learn(measured, Origin::Measured);
    if estimates != *before {
        let estimates = Arc::new(estimates);
        pace_by(world, &estimates);
        let parts = comm
            .joint()
            .map(|j| &*j.comm)
            .into_iter()
            .chain(comm.local().map(|l| &**l));
        for comm in parts.chain([comm]) {
            comm.set_links(Some(estimates.clone()));
        }
    }
}

/// Whether messages among the members pass between local areas.
pub fn spans_areas(world: &World, comm: &Comm) -> bool {
    let (topology, places) = joined::places(world, comm, comm.everybody().group());
    let mut areas = places.iter().map(|&place| topology.clusters_of(place)[0]);
    let first = areas.next();
    areas.any(|other| Some(other) != first)
}

/// The links in force among the members, for people: the usual wide-area link, then those between local areas of
/// members. At most `longest` bytes.
pub fn describe(world: &World, comm: &Comm, longest: usize) -> String {
    let estimates = of(world, comm.everybody());
    let mut areas: Vec<u32> = comm
        .everybody()
        .group()
        .members()
        .iter()
        .filter_map(|&peer| world.area_of(peer))
        .collect();
    areas.sort_unstable();
    areas.dedup();
    let name = |area: u32| {
        let of = |rank: &u32| world.topology().clusters_of(*rank)[0] == area;
        let place = (0..world.size()).find(of).map(|r| &world.places().places[r as usize]);
        place.map_or("", |p| &world.places().subjobs[p.subjob as usize].lan)
    };
    let number = |value: u64, unit: f64| format!("{:.4}", value as f64 / unit);
    let wide = estimates.links().level(Level::WideArea);
    let mut text = format!(
        "version {}; other {} ms {} Mbit/s",
        estimates.version(),
        number(wide.latency, 1e6),
        number(wide.gap.as_rate(), 125e3)
    );
    for ((a, b), origins, link) in estimates.pairs() {
        if areas.binary_search(&a).is_err() || areas.binary_search(&b).is_err() {
            continue;
        }
        let one = format!(
            "; {} {} {} ms {} {} Mbit/s {}",
            name(a),
            name(b),
            number(link.latency, 1e6),
            origins.latency.name(),
            number(link.gap.as_rate(), 125e3),
            origins.rate.name()
        );
        if text.len() + one.len() + 5 > longest {
            text.push_str("; ...");
            break;
        }
        text.push_str(&one);
    }
    text
}

/// Whether hints ask for agreeing on the links anew.
pub fn asks_for_refresh(given: &Info) -> bool {
    matches!(given.get(HINT), Ok(Some(REFRESH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_has_its_entry() {
        let measured = Measured {
            between: (0, 2),
            latency: Some(5),
            rate: None,
        };
        let all = at_pairs(&pairs(3), &[measured]);
        assert_eq!(
            all.iter().map(|m| m.between).collect::<Vec<_>>(),
            [(0, 1), (0, 2), (1, 2)]
        );
        assert_eq!((all[0].latency, all[1]), (None, measured));
    }
}
