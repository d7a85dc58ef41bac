// SPDX-License-Identifier: Apache-2.0
//! **Alltoall through envoys: for each pair of sites one process on either side carries all blocks over, each as soon
//! as it has come.**
//!
//! | | |
//! |---|---|
//! | messages | every block once over the wide area, in parts of at most 1 MiB; inside sites one more per part that is handed to an envoy or by one |
//! | trips | wide area 1, inside sites 2 |
//! | bytes | every block crosses the wide area once: the minimum; inside a site all blocks for and from other sites once more |
//! | memory | rings for what is under way, whatever the size of the blocks |
//! | connections | one between two sites: a long stream fills a slow link where many short ones are in each other's way |
//! | restrictions | equal blocks; the outermost tier the wide area; sites of at most 256 |
//! | paper | pacx-mpi-optimized-algorithms: two processes of each machine do what passes between machines |
//!
//! Sites have different envoys for different sites, as far as they have processes, so that nobody carries everything.
//! All processes write their steps in rounds: in each, one part of one block goes from each site to each other one,
//! from another member to another member every time. Exchanges inside the sites are spread over the rounds, since slow
//! links should not wait for them.

use crate::amount::Cost;
use crate::choose::Question;
use crate::cost::{self, Phase};
use crate::script::{Cut, Kind, Piece, Script, Turns};
use crate::share::member;
use crate::step::{Action, After, Buffer, Plan, Rank, Slice, StepId};
use crate::strategy::{Algorithm, Strategy};
use crate::{Bytes, Call, Messages, Network};
use isthmus_topology::Level;
use std::ops::Range;
use std::sync::Arc;

/// Processes of the largest site.
const LARGEST: usize = 256;
/// Bytes of a part of a block.
const PART: u64 = 1 << 20;
/// Bytes of all rings of a process.
const MEMORY: u64 = 64 << 20;
/// Least and most parts in a ring.
const PLACES: [u64; 2] = [4, 512];

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, block: u64, segment: u64) -> Box<dyn Plan> {
    let mut script = Script::default();
    let position = network.position_of(me);
    let site = network.cluster_of(1, position);
    let unit = unit(call, block, segment);
    let whole = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length: block * u64::from(network.size()),
    };
    let given = match call.in_place {
        false => Buffer::Send,
        true => {
            let buffer = script.memory(whole.length);
            script.copy_first(whole, Slice { buffer, ..whole });
            buffer
        }
    };
    let pairs = 1..network.clusters(1);
    let carried = pairs.filter(|&distance| {
        let (out, back) = neighbours(network, site, distance);
        [out, back].iter().any(|&other| envoy(network, site, other) == position)
    });
    let carried: Vec<u32> = carried.collect();
    let places = places(network, site, call.bytes(unit), 2 * carried.len() as u64);
    let ring = script.memory(2 * carried.len() as u64 * places * unit);
    let mut process = Process {
        network: Arc::clone(network),
        position,
        site,
        block,
        unit,
        given,
        ring,
        places,
        last: vec![None; 2 * carried.len() * places as usize],
        carried,
    };
    let rounds = rounds(network, block.div_ceil(unit));
    let cut = Cut {
        total: rounds,
        piece: 1,
        lanes: places,
        window: (places as usize * process.most_steps()).min(MOST_STEPS),
        turns: Turns::default(),
    };
    if !call.in_place {
        process.own(&mut script);
    }
    script.pieces(cut, move |script, piece| process.round(script, piece.number, rounds))
}

/// Most steps of the executor's window.
const MOST_STEPS: usize = 4096;

/// Units of a part of a block.
fn unit(call: &Call, block: u64, segment: u64) -> u64 {
    let (most, granule) = (segment.min(PART) / call.unit_bytes.max(1), call.granule.max(1));
    most.max(1).div_ceil(granule).saturating_mul(granule).min(block)
}

/// Parts in a ring: so many that a link is never idle while a part is announced, asked for, on its way and
/// acknowledged, half as many again and some more, since processes have other work at times.
fn places(network: &Network, site: u32, part: u64, rings: u64) -> u64 {
    let others = (0..network.clusters(1)).filter(|&other| other != site);
    let under_way = |other| {
        let link = network.outer(site, other);
        link.latency.saturating_mul(6) / link.gap.at(part).max(1)
    };
    let wanted = others.map(under_way).max().unwrap_or(0).saturating_add(8);
    let room = MEMORY / part.max(1) / rings.max(1);
    wanted.min(room).clamp(PLACES[0], PLACES[1])
}

/// Rounds until all blocks of the largest sites, in so many parts each, are over.
fn rounds(network: &Network, parts: u64) -> u64 {
    let mut sizes: Vec<u64> = sites(network).map(|site| site.len() as u64).collect();
    sizes.sort_unstable();
    let largest = sizes.iter().rev().take(2).product::<u64>();
    largest * parts
}

