// SPDX-License-Identifier: Apache-2.0
//! Scan (inclusive) and exscan (exclusive).

mod fixed;
mod tree;
mod whole;

use crate::choose::{self, Algorithm, Load, Order, Question, Strategy, Trees, WHOLE};
use crate::cost::Way;
use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Call, Network};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.size(0);
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, network, me, units);
    }
    if !network.in_rank_order() {
        return match call.bytes(units).saturating_mul(u64::from(network.size())) {
            0..=WHOLE => whole::plan(call, network, me, units),
            _ => plan(call, network.by_rank(), me),
        };
    }
    tree::plan(call, network, me, units, &choose::strategy(call, network))
}

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    use Algorithm as A;
    let meetings: &[A] = match question.order {
        Order::Fixed => &[A::Fixed],
        Order::Any | Order::Ranks => &[A::Flat, A::Routed, A::Tree],
    };
    let trees = |algorithm| Trees {
        question,
        network,
        algorithm,
        flows: &[(Way::Combine, Load::Piece), (Way::Down, Load::Piece)],
        cut: true,
        any_root: false,
    };
    choose::meetings(network, meetings)
        .into_iter()
        .map(|algorithm| trees(algorithm).strategy(&|bytes| choose::meeting(network, algorithm, bytes, true)))
        .collect()
}
