// SPDX-License-Identifier: Apache-2.0
//! Gather and gatherv.

mod counts;
mod direct;
mod shared;
mod tree;

pub(crate) use counts::plan as counts;
pub(crate) use tree::{bring, brought};

use crate::choose::{self, Question};
use crate::cost::Way;
use crate::rooted;
pub(crate) use crate::rooted::{bytes, messages};
use crate::row::Row;
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Call, Network, Operation};
use std::sync::Arc;

pub(crate) fn plan(call: &Call, network: &Arc<Network>, me: Rank) -> Box<dyn Plan> {
    if call.operation == Operation::Gather && call.blocks == Blocks::Equal(0) {
        return Box::new(Script::default());
    }
    let strategy = choose::strategy(call, network);
    match strategy.algorithm {
        Algorithm::Shared => shared::plan(call, network, me, &strategy),
        _ => tree::plan(call, network, me),
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

pub(crate) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    rooted::candidates(question, network, Way::Up, (direct::candidates, shared::candidates))
}
