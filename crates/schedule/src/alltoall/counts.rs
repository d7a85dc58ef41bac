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
use crate::routes::{Routes, Stand};
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

/// The parcels that a leader hands on, with where their lengths begin among those that it is told: by sender, in order.
pub(super) fn handed_on(routes: &Routes, council: &Council) -> Vec<(u32, Stand, u64)> {
    let (me, mut begin) = (council.index, 0);
    let senders = (0..council.size).filter(|&from| from != me);
    let stands = senders.map(|from| (from, routes.stand(from, me)));
    let others = stands.filter(|(_, stand)| !stand.parts.is_empty());
    others
        .map(|(from, stand)| {
            let at = begin;
            begin += stand.members.len() as u64;
            (from, stand, at)
        })
        .collect()
}

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Option<CountsPhase> {
    let (family, strategy) = family(call, network, me)?;
    let mut script = Script::default();
    let mut receive = up(&mut script, &family, width(network));
    if let (None, Some(routes)) = (family.parent, routes(network, &strategy)) {
        receive += ahead(&mut script, network, &family, me, routes, receive);
    }
    Some(CountsPhase {
        plan: Box::new(script),
        send: told(call, network, me),
        receive,
    })
}

/// The ways of parcels, where they do not go straight.
pub(super) fn routes<'a>(network: &'a Network, strategy: &Strategy) -> Option<&'a Arc<Routes>> {
    network
        .routes()
        .filter(|_| strategy.algorithm == Algorithm::LeadersRouted)
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

/// Lengths ahead of parcels. Received ones stand behind `begin`; gives how many they are.
fn ahead(script: &mut Script, network: &Arc<Network>, family: &Family, me: Rank, routes: &Routes, begin: u64) -> u64 {
    let council = Council::outermost(network, me);
    let (k, width) = (u64::from(council.size), width(network));
    let slot = |from: u32| Piece::whole(0).item(u64::from(from), k).slot(Kind::Counts);
    let own = totals(script, family, width, k);
    let tell = |script: &mut Script, from: u32, stand: &Stand, lengths: Slice, first: u32| {
        for part in stand.parts.iter().filter(|part| part.members.len() > 1) {
            let data = Slice {
                offset: lengths.offset + u64::from(part.members.start - first),
                length: part.members.len() as u64,
                ..lengths
            };
            script.send(council.rank(part.first), data, slot(from));
        }
    };
    tell(
        script,
        council.index,
        &routes.stand(council.index, council.index),
        own,
        0,
    );
    let mut count = 0;
    for (from, stand, at) in handed_on(routes, &council) {
        let data = Slice {
            buffer: Buffer::Recv,
            offset: begin + at,
            length: stand.members.len() as u64,
        };
        script.receive(council.rank(stand.parent.unwrap_or(from)), data, slot(from));
        tell(script, from, &stand, data, stand.members.start);
        count += data.length;
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
