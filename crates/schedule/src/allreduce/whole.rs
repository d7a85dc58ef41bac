// SPDX-License-Identifier: Apache-2.0
//! **Allreduce by bringing all contributions to all, who combine them in order of rank.**
//!
//! | | |
//! |---|---|
//! | messages | those of allgather |
//! | trips | those of allgather: one over the wide area |
//! | bytes | p n to everybody |
//! | restrictions | for operators that are not commutative over clusters that do not hold consecutive ranks, and small data |
//! | paper | – |

use crate::Network;
use crate::reduce::whole::fold_by_rank;
use crate::row::BlockRow;
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Call, Messages, allgather};
use std::sync::Arc;

pub(super) fn plan(call: &Call, network: &Arc<Network>, me: Rank, units: u64) -> Box<dyn Plan> {
    let mut script = Script::default();
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    let all = script.memory(units * u64::from(network.size()));
    let own = Slice {
        buffer: own,
        offset: 0,
        length: units,
    };
    let (row, strategy) = (BlockRow::equal(units), allgather::ask(network, bytes(call, network)));
    allgather::bring(&mut script, network, me, (&row, call.unit_bytes), own, all, &strategy);
    let result = Slice {
        buffer: Buffer::Recv,
        offset: 0,
        length: units,
    };
    fold_by_rank(&mut script, network, 0..network.size(), all, units, result);
    Box::new(script)
}

pub(super) fn messages(call: &Call, network: &Network) -> Messages {
    let bytes = bytes(call, network);
    allgather::messages_of(&allgather::ask(network, bytes), network, bytes)
}

/// Bytes of all contributions.
fn bytes(call: &Call, network: &Network) -> u64 {
    let each = call.bytes(call.blocks.size(0));
    each.saturating_mul(u64::from(network.size()))
}
