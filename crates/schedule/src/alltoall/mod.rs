// SPDX-License-Identifier: Apache-2.0
//! Alltoall and alltoallv.

mod leaders;
mod pairwise;

use crate::script::Script;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Operation, choose};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    match call.blocks {
        Blocks::Equal(0) => Box::new(Script::default()),
        Blocks::Equal(n) if call.operation == Operation::Alltoall => {
            if choose::alltoall_by_leaders(shape, call.bytes(n)) {
                leaders::plan(call, shape, me, n)
            } else {
                pairwise::plan(call, shape, me, &call.blocks, &call.blocks)
            }
        }
        _ => pairwise::plan(call, shape, me, &call.blocks, &call.receive_blocks),
    }
}
