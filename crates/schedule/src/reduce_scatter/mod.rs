// SPDX-License-Identifier: Apache-2.0
//! Reduce_scatter_block and reduce_scatter.

mod fixed;
mod tree;

use crate::Call;
use crate::choose::{self, Top};
use crate::script::Script;
use crate::step::{Plan, Rank};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    let units = call.blocks.offset(shape.size());
    if units == 0 {
        return Box::new(Script::default());
    }
    if call.fixed {
        return fixed::plan(call, shape, me, units);
    }
    if !call.commutative && !shape.in_rank_order() {
        return tree::plan(call, shape.by_rank(), me, Top::Tree);
    }
    tree::plan(call, shape, me, top(shape, call.bytes(units)))
}

/// How the leaders meet for contributions of so many bytes.
pub(crate) fn top(shape: &Shape, bytes: u64) -> Top {
    match choose::meeting(shape, bytes) {
        Top::Tree | Top::Doubling => Top::Tree,
        Top::Flat | Top::Split => Top::Flat,
    }
}
