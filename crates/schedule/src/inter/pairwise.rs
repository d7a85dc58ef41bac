// SPDX-License-Identifier: Apache-2.0
//! **Alltoall, alltoallv and alltoallw between groups, each block straight to its destination.**
//!
//! | | |
//! |---|---|
//! | messages | one per pair of processes of different groups; empty blocks of alltoallv are not sent |
//! | trips | 1 |
//! | bytes | every block once: the minimum |
//! | restrictions | none |
//! | paper | – |

use super::sides::Sides;
use crate::Network;
use crate::short::OwnBlocks;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, Operation, alltoall};
use std::sync::Arc;

/// Blocks for the own group's members are empty.
pub(super) fn plan(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    let by_rank = |blocks: &Blocks| {
        Blocks::known((0..network.size()).map(|rank| match sides.remote.contains(&rank) {
            true => blocks.size(rank - sides.remote.start),
            false => 0,
        }))
    };
    let call = Call {
        operation: Operation::Alltoallv,
        in_place: false,
        ..call.clone()
    };
    let (to, from) = (&by_rank(&call.blocks), &by_rank(&call.receive_blocks));
    alltoall::straight(&call, network, me, OwnBlocks { to, from })
}
