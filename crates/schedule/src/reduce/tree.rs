// SPDX-License-Identifier: Apache-2.0
//! **Reduce along the tree of all tiers, in pieces.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; S sites: S − 1 wide-area ones, for every root |
//! | trips | wide area 1 (flat), local area 1, node 1 or log2 |
//! | bytes | n per message |
//! | long messages | pieces follow each other through all tiers at once |
//! | restrictions | operands are combined in order of position. Operators that are not commutative need clusters of consecutive ranks; for others the shape without clusters is given, whose positions are ranks, and slow links are crossed up to p − 1 times |
//! | paper | multilevel-topology-aware-collectives 2002, section 3.2 |

use crate::Network;
use crate::fold::Sum;
use crate::script::{Kind, Script};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::Strategy;
use crate::tree::Family;
use crate::{Call, Messages, choose};

pub(super) fn plan(call: &Call, network: &Network, me: Rank, units: u64) -> Box<dyn Plan> {
    let strategy = choose::strategy(call, network);
    let families = strategy.families(network, call.root, me, !call.commutative);
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    let cut = strategy.cut_in_shares(call, network, units, !call.commutative);
    let mut script = Script::default();
    // The last spare is where a process that acts for others, but has no result buffer, combines.
    let spares = |family: &Family| family.children.len() as u64 + u64::from(!family.is_leaf());
    let pool = cut.places(&mut script, families.all().iter().map(spares));
    script.pieces(cut, move |script, piece| {
        let family = families.of_piece(piece.number);
        let own = piece.of(own);
        if family.follows() {
            return family.combine(script, own, Slice::NOTHING);
        }
        let target = match family.parent {
            None => piece.of(Buffer::Recv),
            Some(_) if family.is_leaf() => own,
            Some(_) => pool.place(&piece, family.children.len()),
        };
        let mut sum = Sum { value: own, target };
        sum.absorb_children(script, family, &piece, |i| pool.place(&piece, i));
        match family.parent {
            Some(parent) => {
                script.send(parent, sum.value, piece.slot(Kind::Up));
            }
            None => sum.settle(script),
        }
    })
}

pub(crate) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Messages {
    let cut = strategy.cut_in_shares(call, network, call.blocks.size(0), !call.commutative);
    strategy
        .crossing(network, Messages::of_trees(network, 0))
        .times(cut.pieces())
}
