// SPDX-License-Identifier: Apache-2.0
//! **Alltoall through leaders: rows up to the leader of each site, one message between any two sites, straight
//! (leaders) or on its quickest way (leaders_routed), or in rounds ([bruck]), rows down.**
//!
//! | | |
//! |---|---|
//! | messages | S (S − 1) over the outermost level: the minimum for one trip; inside a site those of gather and scatter |
//! | trips | wide area 1, routed the quickest ways; every inner tier twice |
//! | bytes | every block crosses the wide area once: the minimum; routed, once per link of its way; inside a site every row goes up and down whole |
//! | copies | the leader of a site of m processes makes about m p of them: for small blocks and not too many processes |
//! | restrictions | equal blocks |
//! | paper | MagPIe (Kielmann et al., 1999): one message per pair of clusters |
//!
//! The leader holds `rows` (from its members, by position; the blocks of a row by destination's rank), `out` (by other
//! site, by own member, by member there) and `coming` (by other site, by member there, by own member), all in order of
//! position, and makes `results` (by own member; the blocks of a row by source's rank).

use super::bruck;
use crate::choose::{self, Question};
use crate::cost::{self, Flow, Phase};
use crate::crossings::pairs_across;
use crate::meeting;
use crate::parcels::Parcels;
use crate::routes::Routes;
use crate::row::{BlockRow, runs};
use crate::script::{Kind, Piece, Script};
use crate::step::{Action, After, Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Dealing, Strategy};
use crate::tree::{Council, Family};
use crate::trees::{Load, Trees};
use crate::{Bytes, Call, Messages, Network, scatter};
use std::ops::Range;
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, block: u64) -> Box<dyn Plan> {
    let mut script = Script::default();
    let length = block * u64::from(network.size());
    let strategy = choose::strategy(call, network);
    let family = Family::of(&strategy, network, 0, me);
    let own = Slice {
        buffer: if call.in_place { Buffer::Recv } else { Buffer::Send },
        offset: 0,
        length,
    };
    let result = Slice {
        buffer: Buffer::Recv,
        ..own
    };
    let rows = BlockRow::equal(length);
    match family.parent {
        Some(parent) => member(&mut script, &family, parent, &rows, own, result),
        None => {
            let routes = network
                .routes()
                .filter(|_| strategy.algorithm == Algorithm::LeadersRouted);
            let leader = Leader::new(&mut script, network, me, &family, block);
            let exchange = ParcelExchange {
                routes: routes.map(|r| &**r),
                rounds: strategy.algorithm == Algorithm::Bruck,
            };
            leader.act(&mut script, &family, &rows, own, result, &exchange);
        }
    }
    Box::new(script)
}

/// Bytes of all blocks up to which leaders keep copies of theirs.
const MOST: u64 = 16 << 20;

/// Where there are leaders, blocks of one size, and not too many of them.
pub(super) fn strategies(question: &Question, network: &Network) -> Vec<Strategy> {
    let meetings = [Algorithm::Leaders, Algorithm::LeadersRouted, Algorithm::Bruck];
    let possible = meeting::possible(network, &meetings);
    possible
        .into_iter()
        .filter_map(|algorithm| strategy(question, network, algorithm))
        .collect()
}

fn strategy(question: &Question, network: &Network, algorithm: Algorithm) -> Option<Strategy> {
    let p = u64::from(network.size());
    let (block, row) = (question.bytes?, question.bytes?.saturating_mul(p));
    let tiers = if algorithm == Algorithm::Bruck { 1 } else { 2 };
    if network.tiers() < tiers || p > 256 || row.saturating_mul(p) > MOST {
        return None;
    }
    let trees = Trees {
        question,
        network,
        algorithm,
        flows: &[(Flow::Up, Load::Blocks(row)), (Flow::Down, Load::Blocks(row))],
        cut: false,
        any_root: false,
        dealing: Dealing::WHOLE,
    };
    let cluster = p / u64::from(network.clusters(1));
    let between = block.saturating_mul(cluster * cluster);
    // Each leader sorts block by block.
    let sort = Phase::of_process(
        "sorting",
        network
            .links()
            .copy
            .at(block)
            .saturating_add(SORT)
            .saturating_mul(cluster * p),
    );
    let exchange = || match algorithm {
        Algorithm::Bruck => {
            let council = cost::Council::largest(network, 0);
            let (rounds, half) = (
                bruck::messages(u64::from(council.members)),
                u64::from(council.members / 2),
            );
            let rounds = rounds / u64::from(council.members);
            let handed = network.links().copy.at(between).saturating_add(SORT);
            let again = Phase::of_process("handing on", handed.saturating_mul(rounds * half));
            vec![council.rounds(rounds, between.saturating_mul(half), false), again]
        }
        _ => meeting::cost(network, algorithm, between, false),
    };
    Some(trees.strategy(&|_| {
        let mut phases = exchange();
        phases.push(sort.clone());
        phases
    }))
}

