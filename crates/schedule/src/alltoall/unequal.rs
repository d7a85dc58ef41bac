// SPDX-License-Identifier: Apache-2.0
//! **Alltoallv through leaders: short blocks for other nodes go up to the leader of each site, in one parcel from site
//! to site, straight or through a third site, and down; others go straight to their destination.**
//!
//! | | |
//! |---|---|
//! | messages | at most S (S − 1) parcels over the wide area, empty ones are not sent unless they are handed on, one more for each time that one is handed on, and one per long block; inside a site those of gather and scatter (not for those who have or get nothing), and one per block inside a node that has a processor for each process |
//! | trips | wide area 1, routed the quickest ways; every inner tier twice |
//! | bytes | every block crosses the wide area once, routed once per link of its way |
//! | copies | every short block six times |
//! | restrictions | several tiers, the outermost the wide area; leaders and those who act for others have been told the sizes by the counts phase |
//! | paper | MagPIe (Kielmann et al., 1999): one message per pair of clusters |
//!
//! What is short each pair of processes knows alone, so nobody needs to know all sizes.

use super::pairwise::{self, Given};
use crate::choose;
use crate::parcels::Parcels;
use crate::routes::Ways;
use crate::row::{BlockRow, runs};
use crate::script::{Kind, Piece, Script};
use crate::short::{OwnBlocks, SHORT, goes_through, told, width};
use crate::step::{Action, After, Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Council, Family};
use crate::{Call, Network};
use std::ops::Range;
use std::sync::Arc;

/// The trees inside the sites, if blocks go through leaders.
pub(super) fn family(call: &Call, network: &Network, me: Rank) -> Option<(Family, Arc<Strategy>)> {
    let strategy = choose::strategy(call, network);
    let through = matches!(strategy.algorithm, Algorithm::Leaders | Algorithm::LeadersRouted);
    through.then(|| (Family::of(&strategy, network, 0, me), strategy))
}

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let Some((family, strategy)) = family(call, network, me) else {
        return pairwise::plan(call, network, me, OwnBlocks::of(call));
    };
    // A process without others below it is told nothing.
    let learnt = call.counts.clone();
    let told = learnt.unwrap_or_else(|| told(call, network, me).into());
    let sizes = Sizes {
        told,
        width: width(network),
        ranks: u64::from(network.size()),
        family: &family,
    };
    let mut script = Script::default();
    let given = pairwise::given(&mut script, call, network);
    let process = Process {
        call,
        network,
        me,
        sizes: &sizes,
    };
    let results = match family.parent {
        Some(parent) => process.member(&mut script, parent, &given),
        None => process.leader(&mut script, &given, ways(network, &strategy)),
    };
    let straight = |peer: Rank, units: u64| !goes_through(call, network, me, peer, units);
    pairwise::write(&mut script, network, me, OwnBlocks::of(call), &given, straight);
    process.unpack(&mut script, results, &given.ready);
    Box::new(script)
}

/// Bytes up to which leaders have room for a parcel that they hand on.
const MOST: u64 = 4 << 20;

/// The ways that parcels take, if they do not go straight.
fn ways<'a>(network: &'a Network, strategy: &Strategy) -> Option<&'a Ways> {
    let ways = network
        .ways()
        .filter(|_| strategy.algorithm == Algorithm::LeadersRouted)?;
    (largest(network).saturating_pow(2).saturating_mul(SHORT) <= MOST).then_some(&**ways)
}

/// Processes of the largest site.
fn largest(network: &Network) -> u64 {
    let sizes = (0..network.clusters(1)).map(|site| network.span(1, site).len() as u64);
    sizes.max().unwrap_or(0)
}

/// What the processes of the subtree have told.
struct Sizes<'a> {
    told: Arc<[u64]>,
    width: u64,
    ranks: u64,
    family: &'a Family,
}

impl Sizes<'_> {
    fn at(&self, position: u32, index: u64) -> u64 {
        self.told[(u64::from(position - self.family.start) * self.width + index) as usize]
    }

    /// Units from a process of the subtree to a rank.
    fn to(&self, position: u32, rank: Rank) -> u64 {
        self.at(position, u64::from(rank))
    }

    /// Units for a process of the subtree from a rank.
    fn from(&self, position: u32, rank: Rank) -> u64 {
        self.at(position, self.ranks + u64::from(rank))
    }

    fn begins(&self, units: impl Fn(u32, Rank) -> u64) -> Begins {
        let (mut next, mut begins) = (0, Vec::new());
        for position in self.family.start..self.family.end {
            for rank in 0..self.ranks as Rank {
                begins.push(next);
                next += units(position, rank);
            }
        }
        begins.push(next);
        Begins {
            first: self.family.start,
            ranks: self.ranks as usize,
            begins,
        }
    }

    /// What all processes of the subtree have for others, or get.
    fn row(&self, units: impl Fn(u32, Rank) -> u64) -> BlockRow {
        let all = |position| (0..self.ranks as Rank).map(|rank| units(position, rank)).sum::<u64>();
        BlockRow::of_positions(self.family.start, (self.family.start..self.family.end).map(all))
    }
}

