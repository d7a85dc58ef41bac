// SPDX-License-Identifier: Apache-2.0
//! **Allreduce: up the trees to the leaders of the outermost tier, a meeting of these, and down, in pieces.**
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster: the minimum; among leaders see the meeting (flat or routed, doubling, split, halving); without a meeting one tree over all, 2 (S − 1) among S leaders |
//! | trips | below the outermost tier two per tier; 8 bytes over S sites: one wide-area trip |
//! | bytes | n per message |
//! | long messages | pieces follow each other through all tiers at once |
//! | restrictions | operators that are not commutative need clusters of consecutive ranks |
//! | result | bit-identical on all: one order of combination for all, or one process combines |
//! | paper | multilevel-topology-aware-collectives 2002, section 3; the one-trip meeting is ours |

use super::{doubling, flat, halving, split};
use crate::Call;
use crate::Messages;
use crate::Network;
use crate::fold::Sum;
use crate::places::Places;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::Council;
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64, strategy: &Strategy) -> Box<dyn Plan> {
    let top = strategy.algorithm;
    let families = strategy.families(network, 0, me, !call.commutative);
    let meets = strategy.first_tier() > 0 && families.of_piece(0).parent.is_none();
    let council = meets.then(|| Council::meeting(network, me, top));
    let cut = strategy.cut(call, units);
    let mut script = Script::default();
    let meeting = council.as_ref().map_or(0, |c| spares(c, top, cut.piece));
    let spares = families
        .all()
        .iter()
        .map(|family| family.children.len() as u64 + meeting);
    let pool = cut.places(&mut script, spares);
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    script.pieces(cut, move |script, piece| {
        let family = families.of_piece(piece.number);
        let result = piece.of(Buffer::Recv);
        if family.follows() {
            family.combine(script, piece.of(own), Slice::NOTHING);
            return family.spread(script, result);
        }
        let mut sum = Sum {
            value: piece.of(own),
            target: result,
        };
        sum.absorb_children(script, family, &piece, |i| pool.place(&piece, i));
        match (family.parent, &council) {
            (Some(parent), _) => {
                script.send(parent, sum.value, piece.slot(Kind::Up));
                script.receive(parent, result, piece.slot(Kind::Down));
            }
            (None, Some(council)) => meet(script, council, top, &mut sum, &piece, &pool, family.children.len()),
            (None, None) => {}
        }
        if family.parent.is_none() {
            sum.settle(script);
        }
        script.send_all(family.children.iter().map(|c| c.rank), result, piece.slot(Kind::Down));
        family.spread(script, result);
    })
}

fn spares(council: &Council, top: Algorithm, piece: u64) -> u64 {
    match top {
        Algorithm::Flat | Algorithm::Routed => u64::from(council.size),
        Algorithm::Doubling => doubling::spares(council),
        Algorithm::Split => split::spares(council, piece),
        Algorithm::Halving => halving::spares(council, piece),
        _ => 0,
    }
}

fn meet(
    script: &mut Script,
    council: &Council,
    top: Algorithm,
    sum: &mut Sum,
    piece: &Piece,
    pool: &Places,
    used: usize,
) {
    let spare = |i: usize| pool.place(piece, used + i);
    match top {
        Algorithm::Flat | Algorithm::Routed => flat::exchange(script, council, sum, piece, spare),
        Algorithm::Doubling => doubling::exchange(script, council, sum, piece, spare),
        Algorithm::Split => split::exchange(script, council, sum, piece, spare(0)),
        Algorithm::Halving => halving::exchange(script, council, sum, piece, spare(0)),
        _ => {}
    }
}

pub(super) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Messages {
    once(network, strategy).times(strategy.cut(call, call.blocks.size(0)).pieces())
}

/// Messages of one piece.
pub(super) fn once(network: &Network, strategy: &Strategy) -> Messages {
    let messages = match strategy.algorithm {
        Algorithm::Flat | Algorithm::Routed | Algorithm::FixedFlat | Algorithm::FixedRouted => {
            Messages::of_meeting(network, Messages::each_to_each)
        }
        Algorithm::Doubling => Messages::of_meeting(network, doubling::messages),
        Algorithm::Halving => Messages::of_meeting(network, halving::messages),
        Algorithm::Split => Messages::of_meeting(network, |k| 2 * Messages::each_to_each(k)),
        _ => Messages::of_trees(network, 0).times(2),
    };
    strategy.crossing(network, messages)
}
