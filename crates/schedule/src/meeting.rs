// SPDX-License-Identifier: Apache-2.0
//! The ways for the leaders of the outermost tier to meet: which are possible, and what they cost.

use crate::Network;
use crate::cost::{Council, Phase};
use crate::routes::Routes;
use crate::strategy::Algorithm;
use std::sync::Arc;

/// Members of a council of leaders up to which each may send to each: their messages grow with the square.
pub(crate) const MOST: u32 = 64;

/// The ways for leaders to meet, of those given, that are possible.
pub(crate) fn possible(network: &Network, all: &[Algorithm]) -> Vec<Algorithm> {
    let members = if network.tiers() == 0 { 1 } else { network.clusters(1) };
    let possible = |&algorithm: &Algorithm| match algorithm {
        Algorithm::Flat | Algorithm::Split | Algorithm::FixedFlat | Algorithm::Leaders => (2..=MOST).contains(&members),
        Algorithm::Routed | Algorithm::FixedRouted => network.ways().is_some(),
        Algorithm::LeadersRouted => network.routes().is_some(),
        Algorithm::Ring => network.ring().is_some(),
        Algorithm::Doubling | Algorithm::Halving => members > 1,
        Algorithm::Bruck => members > 2,
        _ => true,
    };
    all.iter().copied().filter(possible).collect()
}

/// What a meeting of the leaders costs, for a message of so many bytes that they combine or not.
pub(crate) fn cost(network: &Network, algorithm: Algorithm, bytes: u64, combine: bool) -> Vec<Phase> {
    if algorithm == Algorithm::Tree || network.tiers() == 0 {
        return Vec::new();
    }
    let council = Council::largest(network, 0);
    let members = u64::from(council.members);
    match algorithm {
        Algorithm::Flat | Algorithm::FixedFlat | Algorithm::Leaders => vec![council.exchange(bytes, combine)],
        Algorithm::LeadersRouted => by_routes(network, bytes, combine),
        Algorithm::Routed | Algorithm::FixedRouted => network
            .ways()
            .map(|ways| council.relayed(ways, bytes, combine))
            .into_iter()
            .collect(),
        Algorithm::Ring => network
            .ring()
            .map(|ways| council.relayed(ways, bytes, combine))
            .into_iter()
            .collect(),
        Algorithm::Doubling => {
            let rounds = u64::from(members.ilog2()) + if members.is_power_of_two() { 0 } else { 2 };
            vec![council.rounds(rounds, bytes, combine)]
        }
        Algorithm::Bruck => {
            let rounds = u64::from(members.next_power_of_two().ilog2());
            vec![council.rounds(rounds, bytes.saturating_mul(members - 1) / rounds.max(1), combine)]
        }
        Algorithm::Halving => {
            // What each gets in the end: in the last round as much is exchanged, in each before that twice as much.
            // Pairs exchange all.
            let halves = (0..members.ilog2()).map(|round| council.rounds(1, bytes.saturating_mul(1 << round), combine));
            let pairs = (!members.is_power_of_two()).then(|| {
                let all = bytes.saturating_mul(members);
                [council.rounds(1, all, combine), council.rounds(1, bytes, false)]
            });
            halves.chain(pairs.into_iter().flatten()).collect()
        }
        Algorithm::Split => {
            let share = bytes.div_ceil(members);
            vec![council.exchange(share, combine), council.exchange(share, false)]
        }
        _ => Vec::new(),
    }
}

/// What a meeting by halving costs after which everybody gets everything, for a message of so many bytes.
pub(crate) fn there_and_back(network: &Network, bytes: u64) -> Vec<Phase> {
    if network.tiers() == 0 {
        return Vec::new();
    }
    let council = Council::largest(network, 0);
    let rounds = council.members.ilog2();
    let halves = (1..=rounds).map(|round| bytes.div_ceil(1 << round));
    let pairs = (!council.members.is_power_of_two()).then_some(bytes);
    let there = pairs.into_iter().chain(halves.clone());
    let back = halves.rev().chain(pairs);
    let there = there.map(|bytes| council.rounds(1, bytes, true));
    there.chain(back.map(|bytes| council.rounds(1, bytes, false))).collect()
}

/// What a meeting costs in which messages for several leaders are cut or put together on their ways.
pub(crate) fn by_routes(network: &Network, bytes: u64, combine: bool) -> Vec<Phase> {
    let phase = |routes: &Arc<Routes>| Council::largest(network, 0).relayed(&routes.ways(), bytes, combine);
    network.routes().map(phase).into_iter().collect()
}
