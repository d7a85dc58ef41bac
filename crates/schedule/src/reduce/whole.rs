// SPDX-License-Identifier: Apache-2.0
//! **Reduce by bringing all contributions to the root, which combines them in order of rank.**
//!
//! | | |
//! |---|---|
//! | messages | those of gather: one per remote site and machine, or one per process of a remote site |
//! | trips | those of gather: one per tier |
//! | bytes | p n in all; a site of m processes sends m n |
//! | restrictions | for operators that are not commutative over clusters that do not hold consecutive ranks, and small data |
//! | paper | – |

use crate::Network;
use crate::row::BlockRow;
use crate::script::Script;
use crate::step::{Buffer, Plan, Rank, Slice};
use crate::{Call, gather};

pub(super) fn plan(call: &Call, network: &Network, me: Rank, units: u64) -> Box<dyn Plan> {
    let mut script = Script::default();
    let own = if call.in_place { Buffer::Recv } else { Buffer::Send };
    let own = Slice {
        buffer: own,
        offset: 0,
        length: units,
    };
    let row = BlockRow::equal(units);
    let all = if me == call.root {
        script.memory(units * u64::from(network.size()))
    } else {
        Buffer::Recv
    };
    gather::bring(&mut script, network, call.root, me, &row, own, all, call.bytes(units));
    if me == call.root {
        let result = Slice {
            buffer: Buffer::Recv,
            offset: 0,
            length: units,
        };
        fold_by_rank(&mut script, network, 0..network.size(), all, units, result);
    }
    Box::new(script)
}

/// Combines the blocks of consecutive ranks, which stand in order of position in `all`.
pub(crate) fn fold_by_rank(
    script: &mut Script,
    network: &Network,
    ranks: std::ops::Range<Rank>,
    all: Buffer,
    units: u64,
    result: Slice,
) {
    let block = |rank| Slice {
        buffer: all,
        offset: u64::from(network.position_of(rank)) * units,
        length: units,
    };
    script.copy(block(ranks.start), result);
    for rank in ranks.skip(1) {
        script.reduce(block(rank), result, false);
    }
}
