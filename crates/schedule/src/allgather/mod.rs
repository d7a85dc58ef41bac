// SPDX-License-Identifier: Apache-2.0
//! Allgather and allgatherv.

mod tree;

pub(crate) use tree::bring;

use crate::Call;
use crate::script::Script;
use crate::step::{Plan, Rank};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    if call.blocks.offset(shape.size()) == 0 {
        return Box::new(Script::default());
    }
    tree::plan(call, shape, me)
}
