// SPDX-License-Identifier: Apache-2.0
//! **Allreduce in one order of association: covers go up the trees; the leaders of the outermost tier exchange theirs and combine
//! alone (short data), or one process combines; results go down.**
//!
//! | | |
//! |---|---|
//! | messages | those of tree, with a flat meeting or none |
//! | trips | those of tree: short data over sites, one wide-area trip |
//! | bytes | up and between leaders n times the size of covers (see reduce), down n |
//! | restrictions | none: order and association depend on ranks only (see `order.rs`) |
//! | paper | – |

use crate::order::{Ledger, Ranks};
use crate::reduce::fixed::{absorb, give};
use crate::script::Kind;
use crate::step::{Plan, Rank};
use crate::tree::{Council, Family};
use crate::{Call, choose};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(super) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank, units: u64) -> Box<dyn Plan> {
    let bytes = call.bytes(units);
    let meets = choose::fixed_meeting(shape, bytes);
    let family = Family::new(shape, 0, me, usize::from(meets), |level, k| {
        choose::radix(level, k, bytes)
    });
    let mut ledger = Ledger::new(shape.size(), me, true, call.in_place);
    absorb(&mut ledger, shape, &family);
    match family.parent {
        Some(parent) => {
            give(&mut ledger, shape, &family, parent);
            ledger.receive_result(parent);
        }
        None => {
            if meets {
                exchange(&mut ledger, shape, &Council::outermost(shape, me));
            }
            ledger.total();
        }
    }
    ledger.send_result(family.children.iter().map(|c| c.rank));
    ledger.plan(call, shape, units)
}

/// Everybody's covers to everybody.
fn exchange(ledger: &mut Ledger, shape: &Shape, council: &Council) {
    let cover = |index: u32| Ranks::at(shape, council.span(index)).cover(shape.size());
    let own = cover(council.index);
    ledger.send(council.pairs().map(|(to, _)| council.rank(to)), &own, Kind::Exchange);
    for (_, from) in council.pairs() {
        ledger.receive(council.rank(from), &cover(from), Kind::Exchange);
    }
}