/// Nanoseconds that a step of sorting takes beside copying.
const SORT: u64 = 50;

/// A process that hands its subtree's rows up, and gets their results.
fn member(script: &mut Script, family: &Family, parent: Rank, rows: &BlockRow, own: Slice, result: Slice) {
    let (up, down) = (Piece::whole(0).slot(Kind::Up), Piece::whole(0).slot(Kind::Down));
    if family.is_leaf() {
        script.send(parent, own, up);
        script.receive(parent, result, down);
        return;
    }
    let whole = family.start..family.end;
    let buffer = script.memory(rows.length(whole.clone()));
    let at = |positions: Range<u32>| rows.slice(buffer, family.start, positions);
    script.copy(own, at(family.position..family.position + 1));
    for child in family.children.iter().rev() {
        script.receive(child.rank, at(child.start..child.end), up);
    }
    script.send(parent, at(whole.clone()), up);
    script.receive(parent, at(whole), down);
    scatter::spread(script, family, rows, buffer, family.start, result);
}

/// How leaders exchange their parcels.
struct ParcelExchange<'a> {
    /// The ways, if parcels do not go straight.
    routes: Option<&'a Routes>,
    /// Whether they are handed on in rounds.
    rounds: bool,
}

/// The leader of a site. Its steps name what they wait for: there are too many to search.
struct Leader<'a> {
    network: &'a Network,
    council: Council,
    /// Positions of the site.
    site: Range<u32>,
    block: u64,
    rows: Buffer,
    out: Buffer,
    coming: Buffer,
    results: Buffer,
}

impl<'a> Leader<'a> {
    fn new(script: &mut Script, network: &'a Arc<Network>, me: Rank, family: &Family, block: u64) -> Self {
        let (p, m) = (u64::from(network.size()), u64::from(family.end - family.start));
        Self {
            network,
            council: Council::outermost(network, me),
            site: family.start..family.end,
            block,
            rows: script.memory(m * p * block),
            out: script.memory(m * (p - m) * block),
            coming: script.memory(m * (p - m) * block),
            results: script.memory(m * p * block),
        }
    }

    fn act(
        &self,
        script: &mut Script,
        family: &Family,
        rows: &BlockRow,
        own: Slice,
        result: Slice,
        exchange: &ParcelExchange<'_>,
    ) {
        let collected = self.collect(script, family, rows, own);
        let units = |from: u32, to: u32| match from == to {
            true => 0,
            false => self.council.span(from).len() as u64 * self.council.span(to).len() as u64 * self.block,
        };
        let parcels = Parcels {
            council: &self.council,
            routes: exchange.routes,
            ways: None,
            length: &units,
            out: self.out,
            coming: self.coming,
        };
        let pack =
            |script: &mut Script, to: u32| self.pack(script, &self.council.span(to), parcels.to(to).offset, &collected);
        let come = match exchange.rounds {
            true => bruck::exchange(script, &parcels, pack),
            false => parcels.exchange(script, pack),
        };
        let ready = After::from_iter(collected.iter().chain(come.iter()).copied());
        let assembled = self.assemble(script, &parcels, ready);
        let slot = Piece::whole(0).slot(Kind::Down);
        for child in &family.children {
            let data = rows.slice(self.results, family.start, child.start..child.end);
            script.push(
                Action::Send {
                    to: child.rank,
                    data,
                    slot,
                },
                assembled.clone(),
            );
        }
        let from = rows.slice(self.results, family.start, family.position..family.position + 1);
        script.push(Action::Copy { from, to: result }, assembled);
    }

