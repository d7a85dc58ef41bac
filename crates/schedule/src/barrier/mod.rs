// SPDX-License-Identifier: Apache-2.0
//! Barrier.

mod dissemination;
mod tree;

use crate::choose::{self, Top};
use crate::script::Script;
use crate::step::{Plan, Rank};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    tree::write(&mut script, shape, me, top(shape));
    Box::new(script)
}

/// How the leaders meet.
pub(crate) fn top(shape: &Shape) -> Top {
    match choose::meeting(shape, 0) {
        // The leaders' shares of a message without data would be messages without data.
        Top::Split => Top::Flat,
        top => top,
    }
}
