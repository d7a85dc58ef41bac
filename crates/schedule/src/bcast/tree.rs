// SPDX-License-Identifier: Apache-2.0
//! **Broadcast along the tree of all tiers, in pieces.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum; S sites: S − 1 wide-area ones, for every root |
//! | trips | wide area 1 (flat), local area 1, node 1 or log2 |
//! | bytes | n per message |
//! | long messages | pieces follow each other through all tiers at once |
//! | restrictions | none |
//! | paper | multilevel-topology-aware-collectives 2002, section 3.2 |

use crate::Network;
use crate::script::{Kind, Script};
use crate::step::{Buffer, Plan, Rank};
use crate::strategy::Strategy;
use crate::{Call, Messages, choose};

pub(super) fn plan(call: &Call, network: &Network, me: Rank, units: u64) -> Box<dyn Plan> {
    let strategy = choose::strategy(call, network);
    let families = strategy.families(network, call.root, me, false);
    let cut = strategy.cut_in_shares(call, network, units, false);
    Script::default().pieces(cut, move |script, piece| {
        let family = families.of_piece(piece.number);
        let data = piece.of(Buffer::Recv);
        if let Some(parent) = family.parent.filter(|_| !family.follows()) {
            script.receive(parent, data, piece.slot(Kind::Down));
        }
        script.send_all(family.children.iter().map(|c| c.rank), data, piece.slot(Kind::Down));
        family.spread(script, data);
    })
}

pub(super) fn messages(call: &Call, network: &Network, strategy: &Strategy) -> Messages {
    strategy.crossing(network, Messages::of_trees(network, 0)).times(
        strategy
            .cut_in_shares(call, network, call.blocks.size(0), false)
            .pieces(),
    )
}
