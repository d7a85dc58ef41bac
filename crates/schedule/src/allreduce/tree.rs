// SPDX-License-Identifier: Apache-2.0
//! **Allreduce: up the trees to the leaders of the outermost tier, a meeting of these, and down, in pieces.**
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster: the minimum; among leaders see the meeting (flat, doubling, split); without a meeting one tree over all, 2 (S − 1) among S leaders |
//! | trips | below the outermost tier two per tier; 8 bytes over S sites: one wide-area trip |
//! | bytes | n per message |
//! | long messages | pieces follow each other through all tiers at once |
//! | restrictions | operators that are not commutative need clusters of consecutive ranks |
//! | result | bit-identical on all: one order of combination for all, or one process combines |
//! | paper | multilevel-topology-aware-collectives 2002, section 3; the one-trip meeting is ours |

use super::{doubling, flat, split};
use crate::Call;
use crate::choose::{self, Top};
use crate::fold::Sum;
use crate::script::{Kind, Piece, Pool, Script};
use crate::step::{Buffer, Plan, Rank};
use crate::tree::{Council, Family};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(super) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank, units: u64, top: Top) -> Box<dyn Plan> {
    let bytes = call.bytes(units);
    let family = Family::new(shape, 0, me, usize::from(top != Top::Tree), |level, k| {
        choose::radix(level, k, bytes)
    });
    let council = (top != Top::Tree && family.parent.is_none()).then(|| Council::outermost(shape, me));
    let cut = choose::cut(call, shape, units, top);
    let mut script = Script::default();
    let spares = family.children.len() as u64 + council.as_ref().map_or(0, |c| spares(c, top, cut.piece));
    let pool = cut.pool(&mut script, spares);
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    script.pieces(cut, move |script, piece| {
        let result = piece.of(Buffer::Recv);
        let mut sum = Sum {
            value: piece.of(own),
            target: result,
        };
        sum.absorb_children(script, &family, &piece, |i| pool.place(&piece, i));
        match (family.parent, &council) {
            (Some(parent), _) => {
                script.send(parent, sum.value, piece.slot(Kind::Up));
                script.receive(parent, result, piece.slot(Kind::Down));
            }
            (None, Some(council)) => meet(script, council, top, &mut sum, &piece, pool, family.children.len()),
            (None, None) => {}
        }
        if family.parent.is_none() {
            sum.settle(script);
        }
        script.send_all(family.children.iter().map(|c| c.rank), result, piece.slot(Kind::Down));
    })
}

fn spares(council: &Council, top: Top, piece: u64) -> u64 {
    match top {
        Top::Tree => 0,
        Top::Flat => u64::from(council.size),
        Top::Doubling => doubling::spares(council),
        Top::Split => split::spares(council, piece),
    }
}

fn meet(script: &mut Script, council: &Council, top: Top, sum: &mut Sum, piece: &Piece, pool: Pool, used: usize) {
    let spare = |i: usize| pool.place(piece, used + i);
    match top {
        Top::Tree => {}
        Top::Flat => flat::exchange(script, council, sum, piece, spare),
        Top::Doubling => doubling::exchange(script, council, sum, piece, spare),
        Top::Split => split::exchange(script, council, sum, piece, spare(0)),
    }
}
