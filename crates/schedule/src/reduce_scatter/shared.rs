// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter, each block along a tree of its own: combined inside each site, then over the sites, to its
//! owner.**
//!
//! | | |
//! |---|---|
//! | messages | p (S − 1) per piece of a block over the outermost level; p (parts − 1) inside each cluster |
//! | trips | 1 over the outermost level |
//! | bytes | of every block a combined one crosses from every other site, and from every other machine of a site, once: the minimum |
//! | long messages | pieces of all blocks follow each other through all tiers at once; some leaders of each site combine and carry its blocks |
//! | restrictions | long contributions of at most 256 processes: a process has a place in p trees. Operators that are not commutative: blocks come to their owners straight |
//! | paper | – (allgather/shared backwards) |

use crate::choose::Question;
use crate::cost::Flow;
use crate::fold::Sum;
use crate::script::{Cut, Kind, Script};
use crate::shares;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::Strategy;
use crate::tree::Family;
use crate::{Bytes, Call, Messages, Network};

pub(super) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    shares::of_blocks(question, network, Flow::Combine)
}

pub(super) fn plan(call: &Call, network: &Network, me: Rank, strategy: &Strategy) -> Box<dyn Plan> {
    let p = u64::from(network.size());
    let families = strategy.families_of_all(network, me, !call.commutative);
    let (blocks, cut) = (call.blocks.clone(), strategy.cut_of_blocks(call, call.blocks.largest()));
    // As many numbers for each block as the largest one has pieces, and a lane for each block at least.
    let numbers = Cut {
        total: cut.pieces() * p,
        piece: 1,
        lanes: cut.lanes.max(1).next_multiple_of(p),
        ..cut
    };
    let mut script = Script::default();
    let given = given(&mut script, call, network);
    let spares = |family: &Family| family.children.len() as u64;
    let places = numbers.places_of(&mut script, families.iter().map(spares), cut.piece.min(cut.total));
    script.pieces(numbers, move |script, number| {
        let (rank, from) = ((number.number % p) as Rank, number.number / p * cut.piece);
        let length = blocks.size(rank).saturating_sub(from).min(cut.piece);
        if length == 0 {
            return;
        }
        let family = &families[rank as usize];
        let place = |i: usize| Slice {
            length,
            ..places.place(&number, i)
        };
        let value = Slice {
            buffer: given,
            offset: blocks.offset(rank) + from,
            length,
        };
        // Those who act for others combine where the first operand would have its place.
        let target = match (family.parent, family.children.len()) {
            (None, _) => Slice {
                buffer: Buffer::Recv,
                offset: from,
                length,
            },
            (_, 0) => value,
            (_, children) => place(children - 1),
        };
        let mut sum = Sum { value, target };
        sum.absorb_children(script, family, &number, place);
        match family.parent {
            Some(parent) => _ = script.send(parent, sum.value, number.slot(Kind::Up)),
            None => sum.settle(script),
        }
    })
}

/// Where the contribution is: in place its first block would be where the result comes.
fn given(script: &mut Script, call: &Call, network: &Network) -> Buffer {
    if !call.in_place {
        return Buffer::Send;
    }
    let length = call.blocks.offset(network.size());
    let buffer = script.memory(length);
    let whole = |buffer| Slice {
        buffer,
        offset: 0,
        length,
    };
    script.copy_first(whole(Buffer::Recv), whole(buffer));
    buffer
}

/// One tree for every piece of every block.
pub(super) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Messages {
    let piece = strategy.cut_of_blocks(call, call.blocks.largest()).piece;
    let pieces = |rank| call.blocks.size(rank).div_ceil(piece);
    Messages::of_trees(network, 0).times((0..network.size()).map(pieces).sum())
}

/// Every block once along a tree.
pub(super) fn bytes(call: &Call, network: &Network) -> Bytes {
    let all = call.bytes(call.blocks.offset(network.size()));
    Bytes::of(Messages::of_trees(network, 0), all)
}
