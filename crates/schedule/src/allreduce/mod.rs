// SPDX-License-Identifier: Apache-2.0
//! Allreduce.

mod doubling;
mod fixed;
mod flat;
mod split;
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
    let bytes = call.bytes(units);
    if call.fixed {
        return fixed::plan(call, shape, me, units);
    }
    if call.commutative || shape.in_rank_order() {
        return tree::plan(call, shape, me, units, top(call, shape));
    }
    if choose::bring_whole(bytes.saturating_mul(u64::from(shape.size()))) {
        return whole::plan(call, shape, me, units);
    }
    tree::plan(call, shape.by_rank(), me, units, Top::Tree)
}

/// How the leaders meet where contributions can be combined on the way.
pub(crate) fn top(call: &Call, shape: &Shape) -> Top {
    let units = call.blocks.size(0);
    match choose::meeting(shape, call.bytes(units)) {
        Top::Split if units < u64::from(shape.clusters(1)) => Top::Tree,
        top => top,
    }
}
