// SPDX-License-Identifier: Apache-2.0
//! **Counts of alltoallv through leaders: sizes of short blocks for other sites go up to the leader of each site, and ahead of parcels that
//! pass other leaders go their lengths.**
//!
//! | | |
//! |---|---|
//! | messages | inside sites those of gather; over the wide area one ahead of each parcel that is handed on: none where all go straight |
//! | trips | one per inner tier; over the wide area those of the parcels, which follow at once |
//! | bytes | 16 p and 8 per site from each process up; 8 per parcel that is handed on |
//! | restrictions | – |
//! | paper | – |
//!
//! A process tells how much it has for each rank, how much each rank has for it, and how much it has for each site. Both sides of a
//! pair of sites know all sizes from their own processes, so these need not cross.

use super::unequal::family;
use crate::choose::{Algorithm, Strategy};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Rank, Slice};
use crate::tree::{Council, Family};
use crate::{Blocks, Call, CountsPhase, Network};
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a block up to which it takes the way through leaders.
const SHORT: u64 = 1 << 10;

/// Numbers that each process tells.
pub(super) fn width(network: &Network) -> u64 {
    2 * u64::from(network.size()) + u64::from(network.clusters(1))
}

/// Whether a block of a process and another rank goes through leaders.
pub(super) fn goes_through(call: &Call, network: &Network, me: Rank, peer: Rank, units: u64) -> bool {
    let site = |rank| network.cluster_of(1, network.position_of(rank));
    units > 0 && call.bytes(units) <= SHORT && site(me) != site(peer)
}

/// The own blocks by destination and by source.
pub(super) fn blocks_of(call: &Call) -> (&Blocks, &Blocks) {
    match call.in_place {
        true => (&call.receive_blocks, &call.receive_blocks),
        false => (&call.blocks, &call.receive_blocks),
    }
}

/// What a process tells: units that go through leaders, by destination, by source, and by the destination's site.
pub(super) fn told(call: &Call, network: &Network, me: Rank) -> Vec<u64> {
    let (given, got) = blocks_of(call);
    let short = |peer: Rank, units: u64| match goes_through(call, network, me, peer, units) {
        true => units,
        false => 0,
    };
    let ranks = 0..network.size();
    let mut told: Vec<u64> = ranks.clone().map(|peer| short(peer, given.size(peer))).collect();
    told.extend(ranks.map(|peer| short(peer, got.size(peer))));
    let by_site = |site| {
        network
            .span(1, site)
            .map(|p| told[network.rank_at(p) as usize])
            .sum::<u64>()
    };
    let sites: Vec<u64> = (0..network.clusters(1)).map(by_site).collect();
    told.extend(sites);
    told
}

/// A parcel that takes a quicker way through another site, where a process that does nothing else in this hands it on: its counts phase
/// waits for nobody else's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relay {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Who hands it on.
    pub(super) at: Rank,
}

/// All of them: ways through one other site that has a process for each sender beside its leader.
pub(super) fn relays(network: &Network, strategy: &Strategy) -> Vec<Relay> {
    let Some(ways) = network
        .ways()
        .filter(|_| strategy.algorithm == Algorithm::LeadersRouted)
    else {
        return Vec::new();
    };
    let k = network.clusters(1);
    let through = |from: u32, to: u32| {
        let by = ways.before(from, to);
        (by != from && ways.before(from, by) == from).then_some(by)
    };
    let mut found = Vec::new();
    for site in 0..k {
        let span = network.span(1, site);
        let mut free = span.start + 1..span.end;
        for from in (0..k).filter(|&from| from != site) {
            let behind = |&to: &u32| to != from && to != site && through(from, to) == Some(site);
            let receivers: Vec<u32> = (0..k).filter(behind).collect();
            if receivers.is_empty() {
                continue;
            }
            let Some(position) = free.next() else { break };
            let at = network.rank_at(position);
            found.extend(receivers.into_iter().map(|to| Relay { from, to, at }));
        }
    }
    found
}

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Option<CountsPhase> {
    let (family, strategy) = family(call, network, me)?;
    let mut script = Script::default();
    let mut receive = up(&mut script, &family, width(network));
    receive += ahead(&mut script, network, &family, me, &relays(network, &strategy), receive);
    Some(CountsPhase {
        plan: Box::new(script),
        send: told(call, network, me),
        receive,
    })
}

/// Collects what the subtree's processes tell; gives how many numbers that are, if others are among them or nobody is above.
fn up(script: &mut Script, family: &Family, width: u64) -> u64 {
    let slot = Piece::whole(0).slot(Kind::Counts);
    let own = Slice {
        buffer: Buffer::Send,
        offset: 0,
        length: width,
    };
    if let (Some(parent), true) = (family.parent, family.is_leaf()) {
        script.send(parent, own, slot);
        return 0;
    }
    let at = |positions: Range<u32>| Slice {
        buffer: Buffer::Recv,
        offset: u64::from(positions.start - family.start) * width,
        length: positions.len() as u64 * width,
    };
    script.copy(own, at(family.position..family.position + 1));
    for child in family.children.iter().rev() {
        script.receive(child.rank, at(child.start..child.end), slot);
    }
    let all = at(family.start..family.end);
    if let Some(parent) = family.parent {
        script.send(parent, all, slot);
    }
    all.length
}

/// Lengths ahead of parcels that are handed on. Received ones stand behind `begin`; gives how many they are.
fn ahead(script: &mut Script, network: &Arc<Network>, family: &Family, me: Rank, relays: &[Relay], begin: u64) -> u64 {
    let council = Council::outermost(network, me);
    let slot = |to: u32| Piece::numbered(u64::from(to)).slot(Kind::Counts);
    let leads = family.parent.is_none();
    let (mut own, mut count) = (None, 0);
    for relay in relays {
        if leads && relay.from == council.index {
            let sites = u64::from(council.size);
            let own = *own.get_or_insert_with(|| totals(script, family, width(network), sites));
            let length = Slice {
                offset: own.offset + u64::from(relay.to),
                length: 1,
                ..own
            };
            script.send(relay.at, length, slot(relay.to));
        }
        if relay.at == me {
            let length = Slice {
                buffer: Buffer::Recv,
                offset: begin + count,
                length: 1,
            };
            script.receive(council.rank(relay.from), length, slot(relay.to));
            count += 1;
        }
    }
    count
}

/// How much the own site has for each site: the sums of what its processes have told.
fn totals(script: &mut Script, family: &Family, width: u64, sites: u64) -> Slice {
    let sum = Slice {
        buffer: script.memory(sites),
        offset: 0,
        length: sites,
    };
    for process in 0..u64::from(family.end - family.start) {
        let told = Slice {
            buffer: Buffer::Recv,
            offset: (process + 1) * width - sites,
            length: sites,
        };
        match process {
            0 => script.copy(told, sum),
            _ => script.reduce(told, sum, false),
        }
    }
    sum
}
