// SPDX-License-Identifier: Apache-2.0
//! **Allgather: up the trees to the leaders of the outermost tier, these exchange what they have, and down.**
//!
//! In a group with one tier everybody is a leader: then this is the direct exchange, or (tree) gather and broadcast.
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier (parts − 1) per cluster up, and as many down (long results: for each leader's blocks); among S leaders: flat and routed S (S − 1), the minimum for one trip; tree 2 (S − 1) |
//! | trips | below the outermost tier two per tier; among leaders: flat one, routed the quickest ways, tree two |
//! | bytes | every block crosses to every other site once: the minimum; down, everybody gets all blocks |
//! | long messages | each site's blocks go down as soon as they have come |
//! | restrictions | none |
//! | paper | – |

use super::bruck;
use crate::Network;
use crate::choose::{self, Order, Question};
use crate::row::BlockRow;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::tree::{Council, Family, Move};
use crate::{Bytes, Call, Messages, Operation};
use isthmus_topology::Level;
use std::ops::Range;
use std::sync::Arc;

/// Results above this many bytes go down site by site, as they come.
const LONG: u64 = 32 << 10;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let mut script = Script::default();
    let row = BlockRow::new(&call.blocks, network, 0);
    let length = call.blocks.size(me);
    let own = match call.in_place {
        true => Slice {
            buffer: Buffer::Recv,
            offset: call.blocks.offset(me),
            length,
        },
        false => Slice {
            buffer: Buffer::Send,
            offset: 0,
            length,
        },
    };
    if network.in_rank_order() {
        bring(
            &mut script,
            network,
            me,
            (&row, call.unit_bytes),
            own,
            Buffer::Recv,
            strategy,
        );
    } else {
        let all = script.memory(row.at(network.size()));
        bring(&mut script, network, me, (&row, call.unit_bytes), own, all, strategy);
        row.copy_to_ranks(&mut script, call, network, 0..network.size(), all);
    }
    Box::new(script)
}

/// Brings all blocks, in units of so many bytes, to all, in order of position in `all`, by one of the algorithms of
/// this file.
pub(crate) fn bring(
    script: &mut Script,
    network: &Arc<Network>,
    me: Rank,
    (row, unit_bytes): (&BlockRow, u64),
    own: Slice,
    all: Buffer,
    strategy: &Strategy,
) {
    let bytes = row.at(network.size()).saturating_mul(unit_bytes);
    let family = Family::of(strategy, network, 0, me);
    let at = |positions: Range<u32>| row.slice(all, 0, positions);
    up(script, &family, own, at);
    let council = (strategy.algorithm != Algorithm::Tree).then(|| Council::meeting(network, me, strategy.algorithm));
    if let (None, Some(council), true) = (family.parent, &council, strategy.algorithm == Algorithm::Bruck) {
        let blocks = |members: Range<u32>| at(council.span(members.start).start..council.span(members.end - 1).end);
        bruck::exchange(script, council, blocks);
    } else if let (None, Some(council)) = (family.parent, &council) {
        council.each_move(false, |step| {
            let slot = |item| council.about(&Piece::whole(0), item).slot(Kind::Exchange);
            match step {
                Move::Send { to, item } => script.send(council.rank(to), at(council.span(item)), slot(item)),
                Move::Receive { from, item } => script.receive(council.rank(from), at(council.span(item)), slot(item)),
            };
        });
    }
    match council {
        Some(council) if bytes > LONG => {
            for site in 0..council.size {
                down(script, &family, at(council.span(site)), u64::from(site));
            }
        }
        _ => down(script, &family, at(0..network.size()), 0),
    }
}

/// How an operation brings blocks of so many bytes in all to all.
pub(crate) fn ask(network: &Network, bytes: u64) -> Arc<Strategy> {
    choose::answer(&Question::new(Operation::Allgather, Order::Any, Some(bytes)), network)
}

/// Messages for results of so many bytes.
pub(crate) fn messages_of(strategy: &Strategy, network: &Network, bytes: u64) -> Messages {
    let once = match strategy.algorithm {
        Algorithm::Tree => return strategy.crossing(network, Messages::of_trees(network, 0).times(2)),
        Algorithm::Bruck => Messages::of_meeting(network, bruck::messages),
        _ => Messages::of_meeting(network, Messages::each_to_each),
    };
    strategy.crossing(
        network,
        match bytes > LONG {
            true => once.plus(Messages::of_trees(network, 1).times(u64::from(network.clusters(1)) - 1)),
            false => once,
        },
    )
}

/// Where leaders meet: blocks go up, each leader gets those of other sites once, and everybody else gets all.
pub(super) fn bytes(call: &Call, network: &Network) -> Bytes {
    let row = BlockRow::new(&call.blocks, network, 0);
    let all = call.bytes(row.at(network.size()));
    let leaders = if network.tiers() == 0 {
        1
    } else {
        u64::from(network.clusters(1))
    };
    let up = Bytes::of_blocks(network, 1, 0, &row, call.unit_bytes);
    let down = Bytes::of(Messages::of_trees(network, 1), all);
    let level = if network.tiers() == 0 {
        Level::Node
    } else {
        network.level(0)
    };
    up.plus(down).and(level, all.saturating_mul(leaders - 1))
}

fn up(script: &mut Script, family: &Family, own: Slice, at: impl Fn(Range<u32>) -> Slice) {
    let slot = Piece::whole(0).slot(Kind::Up);
    let mut data = own;
    if family.follows() {
        return family.put_together(script, own, at);
    }
    if family.parent.is_none() || !family.is_leaf() {
        family.put_together(script, own, &at);
        for child in family.children.iter().rev() {
            script.receive(child.rank, at(child.start..child.end), slot);
        }
        data = at(family.start..family.end);
    }
    if let Some(parent) = family.parent {
        script.send(parent, data, slot);
    }
}

fn down(script: &mut Script, family: &Family, data: Slice, number: u64) {
    let slot = Piece::numbered(number).slot(Kind::Down);
    if let Some(parent) = family.parent.filter(|_| !family.follows()) {
        script.receive(parent, data, slot);
    }
    script.send_all(family.children.iter().map(|c| c.rank), data, slot);
    family.spread(script, data);
}
