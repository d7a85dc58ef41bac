// SPDX-License-Identifier: Apache-2.0
//! **Reduce_scatter in one order of association: reduce to rank 0, then scatter; or, short data, an allreduce of which
//! each keeps his block.**
//!
//! | | |
//! |---|---|
//! | messages | 2 (parts − 1) per cluster and tier, or those of allreduce |
//! | trips | two per tier, or those of allreduce: over sites one |
//! | bytes | all blocks times the size of covers up, every block once per tier down; or all blocks as in allreduce |
//! | restrictions | none: order and association depend on ranks only (see `order.rs`); scattering begins when all is reduced |
//! | paper | – |

use crate::Network;
use crate::choose::{self, Order, Question};
use crate::compose::{Composite, Members, SubPlan};
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::strategy::{Algorithm, Strategy};
use crate::{Blocks, Call, Messages, Operation, messages as messages_of, plan as plan_of};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64) -> Box<dyn Plan> {
    let mut composite = Composite::default();
    let user = |buffer| Slice {
        buffer,
        offset: 0,
        length: 0,
    };
    // In place the contribution is in the result buffer, which takes nothing before the second stage.
    let given = user(if call.in_place { Buffer::Recv } else { Buffer::Send });
    let part = |number, plan, send, recv| SubPlan {
        number,
        plan,
        members: Members::All,
        send,
        recv,
    };
    if combines_all(call, network) {
        let total = composite.memory(units);
        let combined = plan_of(&combination(call, units), network, me);
        composite.stage([part(0, combined, given, total)]);
        composite.stage([part(1, own_block(call, me), total, user(Buffer::Recv))]);
        return Box::new(composite);
    }
    let total = match me {
        0 => composite.memory(units),
        _ => Slice::NOTHING,
    };
    let reduced = plan_of(&reduction(call, units), network, me);
    composite.stage([part(0, reduced, given, total)]);
    let scattered = plan_of(&scattering(call), network, me);
    composite.stage([part(1, scattered, total, user(Buffer::Recv))]);
    Box::new(composite)
}

/// Both ways, by what their parts cost.
pub(super) fn candidates(question: &Question, network: &Network) -> Vec<Strategy> {
    let cost = |operation, order, bytes| {
        let part = Question::new(operation, order, Some(bytes));
        choose::answer(&part, network).cost.clone()
    };
    let (all, block) = (question.bytes(), question.bytes() / u64::from(network.size()));
    let reduce = cost(Operation::Reduce, Order::Fixed, all);
    let there_and_back = reduce.then(&cost(Operation::Scatter, Order::Any, block));
    let everybody = cost(Operation::Allreduce, Order::Fixed, all);
    vec![
        Strategy::without_trees(Algorithm::Fixed, there_and_back),
        Strategy::without_trees(Algorithm::FixedFlat, everybody),
    ]
}

/// Whether everybody gets all combined blocks, and keeps his.
fn combines_all(call: &Call, network: &Network) -> bool {
    choose::strategy(call, network).algorithm != Algorithm::Fixed
}

/// All blocks to all.
fn combination(call: &Call, units: u64) -> Call {
    Call {
        operation: Operation::Allreduce,
        ..reduction(call, units)
    }
}

/// Keeps the own one of all blocks.
fn own_block(call: &Call, me: Rank) -> Box<dyn Plan> {
    let mut script = Script::default();
    let length = call.blocks.size(me);
    let from = Slice {
        buffer: Buffer::Send,
        offset: call.blocks.offset(me),
        length,
    };
    let to = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length,
    };
    script.copy(from, to);
    Box::new(script)
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
    if combines_all(call, network) {
        return messages_of(&combination(call, units), network);
    }
    let reduce = messages_of(&reduction(call, units), network)?;
    Some(reduce.plus(messages_of(&scattering(call), network)?))
}
