// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter in one order of association: reduce to rank 0, then scatter.**
//!
//! | | |
//! |---|---|
//! | messages | 2 (parts − 1) per cluster and tier |
//! | trips | two per tier |
//! | bytes | all blocks times the size of covers up, every block once per tier down |
//! | restrictions | none: order and association depend on ranks only (see `order.rs`); scattering begins when all is reduced |
//! | paper | – |

use crate::Network;
use crate::compose::{Composite, Members, Part};
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Blocks, Call, Messages, Operation, messages as messages_of, plan as plan_of};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64) -> Box<dyn Plan> {
    let mut composite = Composite::default();
    let total = if me == 0 {
        composite.memory(units)
    } else {
        Slice::NOTHING
    };
    let user = |buffer| Slice {
        buffer,
        offset: 0,
        length: 0,
    };
    // In place the contribution is in the result buffer, which takes nothing before the second stage.
    let given = user(if call.in_place { Buffer::Recv } else { Buffer::Send });
    let stages = [
        (reduction(call, units), given, total),
        (scattering(call), total, user(Buffer::Recv)),
    ];
    for (number, (inner, send, recv)) in (0..).zip(stages) {
        composite.stage([Part {
            number,
            plan: plan_of(&inner, network, me),
            members: Members::All,
            send,
            recv,
        }]);
    }
    Box::new(composite)
}

/// All blocks to rank 0.
fn reduction(call: &Call, units: u64) -> Call {
    Call {
        operation: Operation::Reduce,
        blocks: Blocks::Equal(units),
        root: 0,
        in_place: false,
        ..call.clone()
    }
}

/// Each its block.
fn scattering(call: &Call) -> Call {
    let operation = match call.blocks {
        Blocks::Equal(_) => Operation::Scatter,
        _ => Operation::Scatterv,
    };
    Call {
        operation,
        root: 0,
        in_place: false,
        ..call.clone()
    }
}

pub(super) fn messages(call: &Call, network: &Arc<Network>, units: u64) -> Option<Messages> {
    let reduce = messages_of(&reduction(call, units), network)?;
    Some(reduce.plus(messages_of(&scattering(call), network)?))
}
