// SPDX-License-Identifier: Apache-2.0
//! Scan (inclusive) and exscan (exclusive).

mod fixed;
mod tree;
mod whole;

use crate::Call;
use crate::choose::{self, Top};
use crate::script::Script;
use crate::step::{Plan, Rank};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.size(0);
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, shape, me, units);
    }
    let bytes = call.bytes(units);
    if shape.in_rank_order() {
        return tree::plan(call, shape, me, units, top(shape, bytes));
    }
    if choose::bring_whole(bytes.saturating_mul(u64::from(shape.size()))) {
        return whole::plan(call, shape, me, units);
    }
    tree::plan(call, shape.by_rank(), me, units, Top::Tree)
}

/// How the leaders meet where positions are ranks.
pub(crate) fn top(shape: &Shape, bytes: u64) -> Top {
    match choose::meeting(shape, bytes) {
        Top::Flat => Top::Flat,
        Top::Tree | Top::Doubling | Top::Split => Top::Tree,
    }
}
