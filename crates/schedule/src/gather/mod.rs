// SPDX-License-Identifier: Apache-2.0
//! Gather and gatherv.

mod counts;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::bring;

use crate::row::Row;
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, Operation};
use isthmus_topology::Shape;
use std::sync::Arc;

pub(crate) fn plan(call: &Call, shape: &Arc<Shape>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Gather && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    tree::plan(call, shape, me)
}

/// The tree's radix follows the size of a block where all know it; with unequal blocks every tier is flat.
fn block_bytes(call: &Call) -> Option<u64> {
    match call.blocks {
        Blocks::Equal(n) if call.operation == Operation::Gather => Some(call.bytes(n)),
        _ => None,
    }
}

/// The own block of a process in the buffer that holds it when the call begins.
fn own_block(call: &Call, row: &Row, position: u32, me: Rank) -> Slice {
    let length = row.length(position..position + 1);
    if call.in_place {
        Slice {
            buffer: Buffer::Recv,
            offset: call.blocks.offset(me),
            length,
        }
    } else {
        Slice {
            buffer: Buffer::Send,
            offset: 0,
            length,
        }
    }
}
