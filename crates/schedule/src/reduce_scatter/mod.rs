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
    let top = match choose::meeting(shape, call.bytes(units)) {
        Top::Tree | Top::Doubling => Top::Tree,
        Top::Flat | Top::Split => Top::Flat,
    };
    tree::plan(call, shape, me, top)
}