    fn collect(&self, script: &mut Script, family: &Family, rows: &BlockRow, own: Slice) -> After {
        let slot = Piece::whole(0).slot(Kind::Up);
        let at = |positions: Range<u32>| rows.slice(self.rows, family.start, positions);
        let to = at(family.position..family.position + 1);
        let mut all = After::from_iter([script.push(Action::Copy { from: own, to }, After::NONE)]);
        for child in family.children.iter().rev() {
            let data = at(child.start..child.end);
            all.add(script.push(
                Action::Receive {
                    from: child.rank,
                    data,
                    slot,
                },
                After::NONE,
            ));
        }
        script.join(all)
    }

    fn pack(&self, script: &mut Script, there: &Range<u32>, base: u64, collected: &After) -> After {
        let (p, n) = (u64::from(self.network.size()), there.len() as u64);
        let mut packed = After::NONE;
        for row in 0..self.site.len() as u64 {
            for (run, rank) in runs(self.network, there.clone()) {
                let length = run.len() as u64 * self.block;
                let from = Slice {
                    buffer: self.rows,
                    offset: (row * p + u64::from(rank)) * self.block,
                    length,
                };
                let column = u64::from(run.start - there.start);
                let to = Slice {
                    buffer: self.out,
                    offset: base + (row * n + column) * self.block,
                    length,
                };
                packed.append(script.push(Action::Copy { from, to }, collected.clone()));
            }
        }
        script.join(packed)
    }

    /// Puts the results together, a block at a time.
    fn assemble(&self, script: &mut Script, parcels: &Parcels<'_>, ready: After) -> After {
        let ready = script.join(ready);
        let mut assembled = After::NONE;
        for site in 0..self.council.size {
            let (there, base) = (self.council.span(site), parcels.from(site).offset);
            for source in there.clone() {
                for member in self.site.clone() {
                    let from = self.block_from(source, member, &there, base);
                    let column = u64::from(self.network.rank_at(source));
                    let row = u64::from(member - self.site.start) * u64::from(self.network.size());
                    let to = Slice {
                        buffer: self.results,
                        offset: (row + column) * self.block,
                        length: self.block,
                    };
                    assembled.append(script.push(Action::Copy { from, to }, ready.clone()));
                }
            }
        }
        script.join(assembled)
    }

    /// Where the leader has the block from a source (position, of site `there`, whose parcel begins at `base`) for a
    /// member (position).
    fn block_from(&self, source: u32, member: u32, there: &Range<u32>, base: u64) -> Slice {
        let (p, m) = (u64::from(self.network.size()), self.site.len() as u64);
        let length = self.block;
        if *there == self.site {
            let row = u64::from(source - self.site.start) * p;
            let offset = (row + u64::from(self.network.rank_at(member))) * self.block;
            return Slice {
                buffer: self.rows,
                offset,
                length,
            };
        }
        let index = u64::from(source - there.start) * m + u64::from(member - self.site.start);
        Slice {
            buffer: self.coming,
            offset: base + index * self.block,
            length,
        }
    }
}

pub(super) fn messages(network: &Network, algorithm: Algorithm) -> Messages {
    match algorithm {
        Algorithm::Bruck => Messages::of_meeting(network, bruck::messages),
        _ => Messages::of_meeting(network, Messages::each_to_each),
    }
}

/// Straight from leader to leader every block once over the outermost level, in rounds as often as it is handed on;
/// inside, every row up and down.
pub(super) fn bytes(network: &Network, algorithm: Algorithm, block: u64) -> Bytes {
    let row = block.saturating_mul(u64::from(network.size()));
    let rows = Bytes::of_blocks(network, 1, 0, &BlockRow::equal(row), 2);
    let between = match algorithm {
        Algorithm::Bruck => bruck::crossings(network),
        _ => pairs_across(network, 0),
    };
    rows.and(network.level(0), between.saturating_mul(block))
}
