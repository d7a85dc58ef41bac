// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter: whole contributions are combined up to the leaders of the outermost tier, each leader gets from
//! the others the blocks of those it acts for, and these go down.**
//!
//! In a group with one tier everybody is a leader: then every contribution goes straight to where it is combined,
//! or (tree) to the first process and back.
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier 2 (parts − 1) per cluster; among S leaders: flat and routed S (S − 1), the minimum for one trip; tree 2 (S − 1); else see the meeting (halving) |
//! | trips | below the outermost tier two per tier; among leaders: flat one, routed the quickest ways, tree two |
//! | bytes | among leaders flat: every combined block once to its site, the minimum for one trip; routed: the same, what passes a leader is combined there; below: all blocks up, the subtree's down |
//! | restrictions | operators that are not commutative need clusters of consecutive ranks; for others the shape without clusters is given, and slow links are crossed up to 2 (p − 1) times |
//! | paper | – |

use super::halving;
use crate::Network;
use crate::fold::{Sum, fold, operand_of};
use crate::leaders::{LeadersExchange, memory};
use crate::routes::Routes;
use crate::row::{BlockRow, ByPosition, ByRank};
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Council, Family};
use crate::{Bytes, Call, Messages, scatter};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let mut script = Script::default();
    let row = BlockRow::new(&call.blocks, network, 0);
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
        None => {
            let council = Council::outermost(network, me);
            let routes = network.routes().filter(|_| strategy.algorithm == Algorithm::Routed);
            let exchange = LeadersExchange {
                council: &council,
                row: &row,
                all: sum.value,
            };
            let length = row.length(family.start..family.end);
            let target = match family.is_leaf() {
                true => own,
                false => memory(&mut script, length),
            };
            match (strategy.algorithm, routes) {
                (_, Some(routes)) => exchange.routed(&mut script, routes, target),
                (Algorithm::Halving, _) => halving::exchange(&mut script, &exchange, target),
                _ => exchange.flat(&mut script, target),
            }
            if !family.is_leaf() {
                scatter::spread(&mut script, &family, &row, target.buffer, family.start, own);
            }
        }
    }
    Box::new(script)
}

/// Combines the subtree's contributions. The result has all blocks in order of position.
fn combine_up(script: &mut Script, call: &Call, network: &Network, family: &Family, row: &BlockRow) -> Sum {
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
        row.permute(
            script,
            network,
            0..p,
            ByPosition {
                buffer: value.buffer,
                origin: 0,
            },
            ByRank {
                buffer: given,
                blocks: &call.blocks,
            },
            false,
        );
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
fn pass_on(script: &mut Script, family: &Family, parent: Rank, row: &BlockRow, own: Slice) {
    let slot = Piece::whole(0).slot(Kind::Down);
    if family.is_leaf() {
        script.receive(parent, own, slot);
        return;
    }
    let buffer = script.memory(row.length(family.start..family.end));
    script.receive(parent, row.slice(buffer, family.start, family.start..family.end), slot);
    scatter::spread(script, family, row, buffer, family.start, own);
}

impl LeadersExchange<'_> {
    /// The blocks that a leader gets.
    fn part(&self, leader: u32) -> Slice {
        self.row.slice(self.all.buffer, 0, self.council.span(leader))
    }

    /// Every leader's share straight to every other, who combines them.
    fn flat(&self, script: &mut Script, target: Slice) {
        let (council, slot) = (self.council, Piece::whole(0).slot(Kind::Exchange));
        let value = self.part(council.index);
        let mut sum = Sum { value, target };
        let spares = memory(script, value.length * u64::from(council.size));
        let spare = |i: usize| within(spares, i, value.length);
        for (to, from) in council.pairs() {
            script.send(council.rank(to), self.part(to), slot);
            script.receive(council.rank(from), operand_of(council, &sum, spare, from), slot);
        }
        fold(script, council, &mut sum, spare);
        sum.settle(script);
    }

    /// Every leader's blocks are combined along the quickest tree to it.
    fn routed(&self, script: &mut Script, routes: &Routes, target: Slice) {
        let (me, k) = (self.council.index, self.council.size);
        for to in (0..k).map(|d| (me + d) % k) {
            let stand = routes.stand(to, me);
            let slot = Piece::whole(0).item(u64::from(to), u64::from(k)).slot(Kind::Exchange);
            let value = self.part(to);
            let target = match (stand.parent, stand.parts.is_empty()) {
                (None, _) => target,
                (_, true) => value,
                (_, false) => memory(script, value.length),
            };
            let mut sum = Sum { value, target };
            let spares = memory(script, value.length * stand.parts.len() as u64);
            for (i, part) in stand.parts.iter().enumerate().rev() {
                let from = self.council.rank(part.first);
                sum.absorb(script, from, slot, within(spares, i, value.length), part.first < me);
            }
            match stand.parent {
                Some(parent) => _ = script.send(self.council.rank(parent), sum.value, slot),
                None => sum.settle(script),
            }
        }
    }
}

/// Place `index` of places of one length.
fn within(memory: Slice, index: usize, length: u64) -> Slice {
    Slice {
        offset: memory.offset + index as u64 * length,
        length,
        ..memory
    }
}

pub(super) fn messages(network: &Network, strategy: &Strategy) -> Messages {
    match strategy.algorithm {
        Algorithm::Tree => Messages::of_trees(network, 0).times(2),
        Algorithm::Halving => Messages::of_meeting(network, halving::messages),
        _ => Messages::of_meeting(network, Messages::each_to_each),
    }
}

/// All blocks go up the trees from a tier inwards, and each its own way down; between leaders who meet each site gets
/// its blocks from all others.
pub(super) fn bytes(call: &Call, network: &Network, from: usize) -> Bytes {
    let row = BlockRow::new(&call.blocks, network, 0);
    let all = call.bytes(row.at(network.size()));
    let up = Bytes::of(Messages::of_trees(network, from), all);
    let inside = up.plus(Bytes::of_blocks(network, from, 0, &row, call.unit_bytes));
    match from {
        0 => inside,
        _ => inside.and(network.level(0), all.saturating_mul(u64::from(network.clusters(1)) - 1)),
    }
}
