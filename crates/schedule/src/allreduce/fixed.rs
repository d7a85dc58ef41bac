// SPDX-License-Identifier: Apache-2.0
//! **Allreduce in one order of association: covers go up the trees; the leaders of the outermost tier exchange theirs
//! and combine alone (short data), or one process combines; results go down.**
//!
//! | | |
//! |---|---|
//! | messages | those of tree, with a flat meeting or none |
//! | trips | those of tree: short data over sites, one wide-area trip |
//! | bytes | up and between leaders n times the size of covers (see reduce), down n |
//! | restrictions | none: order and association depend on ranks only (see `order.rs`) |
//! | paper | – |

use crate::Network;
use crate::order::{Interval, Ledger, Purpose, Ranks};
use crate::reduce::fixed::{absorb, give};
use crate::script::Kind;
use crate::step::{Plan, Rank};
use crate::strategy::Algorithm;
use crate::tree::{Council, Family, Move};
use crate::{Call, choose};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64) -> Box<dyn Plan> {
    let strategy = choose::strategy(call, network);
    let family = Family::of(&strategy, network, 0, me);
    let mut ledger = Ledger::new(network.size(), me, true, call.in_place);
    absorb(&mut ledger, network, &family);
    match family.parent {
        Some(parent) => {
            give(&mut ledger, network, &family, parent);
            ledger.receive_result(parent);
        }
        None => {
            if matches!(strategy.algorithm, Algorithm::FixedFlat | Algorithm::FixedRouted) {
                exchange(
                    &mut ledger,
                    network,
                    &Council::meeting(network, me, strategy.algorithm),
                    false,
                );
            }
            ledger.total();
        }
    }
    ledger.send_result(family.children.iter().map(|c| c.rank));
    ledger.plan(call, &strategy, units)
}

/// Everybody's covers to everybody, or (`upwards`) to those behind him.
pub(crate) fn exchange(ledger: &mut Ledger, network: &Network, council: &Council, upwards: bool) {
    let cover = |index: u32| Ranks::at(network, council.span(index)).cover(network.size());
    let covers: Vec<Vec<Interval>> = (0..council.size).map(cover).collect();
    let purpose = |item| {
        let (index, of) = council.number(item);
        Purpose {
            kind: Kind::Exchange,
            index,
            of,
        }
    };
    council.each_move(upwards, |step| match step {
        Move::Send { to, item } => ledger.send(council.rank(to), &covers[item as usize], purpose(item)),
        Move::Receive { from, item } => ledger.receive(council.rank(from), &covers[item as usize], purpose(item)),
    });
}
