// SPDX-License-Identifier: Apache-2.0
//! **Scan and exscan in one order of association: covers go up the trees; the leaders of the outermost tier tell those
//! above them (or all, where sites hold no consecutive ranks) theirs, or one tree joins them; what a subtree misses of
//! the intervals from 0 to its members comes down.**
//!
//! | | |
//! |---|---|
//! | messages | at most 2 (parts − 1) per cluster and tier; among leaders that meet those of scan or allgather |
//! | trips | two per tier; among leaders that meet flat one, routed the quickest ways |
//! | bytes | n times the size of covers up; down n times what is missing: for consecutive ranks from a on, the bits set in a |
//! | restrictions | none: the result of rank r is the reduction of ranks 0 to r in the order of `order.rs` |
//! | paper | – |

use crate::Network;
use crate::allreduce::exchange;
use crate::order::{Ledger, Ranks};
use crate::reduce::fixed::{absorb, give};
use crate::script::Kind;
use crate::step::{Plan, Rank};
use crate::strategy::Algorithm;
use crate::tree::{Council, Family};
use crate::{Call, Operation, choose};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64) -> Box<dyn Plan> {
    let strategy = choose::strategy(call, network);
    let inclusive = call.operation == Operation::Scan;
    let family = Family::of(&strategy, network, 0, me);
    let mut ledger = Ledger::new(network.size(), me, false, call.in_place);
    absorb(&mut ledger, network, &family);
    match family.parent {
        Some(parent) => {
            give(&mut ledger, network, &family, parent);
            let missing = Ranks::at(network, family.start..family.end).missing(inclusive);
            ledger.receive(parent, &missing, Kind::Down);
        }
        None if strategy.algorithm == Algorithm::Fixed => {}
        None => {
            let council = Council::meeting(network, me, strategy.algorithm);
            exchange(&mut ledger, network, &council, network.in_rank_order());
        }
    }
    for child in &family.children {
        let missing = Ranks::at(network, child.start..child.end).missing(inclusive);
        ledger.send(child.rank, &missing, Kind::Down);
    }
    match me + u32::from(inclusive) {
        0 => {}
        end => ledger.result(end),
    }
    ledger.plan(call, &strategy, units)
}
