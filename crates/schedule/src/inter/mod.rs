// SPDX-License-Identifier: Apache-2.0
//! Collectives between the two groups of an intercommunicator, composed from plans for parts of both together.

mod leaders;
mod pairwise;
mod rooted;
mod sides;
mod symmetric;

pub use sides::Sides;

use crate::Network;
use crate::step::{Plan, Rank};
use crate::{Blocks, Call, CountsPhase, Operation, barrier};
use std::sync::Arc;

/// The part of process `me` in a collective between two groups. `network` is that of both groups together; ranks are
/// those in it, also `call.root`. In rooted operations the members of the root's group other than the root have no part
/// and do not ask.
///
/// Blocks are those of the other group's ranks. Gather, scatter and allgather: `Equal`; gatherv, scatterv: as within
/// one group; allgather(v): `blocks` the own block (`Equal`; `Own` or, after [`inter_counts_phase`], `Subtree`),
/// `receive_blocks` those of the other group (`Equal` or `Known`); alltoall: `Equal` and `Equal`; alltoallv, alltoallw:
/// `Known` and `Known`; reduce_scatter(_block): those of the own group.
///
/// # Panics
/// As [`plan`](crate::plan), and for operations that are not defined between groups: scan, exscan, neighbourhoods.
pub fn inter_plan(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Box<dyn Plan> {
    debug_assert!(!call.nodes && !call.together, "no memory is both groups' own");
    match call.operation {
        Operation::Barrier => barrier::plan(call, network, me),
        Operation::Bcast | Operation::Gather | Operation::Gatherv | Operation::Scatter | Operation::Scatterv => {
            rooted::one_part(call, network, sides, me)
        }
        Operation::Reduce => rooted::reduce(call, network, sides, me),
        Operation::Allgather | Operation::Allgatherv => symmetric::allgather(call, network, sides, me),
        Operation::Allreduce => symmetric::allreduce(call, network, sides, me),
        Operation::ReduceScatter | Operation::ReduceScatterBlock => symmetric::reduce_scatter(call, network, sides, me),
        Operation::Alltoall | Operation::Alltoallv | Operation::Alltoallw => {
            match leaders::pays(call, network, sides) {
                true => leaders::plan(call, network, sides, me),
                false => pairwise::plan(call, network, sides, me),
            }
        }
        other => unreachable!("{other:?} is not defined between groups"),
    }
}

/// Bytes of which all members of both groups must say the same number; `None`: there is no such number. Whoever gave
/// MPI_PROC_NULL as root does not say any.
pub fn inter_common_bytes(call: &Call, sides: &Sides) -> Option<u64> {
    let bytes = call.common_bytes()?;
    match call.operation {
        // What a group gives is what the other one takes.
        Operation::Allgather | Operation::Alltoall => {
            let Blocks::Equal(taken) = call.receive_blocks else {
                return None;
            };
            bytes.checked_add(call.bytes(taken))
        }
        Operation::Allgatherv => None,
        Operation::ReduceScatterBlock => bytes.checked_mul(sides.local.len() as u64),
        _ => Some(bytes),
    }
}

/// As [`counts_phase`](crate::counts_phase), between groups: gatherv, scatterv, and allgatherv, which gathers each
/// group's blocks at a member of the other one.
pub fn inter_counts_phase(call: &Call, network: &Arc<Network>, sides: &Sides, me: Rank) -> Option<CountsPhase> {
    match call.operation {
        Operation::Gatherv | Operation::Scatterv => rooted::counts(call, network, sides, me),
        Operation::Allgatherv => symmetric::counts(call, network, sides, me),
        _ => None,
    }
}
