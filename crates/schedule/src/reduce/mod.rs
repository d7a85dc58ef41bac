// SPDX-License-Identifier: Apache-2.0
//! Reduce to a root.

pub(crate) mod fixed;
mod tree;
pub(crate) mod whole;

use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Call, choose};
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
    if call.commutative || shape.in_rank_order() {
        return tree::plan(call, shape, me, units);
    }
    if choose::bring_whole(call.bytes(units).saturating_mul(u64::from(shape.size()))) {
        return whole::plan(call, shape, me, units);
    }
    tree::plan(call, shape.by_rank(), me, units)
}
