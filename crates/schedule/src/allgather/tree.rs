// SPDX-License-Identifier: Apache-2.0
//! **Allgather: up the trees to the leaders of the outermost tier, these exchange what they have, and down.**
//!
//! In a group with one tier everybody is a leader: then this is the direct exchange, or (tree) gather and broadcast.
//!
//! | | |
//! |---|---|
//! | messages | below the outermost tier (parts − 1) per cluster up, and as many down (long results: for each leader's blocks); among S leaders: flat S (S − 1), the minimum for one trip; tree 2 (S − 1) |
//! | trips | below the outermost tier two per tier; among leaders: flat one, tree two |
//! | bytes | every block crosses to every other site once: the minimum; down, everybody gets all blocks |
//! | long messages | each site's blocks go down as soon as they have come |
//! | restrictions | none |
//! | paper | – |

use crate::Call;
use crate::choose::{self, Top};
use crate::row::Row;
use crate::script::{Kind, Piece, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::tree::{Council, Family};
use isthmus_topology::Shape;
use std::ops::Range;
use std::sync::Arc;

pub(super) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    let row = Row::new(&call.blocks, shape, 0);
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
    if shape.in_rank_order() {
        bring(&mut script, shape, me, &row, own, Buffer::Recv, call.unit_bytes);
    } else {
        let all = script.memory(row.at(shape.size()));
        bring(&mut script, shape, me, &row, own, all, call.unit_bytes);
        row.permute(
            &mut script,
            shape,
            0..shape.size(),
            (all, 0),
            (Buffer::Recv, &call.blocks),
            true,
        );
    }
    Box::new(script)
}

/// Brings all blocks to all, in order of position in `all`.
pub(crate) fn bring(
    script: &mut Script,
    shape: &Arc<Shape>,
    me: Rank,
    row: &Row,
    own: Slice,
    all: Buffer,
    unit_bytes: u64,
) {
    let bytes = row.at(shape.size()).saturating_mul(unit_bytes);
    let top = choose::gathering(shape, bytes);
    let family = Family::new(shape, 0, me, usize::from(top != Top::Tree), |level, k| {
        choose::radix(level, k, bytes)
    });
    let at = |positions: Range<u32>| row.slice(all, 0, positions);
    up(script, &family, own, at);
    let council = (top != Top::Tree).then(|| Council::outermost(shape, me));
    if let (None, Some(council)) = (family.parent, &council) {
        let slot = Piece::whole(0).slot(Kind::Exchange);
        for (to, from) in council.pairs() {
            script.send(council.rank(to), at(council.span(council.index)), slot);
            script.receive(council.rank(from), at(council.span(from)), slot);
        }
    }
    match council {
        Some(council) if choose::is_long(bytes) => {
            for site in 0..council.size {
                down(script, &family, at(council.span(site)), u64::from(site));
            }
        }
        _ => down(script, &family, at(0..shape.size()), 0),
    }
}

fn up(script: &mut Script, family: &Family, own: Slice, at: impl Fn(Range<u32>) -> Slice) {
    let slot = Piece::whole(0).slot(Kind::Up);
    let mut data = own;
    if family.parent.is_none() || !family.is_leaf() {
        script.copy(own, at(family.position..family.position + 1));
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
    if let Some(parent) = family.parent {
        script.receive(parent, data, slot);
    }
    script.send_all(family.children.iter().map(|c| c.rank), data, slot);
}