fn sites(network: &Network) -> impl Iterator<Item = Range<u32>> + use<'_> {
    (0..network.clusters(1)).map(|site| network.span(1, site))
}

/// The sites so many places after and before one.
fn neighbours(network: &Network, site: u32, distance: u32) -> (u32, u32) {
    let sites = network.clusters(1);
    ((site + distance) % sites, (site + sites - distance) % sites)
}

/// Position of the process of a site that carries what passes between it and another one, both ways.
fn envoy(network: &Network, site: u32, other: u32) -> u32 {
    let sites = network.clusters(1);
    member(network, 1, site, (other + sites - site - 1) % sites)
}

/// One process.
struct Process {
    network: Arc<Network>,
    position: u32,
    site: u32,
    /// Units of a block and of a part of one.
    block: u64,
    unit: u64,
    given: Buffer,
    ring: Buffer,
    /// Parts in each ring.
    places: u64,
    /// The last step that needed what is in each place of the rings: not all rounds use theirs, so it may be long ago.
    last: Vec<Option<StepId>>,
    /// Distances of the sites to or from which it carries blocks.
    carried: Vec<u32>,
}

/// A part of a block on its way from a process to another one of another site, by position.
struct Parcel {
    source: u32,
    target: u32,
    /// Envoys of their sites.
    from: u32,
    to: u32,
    /// Units of the block before it, and its own.
    offset: u64,
    length: u64,
    /// Tells it from others between the same processes.
    number: u64,
}

/// A part that is handed on: from whom and to whom, with the slots of both messages.
struct Hop {
    from: (Rank, u16),
    to: (Rank, u16),
    length: u64,
}

impl Process {
    /// Most steps of a round: sends and receives as sender, envoy, envoy and receiver for each other site, and inside
    /// the own one.
    fn most_steps(&self) -> usize {
        2 + 2 * (self.network.clusters(1) as usize - 1) + 4 * self.carried.len()
    }

    fn own(&self, script: &mut Script) {
        let offset = u64::from(self.network.rank_at(self.position)) * self.block;
        let own = |buffer| Slice {
            buffer,
            offset,
            length: self.block,
        };
        script.copy_apart(own(self.given), own(Buffer::Recv));
    }

    fn round(&mut self, script: &mut Script, round: u64, rounds: u64) {
        for distance in 1..self.network.clusters(1) {
            let (there, here) = neighbours(&self.network, self.site, distance);
            if let Some(parcel) = self.parcel(round, distance, self.site, there) {
                self.outward(script, &parcel, round, distance);
            }
            if let Some(parcel) = self.parcel(round, distance, here, self.site) {
                self.inward(script, &parcel, round, distance);
            }
        }
        // Distances inside the site whose turn it is.
        let size = self.network.span(1, self.site).len() as u64;
        let due = |round: u64| round * (size - 1) / rounds;
        for distance in due(round)..due(round + 1) {
            self.near(script, distance as u32 + 1);
        }
    }

    /// What goes from one site to another in a round.
    fn parcel(&self, round: u64, distance: u32, from: u32, to: u32) -> Option<Parcel> {
        let network = &self.network;
        let (here, there) = (network.span(1, from), network.span(1, to));
        let (n, m) = (here.len() as u64, there.len() as u64);
        let parts = self.block.div_ceil(self.unit);
        let (turn, part) = (round / parts, round % parts);
        if turn >= n * m {
            return None;
        }
        // Each time another source, and another target.
        let (source, target) = (turn % n, (turn / n + turn % n) % m);
        let offset = part * self.unit;
        Some(Parcel {
            source: here.start + source as u32,
            target: there.start + target as u32,
            from: envoy(network, from, to),
            to: envoy(network, to, from),
            offset,
            length: self.unit.min(self.block - offset),
            number: round * u64::from(network.clusters(1) - 1) + u64::from(distance - 1),
        })
    }

    /// A part of the block of a process.
    fn part(&self, buffer: Buffer, position: u32, parcel: &Parcel) -> Slice {
        Slice {
            buffer,
            offset: u64::from(self.network.rank_at(position)) * self.block + parcel.offset,
            length: parcel.length,
        }
    }

    /// Receives a part into the ring for what goes to the site at a distance, or comes from it, and sends it on.
    fn hand_on(&mut self, script: &mut Script, round: u64, distance: u32, inward: bool, hop: Hop) {
        let ring = self.carried.iter().position(|&d| d == distance).unwrap_or(0) as u64;
        let place = (2 * ring + u64::from(inward)) * self.places + round % self.places;
        let data = Slice {
            buffer: self.ring,
            offset: place * self.unit,
            length: hop.length,
        };
        let last = &mut self.last[place as usize];
        let (from, slot) = hop.from;
        let come = script.push(Action::Receive { from, data, slot }, After::from_iter(*last));
        let (to, slot) = hop.to;
        *last = Some(script.push(Action::Send { to, data, slot }, After::from_iter([come])));
    }