/// Runs of consecutive ranks whose blocks go through leaders: first rank, units.
fn through(ranks: Range<Rank>, units: impl Fn(Rank) -> u64) -> Vec<(Rank, u64)> {
    let mut found: Vec<(Rank, u64)> = Vec::new();
    let mut last = None;
    for rank in ranks {
        let length = units(rank);
        match (length, found.last_mut()) {
            (0, _) => continue,
            (_, Some(run)) if last == Some(rank) => run.1 += length,
            _ => found.push((rank, length)),
        }
        last = Some(rank + 1);
    }
    found
}

/// One process and its part.
struct Process<'a> {
    call: &'a Call,
    network: &'a Arc<Network>,
    me: Rank,
    sizes: &'a Sizes<'a>,
}

impl Process<'_> {
    /// Collects what the subtree has for other nodes, in order of position, and in it by rank of destination. Gives the
    /// steps after which it is there.
    fn collect(&self, script: &mut Script, given: &Given) -> (BlockRow, Slice, After) {
        let (family, blocks) = (self.sizes.family, OwnBlocks::of(self.call).to);
        let row = self.sizes.row(|position, rank| self.sizes.to(position, rank));
        let all = family.start..family.end;
        let buffer = script.memory(row.length(all.clone()));
        let at = |positions: Range<u32>| row.slice(buffer, family.start, positions);
        let own = at(family.position..family.position + 1);
        let (mut offset, mut come) = (own.offset, After::NONE);
        for (rank, length) in through(0..self.network.size(), |rank| self.sizes.to(family.position, rank)) {
            let (buffer, to) = (given.buffer, Slice { offset, length, ..own });
            let from = Slice {
                buffer,
                offset: blocks.offset(rank),
                length,
            };
            come.append(script.push(Action::Copy { from, to }, given.ready.clone()));
            offset += length;
        }
        for child in family.children.iter().rev() {
            let (from, data) = (child.rank, at(child.start..child.end));
            let slot = Piece::whole(0).slot(Kind::Up);
            if data.length > 0 {
                come.append(script.push(Action::Receive { from, data, slot }, After::NONE));
            }
        }
        let whole = at(all);
        (row, whole, script.join(come))
    }

    /// Hands the children what is theirs when it is there; gives the own part.
    fn spread(&self, script: &mut Script, row: &BlockRow, results: Buffer, there: &After) -> Slice {
        let family = self.sizes.family;
        for child in &family.children {
            let data = row.slice(results, family.start, child.start..child.end);
            let (to, slot) = (child.rank, Piece::whole(0).slot(Kind::Down));
            if data.length > 0 {
                script.push(Action::Send { to, data, slot }, there.clone());
            }
        }
        row.slice(results, family.start, family.position..family.position + 1)
    }

    /// A process under another; gives its results and the steps after which they are there.
    fn member(&self, script: &mut Script, to: Rank, given: &Given) -> (Slice, After) {
        let family = self.sizes.family;
        let (_, data, collected) = self.collect(script, given);
        let slot = Piece::whole(0).slot(Kind::Up);
        if data.length > 0 {
            script.push(Action::Send { to, data, slot }, collected);
        }
        let row = self.sizes.row(|position, rank| self.sizes.from(position, rank));
        let results = script.memory(row.length(family.start..family.end));
        let data = row.slice(results, family.start, family.start..family.end);
        let (from, slot) = (to, Piece::whole(0).slot(Kind::Down));
        let come = match data.length {
            0 => After::NONE,
            _ => After::from_iter([script.push(Action::Receive { from, data, slot }, After::NONE)]),
        };
        (self.spread(script, &row, results, &come), come)
    }

    /// The leader of a site; gives its results and the steps after which they are there.
    fn leader(&self, script: &mut Script, given: &Given, ways: Option<&Ways>) -> (Slice, After) {
        let family = self.sizes.family;
        let council = Council::outermost(self.network, self.me);
        let block = SHORT / self.call.unit_bytes.max(1);
        let most = largest(self.network).pow(2) * block;
        let (_, rows, collected) = self.collect(script, given);
        let row = self.sizes.row(|position, rank| self.sizes.from(position, rank));
        let lengths = self.lengths(&council);
        let (k, memory) = (council.size, row.length(family.start..family.end));
        let parcels = Parcels {
            council: &council,
            routes: None,
            ways: ways.map(|ways| (ways, most)),
            length: &|from, to| lengths[(from * k + to) as usize],
            out: script.memory(rows.length),
            coming: script.memory(memory),
        };
        let given = Laid {
            begins: self.sizes.begins(|position, rank| self.sizes.to(position, rank)),
            rows,
        };
        let come = parcels.exchange(script, |script, to| {
            self.sort(script, &council.span(to), &given, parcels.to(to), &collected)
        });
        let results = Laid {
            begins: self.sizes.begins(|position, rank| self.sizes.from(position, rank)),
            rows: Slice {
                buffer: script.memory(memory),
                offset: 0,
                length: memory,
            },
        };
        let mut assembled = self.keep(script, &given, &results, &collected);
        for from in (0..k).filter(|&from| from != council.index) {
            let parcel = parcels.from(from);
            let steps = self.assemble(script, &council.span(from), parcel, &results, &come);
            assembled.extend(steps.iter().copied());
        }
        let assembled = script.join(assembled);
        (self.spread(script, &row, results.rows.buffer, &assembled), assembled)
    }

    /// Blocks from the own site for the own site go from rows to results.
    fn keep(&self, script: &mut Script, given: &Laid, results: &Laid, collected: &After) -> After {
        let (mut kept, family) = (After::NONE, self.sizes.family);
        for (from, to) in (family.start..family.end).flat_map(|a| (family.start..family.end).map(move |b| (a, b))) {
            let (sender, receiver) = (self.network.rank_at(from), self.network.rank_at(to));
            let (at, length) = given.begins.run(from, receiver..receiver + 1);
            let place = results.begins.run(to, sender..sender + 1).0;
            let slice = |whole: Slice, offset| Slice {
                offset,
                length,
                ..whole
            };
            if length > 0 {
                let (from, to) = (slice(given.rows, at), slice(results.rows, place));
                kept.append(script.push(Action::Copy { from, to }, collected.clone()));
            }
        }
        script.join(kept)
    }

    /// Units of parcels by sender and receiver: own ones and those for the own site.
    fn lengths(&self, council: &Council) -> Vec<u64> {
        let (family, k, me) = (self.sizes.family, council.size, council.index);
        let mut lengths = vec![0; (k * k) as usize];
        for site in (0..k).filter(|&site| site != me) {
            let ranks = || council.span(site).map(|position| self.network.rank_at(position));
            let pairs = || (family.start..family.end).flat_map(|own| ranks().map(move |rank| (own, rank)));
            lengths[(me * k + site) as usize] = pairs().map(|(own, rank)| self.sizes.to(own, rank)).sum();
            lengths[(site * k + me) as usize] = pairs().map(|(own, rank)| self.sizes.from(own, rank)).sum();
        }
        lengths
    }

    /// Makes the parcel for a site: by own process, by process there, in order of position.
    fn sort(&self, script: &mut Script, there: &Range<u32>, given: &Laid, parcel: Slice, collected: &After) -> After {
        let (mut offset, mut sorted) = (parcel.offset, After::NONE);
        for own in self.sizes.family.start..self.sizes.family.end {
            for (run, rank) in runs(self.network, there.clone()) {
                let (from, length) = given.begins.run(own, rank..rank + run.len() as u32);
                let from = Slice {
                    offset: from,
                    length,
                    ..given.rows
                };
                let to = Slice {
                    offset,
                    length,
                    ..parcel
                };
                if length > 0 {
                    sorted.append(script.push(Action::Copy { from, to }, collected.clone()));
                }
                offset += length;
            }
        }
        script.join(sorted)
    }

    /// Sorts a parcel into the own processes' results, which are in order of source's rank.
    fn assemble(&self, script: &mut Script, there: &Range<u32>, parcel: Slice, results: &Laid, come: &After) -> After {
        let (mut offset, mut assembled) = (parcel.offset, After::NONE);
        for rank in there.clone().map(|position| self.network.rank_at(position)) {
            for own in self.sizes.family.start..self.sizes.family.end {
                let (to, length) = results.begins.run(own, rank..rank + 1);
                let from = Slice {
                    offset,
                    length,
                    ..parcel
                };
                let to = Slice {
                    offset: to,
                    length,
                    ..results.rows
                };
                if length > 0 {
                    assembled.append(script.push(Action::Copy { from, to }, come.clone()));
                }
                offset += length;
            }
        }
        script.join(assembled)
    }

    /// Puts the results where they belong.
    fn unpack(&self, script: &mut Script, (results, there): (Slice, After), ready: &After) {
        let (blocks, position) = (OwnBlocks::of(self.call).from, self.sizes.family.position);
        let after = After::from_iter(there.iter().chain(ready.iter()).copied());
        let mut offset = results.offset;
        for (rank, length) in through(0..self.network.size(), |rank| self.sizes.from(position, rank)) {
            let buffer = Buffer::Recv;
            let to = Slice {
                buffer,
                offset: blocks.offset(rank),
                length,
            };
            let from = Slice {
                offset,
                length,
                ..results
            };
            script.push(Action::Copy { from, to }, after.clone());
            offset += length;
        }
    }
}

/// Rows of blocks in memory.
struct Laid {
    begins: Begins,
    rows: Slice,
}

/// Where the blocks of rows begin that stand one behind the other: by process of the subtree and by rank.
struct Begins {
    first: u32,
    ranks: usize,
    begins: Vec<u64>,
}

impl Begins {
    /// Where the blocks of consecutive ranks begin, and how long they are.
    fn run(&self, position: u32, ranks: Range<Rank>) -> (u64, u64) {
        let row = (position - self.first) as usize * self.ranks;
        let at = |rank: Rank| self.begins[row + rank as usize];
        (at(ranks.start), at(ranks.end) - at(ranks.start))
    }
}
