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

use crate::script::{Kind, Script};
use crate::step::{Buffer, Plan, Rank};
use crate::tree::Family;
use crate::{Call, choose};
use isthmus_topology::Shape;

pub(super) fn plan(call: &Call, shape: &Shape, me: Rank, units: u64) -> Box<dyn Plan> {
    let bytes = call.bytes(units);
    let family = Family::new(shape, call.root, me, 0, |level, k| choose::radix(level, k, bytes));
    let cut = choose::cut(call, shape, units, choose::Top::Tree);
    Script::default().pieces(cut, move |script, piece| {
        let data = piece.of(Buffer::Recv);
        if let Some(parent) = family.parent {
            script.receive(parent, data, piece.slot(Kind::Down));
        }
        script.send_all(family.children.iter().map(|c| c.rank), data, piece.slot(Kind::Down));
    })
}