    /// What this process does about a part that leaves its site.
    fn outward(&mut self, script: &mut Script, parcel: &Parcel, round: u64, distance: u32) {
        let piece = Piece::numbered(parcel.number);
        let rank = |position| self.network.rank_at(position);
        let (own, envoy) = (parcel.source == self.position, parcel.from == self.position);
        let on = (rank(parcel.to), piece.slot(Kind::Exchange));
        if own {
            let data = self.part(self.given, parcel.target, parcel);
            let (to, slot) = match envoy {
                true => on,
                false => (rank(parcel.from), piece.slot(Kind::Up)),
            };
            script.send(to, data, slot);
        } else if envoy {
            let hop = Hop {
                from: (rank(parcel.source), piece.slot(Kind::Up)),
                to: on,
                length: parcel.length,
            };
            self.hand_on(script, round, distance, false, hop);
        }
    }

    /// What this process does about a part that comes to its site.
    fn inward(&mut self, script: &mut Script, parcel: &Parcel, round: u64, distance: u32) {
        let piece = Piece::numbered(parcel.number);
        let rank = |position| self.network.rank_at(position);
        let (own, envoy) = (parcel.target == self.position, parcel.to == self.position);
        let over = (rank(parcel.from), piece.slot(Kind::Exchange));
        if own {
            let data = self.part(Buffer::Recv, parcel.source, parcel);
            let (from, slot) = match envoy {
                true => over,
                false => (rank(parcel.to), piece.slot(Kind::Down)),
            };
            script.receive(from, data, slot);
        } else if envoy {
            let hop = Hop {
                from: over,
                to: (rank(parcel.target), piece.slot(Kind::Down)),
                length: parcel.length,
            };
            self.hand_on(script, round, distance, true, hop);
        }
    }

    /// Exchange with those at a distance in the own site.
    fn near(&self, script: &mut Script, distance: u32) {
        let span = self.network.span(1, self.site);
        let (size, own) = (span.len() as u32, self.position - span.start);
        let rank = |index: u32| self.network.rank_at(span.start + index % size);
        let (to, from) = (rank(own + distance), rank(own + size - distance));
        let block = |buffer, rank| Slice {
            buffer,
            offset: u64::from(rank) * self.block,
            length: self.block,
        };
        let slot = Piece::whole(0).slot(Kind::Share);
        script.send(to, block(self.given, to), slot);
        script.receive(from, block(Buffer::Recv, from), slot);
    }
}

/// Where several processes of a site have something for another one.
pub(super) fn strategy(question: &Question, network: &Network) -> Option<Strategy> {
    let possible = network.tiers() > 1
        && network.level(0) == Level::WideArea
        && network.clusters(1) > 1
        && sites(network).all(|site| site.len() <= LARGEST);
    if !possible {
        return None;
    }
    let block = question.bytes();
    let site = u64::from(network.size() / network.clusters(1));
    let link = network.link(network.tiers() - 1);
    let each = link.send.at(block).saturating_add(link.receive.at(block));
    // What one envoy gets from its site for one other and for its site from there, and hands on.
    let handing = Phase::of_process("handing on by envoys", each.saturating_mul(2 * site * site));
    let cost = Cost::pipeline(&[cost::pairwise(network, block, 1), handing], 1, 1);
    let mut strategy = Strategy::without_trees(Algorithm::Envoys, cost);
    strategy.segment = PART;
    Some(strategy)
}

/// Every part once over the wide area, and once more where it is handed to an envoy or by one; inside sites one from
/// each process to each.
pub(super) fn messages(network: &Network, parts: u64) -> Messages {
    let mut all = Messages::of_pairs(network);
    let wide = network.level(0).index();
    all.by_level[wide] *= parts;
    for (site, span) in sites(network).enumerate() {
        for (other, there) in sites(network).enumerate().filter(|&(other, _)| other != site) {
            let envoy = envoy(network, site as u32, other as u32);
            for member in span.clone().filter(|&member| member != envoy) {
                // As many parts of blocks as the other site has processes, both ways.
                let level = network.level_between(network.rank_at(member), network.rank_at(envoy));
                all = all.and(level, 2 * there.len() as u64 * parts);
            }
        }
    }
    all
}

pub(super) fn bytes(network: &Network, block: u64) -> Bytes {
    Bytes::of(messages(network, 1), block)
}

/// Messages that a block is cut into.
pub(super) fn parts(call: &Call, block: u64, segment: u64) -> u64 {
    block.div_ceil(unit(call, block, segment))
}
