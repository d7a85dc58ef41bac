// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter: whole contributions are combined up to the leaders of the outermost tier, each leader gets from the others
//! the blocks of those it acts for, and these go down.**
//!
//! In a group with one tier everybody is a leader: then every contribution goes straight to where it is combined,
//! or (tree) to the first process and back.
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster; among S leaders: flat S (S − 1), the minimum for one trip; tree 2 (S − 1) |
//! | trips | below the outermost tier two per tier; among leaders: flat one, tree two |
//! | bytes | among leaders flat: every combined block once to its site, the minimum for one trip; below: all blocks up, the subtree's down |
//! | restrictions | operators that are not commutative need clusters of consecutive ranks; for others the shape without clusters is given, and slow links are crossed up to 2 (p − 1) times |
//! | paper | – |

use crate::Network;
use crate::choose::{Algorithm, Strategy};
use crate::fold::{Sum, fold, operand_of};
use crate::row::Row;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::tree::{Council, Family};
use crate::{Call, scatter};
use std::ops::Range;
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let mut script = Script::default();
    let row = Row::new(&call.blocks, network, 0);
    let family = Family::of(strategy, network, 0, me);
    let sum = combine_up(&mut script, call, network, &family, &row);
    let length = row.length(family.position..family.position + 1);
    let own = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    };
    match family.parent {
        Some(parent) => {
            script.send(parent, sum.value, Piece::whole(0).slot(Kind::Up));
            pass_on(&mut script, &family, parent, &row, own);
        }
        None if strategy.algorithm == Algorithm::Tree => {
            scatter::spread(&mut script, &family, &row, sum.value.buffer, 0, own)
        }
        None => meet(
            &mut script,
            &Council::outermost(network, me),
            &family,
            &row,
            sum.value,
            own,
        ),
    }
    Box::new(script)
}

/// Combines the subtree's contributions. The result has all blocks in order of position.
fn combine_up(script: &mut Script, call: &Call, network: &Network, family: &Family, row: &Row) -> Sum {
    let (p, total) = (network.size(), row.at(network.size()));
    let given = if call.in_place { Buffer::Recv } else { Buffer::Send };
    let whole = |buffer| Slice {
        buffer,
        offset: 0,
        length: total,
    };
    let mut value = whole(given);
    if !network.in_rank_order() || call.in_place {
        value = whole(script.memory(total));
        row.permute(script, network, 0..p, (value.buffer, 0), (given, &call.blocks), false);
    }
    let mut sum = Sum { value, target: value };
    if !family.is_leaf() {
        if value.buffer == Buffer::Send {
            sum.target = whole(script.memory(total));
        }
        let spares = script.memory(total * family.children.len() as u64);
        let spare = |i: usize| Slice {
            buffer: spares,
            offset: i as u64 * total,
            length: total,
        };
        sum.absorb_children(script, family, &Piece::whole(total), spare);
    }
    sum
}

/// Receives the subtree's results, hands on the children's and keeps the own one.
fn pass_on(script: &mut Script, family: &Family, parent: Rank, row: &Row, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    if family.is_leaf() {
        script.receive(parent, own, slot);
        return;
    }
    let buffer = script.memory(row.length(family.start..family.end));
    script.receive(parent, row.slice(buffer, family.start, family.start..family.end), slot);
    scatter::spread(script, family, row, buffer, family.start, own);
}

/// The leaders' meeting: each combines the blocks of those it acts for.
fn meet(script: &mut Script, council: &Council, family: &Family, row: &Row, all: Slice, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Exchange);
    let at = |positions: Range<u32>| row.slice(all.buffer, 0, positions);
    let value = at(family.start..family.end);
    let target = if family.is_leaf() {
        own
    } else {
        Slice {
            buffer: script.memory(value.length),
            offset: 0,
            ..value
        }
    };
    let mut sum = Sum { value, target };
    let spares = script.memory(value.length * u64::from(council.size));
    let spare = |i: usize| Slice {
        buffer: spares,
        offset: i as u64 * value.length,
        length: value.length,
    };
    for (to, from) in council.pairs() {
        script.send(council.rank(to), at(council.span(to)), slot);
        script.receive(council.rank(from), operand_of(council, &sum, spare, from), slot);
    }
    fold(script, council, &mut sum, spare);
    sum.settle(script);
    if !family.is_leaf() {
        scatter::spread(script, family, row, target.buffer, family.start, own);
    }
}
