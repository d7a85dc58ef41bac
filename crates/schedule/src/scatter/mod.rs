// SPDX-License-Identifier: Apache-2.0
//! Scatter and scatterv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::spread;

use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Operation};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Scatter && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, shape, me)
}
