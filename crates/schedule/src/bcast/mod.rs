// SPDX-License-Identifier: Apache-2.0
//! Broadcast.

mod tree;

use crate::Call;
use crate::script::Script;
use crate::step::{Plan, Rank};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    match call.blocks.size(0) {
        0 => Box::new(Script::default()),
        units => tree::plan(call, shape, me, units),
    }
}
