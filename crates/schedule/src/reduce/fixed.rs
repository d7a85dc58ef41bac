// SPDX-License-Identifier: Apache-2.0
//! **Reduce in one order of association: along the tree of all tiers, covers instead of sums.**
//!
//! | | |
//! |---|---|
//! | messages | (parts − 1) per cluster and tier: the minimum |
//! | trips | those of tree |
//! | bytes | n times the size of the subtree's cover: 1 for 2^j ranks from a multiple of 2^j on, up to 2 log2 p for consecutive ranks |
//! | restrictions | none: order and association depend on ranks only (see `order.rs`) |
//! | paper | – |

use crate::Network;
use crate::order::{Ledger, Ranks};
use crate::script::Kind;
use crate::step::{Plan, Rank};
use crate::tree::Family;
use crate::{Call, choose};

pub(super) fn plan(call: &Call, network: &Network, me: Rank, units: u64) -> Box<dyn Plan> {
    let strategy = choose::strategy(call, network);
    let family = Family::of(&strategy, network, call.root, me);
    let mut ledger = Ledger::new(network.size(), me, true, call.in_place);
    absorb(&mut ledger, network, &family);
    match family.parent {
        Some(parent) => give(&mut ledger, network, &family, parent),
        None => ledger.total(),
    }
    ledger.plan(call, &strategy, units)
}

/// Receives the covers of the children's subtrees.
pub(crate) fn absorb(ledger: &mut Ledger, network: &Network, family: &Family) {
    for child in family.children.iter().rev() {
        let cover = Ranks::at(network, child.start..child.end).cover(network.size());
        ledger.receive(child.rank, &cover, Kind::Up);
    }
}

/// Sends the cover of the own subtree up.
pub(crate) fn give(ledger: &mut Ledger, network: &Network, family: &Family, parent: Rank) {
    let cover = Ranks::at(network, family.start..family.end).cover(network.size());
    ledger.send(parent, &cover, Kind::Up);
}
